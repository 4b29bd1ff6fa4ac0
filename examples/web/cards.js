// A card for each house: its room, its settings and its reward.

import { COMFORT } from "./house.js";
import { NAMES, element, find, format, signal } from "./labels.js";
import { WHO } from "./simulation.js";

const STYLES = {
  policy: "decides every half hour", steady: "heats all day", pulses: "heats in cheap hours",
};
const MONEY = { reward: "Reward", cost: "electricity", discomfort: "discomfort", daily: "a day" };
const ROOF = "M4 22 24 5 44 22V44H4Z";

export function makeCards(actions) {
  for (const who of WHO) {
    const card = element("article", find("cards"), { className: `card ${who}`, id: `card-${who}` });
    const head = element("div", card, { className: "card-head" });
    head.insertAdjacentHTML("beforeend", `<svg class="house" viewBox="0 0 48 48" aria-hidden="true"><path d="${ROOF}"/></svg>`);
    const names = element("div", head);
    element("h2", names, {}, NAMES[who]);
    element("p", names, { className: "note" }, STYLES[who]);
    const room = element("p", card, { className: "room" });
    element("strong", room);
    element("span", room);
    const settings = element("dl", card, { className: "settings" });
    for (const { name } of actions) {
      element("dt", settings, {}, signal(name).title);
      element("dd", settings, { className: "setting" });
      element("i", element("dd", settings, { className: "track", ariaHidden: "true" }));
    }
    const money = element("dl", card, { className: "money" });
    for (const [name, text] of Object.entries(MONEY)) {
      const row = element("div", money, { className: name });
      element("dt", row, {}, text);
      element("dd", row);
    }
  }
}

export function drawCard({ who, house, action, totals }, actions, days) {
  const card = find(`card-${who}`), put = (place, text) => { card.querySelector(place).textContent = text; };
  const room = Math.round(10 * house.room) / 10, reward = -totals.cost - totals.discomfort;
  const state = room < COMFORT[0] ? "too cold" : room > COMFORT[1] ? "too warm" : "comfortable";
  card.querySelector(".house").dataset.state = state;
  put(".room strong", `${format(room)} °C`);
  put(".room span", state);
  const texts = card.querySelectorAll(".setting"), bars = card.querySelectorAll(".track i");
  actions.forEach(({ name, low, high }, i) => {
    texts[i].textContent = signal(name).text(action[i]);
    bars[i].style.width = `${100 * (action[i] - low) / (high - low)}%`;
  });
  const euros = { reward, cost: -totals.cost, discomfort: -totals.discomfort, daily: reward / days };
  for (const [name, value] of Object.entries(euros)) put(`.${name} dd`, `${format(value, 2)} €`);
}
