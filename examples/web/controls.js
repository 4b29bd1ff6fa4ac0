// Buttons and sliders. The sliders show the weather, which goes on from where they put it.

import { CHEAP, DEAR, USUAL } from "./house.js";
import { find, format } from "./labels.js";

const SLIDERS = {
  season: {
    get: (weather) => weather.mean, set: (weather, value) => { weather.mean = value; }, text: (value) => `${format(value)} °C`,
  },
  clouds: {
    get: (weather) => 100 * weather.clouds, set: (weather, value) => { weather.clouds = value / 100; },
    text: (value) => `${format(value, 0)} %`,
  },
  level: {
    get: (weather) => 100 * weather.level, set: (weather, value) => { weather.level = value / 100; },
    text: (value) => `${[CHEAP, USUAL, DEAR].map((price) => format(price * value / 100, 2)).join(", ")} €/kWh`,
  },
};

// What the user has asked for, and the loop of the page has not done yet.
export class Controls {
  // `weather` gives the present one; `outdoors` is the contract's entry of the outdoor temperature, if the policy sees it.
  constructor(weather, outdoors) {
    if (outdoors?.high > outdoors?.low) { // the slider goes somewhat farther than the training data
      const room = (outdoors.high - outdoors.low) / 5;
      Object.assign(find("season"), { min: Math.floor(outdoors.low - room), max: Math.ceil(outdoors.high + room) });
    }
    this.running = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.forget();
    for (const [id, { set }] of Object.entries(SLIDERS)) {
      find(id).addEventListener("input", () => { set(weather(), find(id).valueAsNumber); this.draw = true; });
    }
    find("changing").addEventListener("change", () => { weather().changing = this.changing; });
    find("run").addEventListener("click", () => { this.run(!this.running); });
    find("step").addEventListener("click", () => { this.run(false); this.steps += 1; });
    find("again").addEventListener("click", () => { this.again = true; });
    addEventListener("resize", () => { this.draw = true; });
    this.run(this.running);
  }

  forget() {
    Object.assign(this, { steps: 0, again: false, draw: false });
  }

  run(running) {
    this.running = running;
    find("run").textContent = running ? "Pause" : "Run";
  }

  get changing() {
    return find("changing").checked;
  }

  get hoursInASecond() {
    return Number(document.querySelector("[name=speed]:checked").value);
  }

  show({ weather, hours }) {
    const minutes = Math.round(hours % 24 * 60), two = (number) => String(number).padStart(2, "0");
    find("time").textContent = `Day ${Math.floor(hours / 24) + 1}, ${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
    const kind = { [CHEAP]: "cheap", [USUAL]: "usual", [DEAR]: "dear" }[weather.tariff];
    const price = kind === "usual" ? "has its usual price" : `is ${kind}`;
    find("tariff").textContent = `electricity ${price}: ${format(weather.price, 2)} €/kWh`;
    find("tariff").className = kind;
    for (const [id, { get, text }] of Object.entries(SLIDERS)) {
      const slider = find(id), value = get(weather);
      if (!slider.matches(":active")) slider.value = value; // not while it is being moved
      slider.setAttribute("aria-valuetext", text(value));
      slider.previousElementSibling.value = text(value);
    }
  }
}
