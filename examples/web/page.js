// The page: loads the policy, makes its parts, and lets time pass.

import { drawCard, makeCards } from "./cards.js";
import { Chart } from "./charts.js";
import { Controls } from "./controls.js";
import { ACTIONS, COMFORT, OBSERVATIONS, STEP_HOURS } from "./house.js";
import { NAMES, element, find, format, signal } from "./labels.js";
import { Policy } from "./policy.js";
import { drawChoice, drawSeen, makeSeen } from "./sight.js";
import { Simulation, WHO } from "./simulation.js";

const BEFORE = 72; // steps before the page appears, so that there is something to see
const MOST = 12; // steps in one frame
const NARROW = 560; // pixels: narrower charts show half of the time
const DRAW_EVERY = 40, CHOICES_EVERY = 100; // milliseconds between drawings of the page, and of what the policy may do

let policy, simulation, controls, charts, seed = Number(new URLSearchParams(location.search).get("seed")) || 1;
let due = 0, before = 0, drawn = 0, chosen = 0; // steps, and times of the last frame, drawing and picture of choices
let stale = true; // what is drawn
let pointed = null; // the hour that the pointer is at
const hidden = new Set();

function makeCharts() {
  const point = (hours) => { pointed = hours; controls.draw = true; };
  const actions = policy.contract.actions.map(({ name, low, high }, i) => (
    { ...signal(name), height: 130, range: [low, high], held: true, value: (row, who) => row.players[who].action[i] }
  ));
  const specs = [
    {
      ...signal("room_temp_c"), title: "Room temperature", height: 190, limits: COMFORT, least: [19, 24],
      value: (row, who) => row.players[who].room,
    },
    ...actions,
    { title: "Reward so far", unit: "€", digits: 2, height: 150, least: [0], value: (row, who) => row.players[who].reward },
    { ...signal("outdoor_temp_c"), title: "Outdoor temperature", height: 120, one: "outdoors", value: (row) => row.outdoors },
    { ...signal("solar_w_m2"), height: 120, one: "sun", least: [0, 550], held: true, value: (row) => row.sun },
  ];
  charts = specs.map((spec) => new Chart(find("charts"), spec, point));
}

function makeLegend() {
  for (const who of WHO) {
    const button = element("button", find("legend"), { type: "button", className: who, ariaPressed: "true" });
    element("i", button, { className: "swatch" });
    button.append(NAMES[who]);
    button.addEventListener("click", () => {
      if (!hidden.delete(who)) hidden.add(who);
      button.ariaPressed = String(!hidden.has(who));
      controls.draw = true;
    });
  }
  for (const [kind, text] of [["cheap", "electricity is cheap"], ["dear", "is dear"], ["limit", "limits of comfort"]]) {
    const item = element("span", find("legend"), { className: kind });
    element("i", item, { className: "area" });
    item.append(text);
  }
}

function describe() {
  const { contract, bytes, difference, milliseconds } = policy, { sampler, eas, run, step } = contract;
  const parts = [
    `A ${contract.policy} policy${run ? ` of the run ${run}, step ${step.toLocaleString("en")}` : ""}`,
    sampler && `${sampler.name}, ${sampler.calls} network calls${eas ? `, EAS of ${eas.candidates}` : ""}`,
    `policy.onnx: ${Math.round(bytes / 1000)} kB`,
    `an action takes ${format(milliseconds, 2)} ms here`,
    difference !== null && `differs from the contract's example by ${difference.toExponential(0)} of the action's range`,
    `seed ${seed}`,
  ];
  find("about").textContent = parts.filter(Boolean).join(" · ");
}

async function start() {
  simulation = new Simulation(policy, seed);
  simulation.weather.changing = controls.changing;
  for (let i = 0; i < BEFORE; i++) await simulation.step();
}

async function draw(now) {
  const { past, players, hours } = simulation, { contract } = policy;
  const nearest = (a, b) => (Math.abs(a.hours - pointed) <= Math.abs(b.hours - pointed) ? a : b);
  const shown = WHO.filter((who) => !hidden.has(who)), row = pointed === null ? null : past.reduce(nearest);
  const days = find("charts").clientWidth < NARROW ? 1.5 : 3;
  find("charts-title").textContent = days === 3 ? "The last three days" : "The last 36 hours";
  for (const chart of charts) chart.draw(past, 24 * days, shown, row);
  for (const player of players) drawCard(player, contract.actions, hours / 24);
  controls.show(simulation);
  drawSeen(policy, simulation.seen);
  describe();
  if (!controls.running || now - chosen > CHOICES_EVERY) {
    chosen = now;
    await drawChoice(simulation);
  }
}

// What is due, and what was asked for, one after the other.
async function frame(now) {
  due = controls.running ? Math.min(due + (now - before) / 1000 * controls.hoursInASecond / STEP_HOURS, MOST) : 0;
  before = now;
  const { again } = controls, steps = Math.floor(due) + controls.steps;
  stale ||= again || steps > 0 || controls.draw;
  due -= Math.floor(due);
  controls.forget();
  if (again) {
    seed += 1;
    await start();
  }
  for (let i = 0; i < steps; i++) await simulation.step();
  if (stale && now - drawn >= DRAW_EVERY) {
    [drawn, stale] = [now, false];
    await draw(now);
  }
  requestAnimationFrame((next) => frame(next).catch(fail));
}

function fail(error) {
  find("message").hidden = false;
  find("message").textContent = `The page has stopped: ${error.message ?? error}.`;
}

async function main() {
  policy = await Policy.load(OBSERVATIONS, ACTIONS);
  const outdoors = policy.contract.observations.find(({ name }) => name === "outdoor_temp_c");
  controls = new Controls(() => simulation.weather, outdoors);
  makeCards(policy.contract.actions);
  makeSeen(policy.contract.observations);
  makeLegend();
  makeCharts();
  await start();
  find("message").hidden = true;
  find("live").hidden = false;
  before = performance.now();
  await draw(before);
  requestAnimationFrame((now) => frame(now).catch(fail));
}

main().catch(fail);
