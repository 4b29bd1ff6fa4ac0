// What the policy sees, compared with the ranges of its training data, and what it may do now.

import { drawPlane } from "./charts.js";
import { element, find, format, signal } from "./labels.js";

const DRAWS = 64; // of the policy's action; fewer if each has to be chosen among candidates

export function makeSeen(observations) {
  for (const { name, low, high } of observations) {
    const { title, unit, digits } = signal(name), row = element("tr", find("seen"));
    const head = element("th", row, { scope: "row", title: name }, title);
    if (unit) element("span", head, { className: "note" }, ` ${unit}`);
    element("td", row, { className: "number" });
    const range = element("td", row, { className: "range" });
    if (low === null) continue;
    element("span", range, {}, format(low, digits));
    element("i", element("span", range, { className: "track" }));
    element("span", range, {}, format(high, digits));
  }
}

export function drawSeen(policy, seen) {
  const outside = [];
  policy.contract.observations.forEach((each, i) => {
    const { title, text, digits } = signal(each.name), row = find("seen").children[i], value = seen[each.name];
    row.children[1].textContent = format(value, digits);
    row.classList.toggle("outside", policy.isOutside(each, value));
    if (policy.isOutside(each, value)) outside.push(`${title.toLowerCase()} (${text(value)})`);
    const mark = row.querySelector(".track i"), share = (value - each.low) / (each.high - each.low || 1);
    if (mark) mark.style.left = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  });
  const known = policy.contract.observations.some(({ low }) => low !== null);
  find("outside").textContent = outside.length
    ? `Outside of the training data: ${outside.join(", ")}. The policy has learned nothing there.`
    : known ? "All of it is within the training data." : "The run does not know the ranges of its training data.";
  find("outside").classList.toggle("warning", outside.length > 0);
}

export async function drawChoice(simulation) {
  const { actions, eas } = simulation.policy.contract, count = Math.max(8, Math.round(DRAWS / (eas?.candidates ?? 1)));
  const titles = actions.map(({ name }) => `${signal(name).title}, ${signal(name).unit}`);
  drawPlane(find("choice"), actions, titles, await simulation.candidates(count), simulation.players);
  find("choice-note").textContent = `Dots: ${count} draws of its next action. Rings: what is set in the three houses.`;
}
