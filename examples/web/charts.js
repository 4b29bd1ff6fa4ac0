// Charts of the past over time, and of actions in a plane, as SVG. Colours are those of the style sheet's classes.

import { CHEAP, DEAR, STEP_HOURS } from "./house.js";
import { element, format } from "./labels.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 38, RIGHT = 10, TOP = 8, BOTTOM = 22;

function make(name, parent, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// Round numbers in a range: three of them, or a few more.
function ticks(low, high) {
  const power = 10 ** Math.floor(Math.log10(high - low)), first = (step) => Math.ceil(low / step - 1e-9);
  const count = (step) => Math.floor(high / step + 1e-9) - first(step) + 1;
  const step = [5, 2, 1, 0.5, 0.2].map((n) => n * power).find((each) => count(each) >= 3);
  return Array.from({ length: count(step) }, (_, i) => (first(step) + i) * step);
}

// One quantity over time. `spec`: title, unit, digits, height, value(row, who), range or least (a range that is always
// shown), limits (lines across), held (the value holds until the next), and for a quantity of the weather `one`, a class.
export class Chart {
  constructor(host, spec, point) {
    this.spec = spec;
    this.box = element("figure", host, { className: spec.one ? "chart half" : "chart" });
    const head = element("figcaption", this.box);
    element("h3", head, {}, spec.title);
    element("span", head, { className: "unit" }, spec.unit);
    this.values = element("span", head, { className: "values" });
    this.svg = make("svg", this.box, { role: "img", "aria-label": `${spec.title}, ${spec.unit}` });
    this.svg.addEventListener("pointermove", (event) => point(this.time(event)));
    this.svg.addEventListener("pointerleave", () => point(null));
  }

  time(event) {
    const frame = this.svg.getBoundingClientRect();
    const share = (event.clientX - frame.left - LEFT) / (frame.width - LEFT - RIGHT);
    return this.from + share * (this.to - this.from);
  }

  // The last `hours` of the past, the lines that are shown, and the row that the pointer is at.
  draw(past, hours, shown, pointed) {
    const { spec, svg } = this, width = this.box.clientWidth, { height } = spec;
    const last = past.at(-1), end = last ? last.hours + STEP_HOURS : 0;
    [this.from, this.to] = [Math.max(end - hours, 0), Math.max(end, hours)];
    const rows = past.filter((row) => row.hours >= this.from), lines = spec.one ? [spec.one] : shown;
    const [low, high] = spec.range ?? this.fit(rows, lines);
    const x = (at) => LEFT + (at - this.from) / (this.to - this.from) * (width - LEFT - RIGHT);
    const y = (value) => TOP + (high - value) / (high - low) * (height - TOP - BOTTOM);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren();
    this.drawTariff(rows, x, height);
    for (const at of ticks(low, high)) {
      make("line", svg, { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) });
      make("text", svg, { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, format(at, Number.isInteger(at) ? 0 : 1));
    }
    for (const at of spec.limits ?? []) make("line", svg, { class: "limit", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) });
    const every = x(this.from + 12) - x(this.from) < 55 ? 24 : 12; // hours, as there is room for their names
    for (let at = Math.ceil(this.from / every) * every; at <= this.to; at += every) {
      make("line", svg, { class: at % 24 ? "grid" : "grid day", x1: x(at), x2: x(at), y1: TOP, y2: height - BOTTOM });
      const label = at % 24 ? "12:00" : `day ${at / 24 + 1}`, room = at === this.to ? "end" : at === this.from ? "start" : "middle";
      make("text", svg, { x: x(at), y: height - 6, "text-anchor": room }, label);
    }
    for (const who of [...lines].reverse()) this.drawLine(rows, who, x, y); // the first one is on top
    if (pointed) make("line", svg, { class: "cross", x1: x(pointed.hours), x2: x(pointed.hours), y1: TOP, y2: height - BOTTOM });
    this.write(pointed ?? last, lines);
  }

  fit(rows, lines) {
    const values = lines.flatMap((who) => rows.map((row) => this.spec.value(row, who))), least = this.spec.least ?? [];
    const low = Math.min(...values, ...least), high = Math.max(...values, ...least);
    if (!Number.isFinite(low)) return [0, 1];
    const room = Math.max((high - low) * 0.06, 0.05);
    return [low - (least.includes(low) ? 0 : room), high + (least.includes(high) ? 0 : room)];
  }

  drawTariff(rows, x, height) {
    for (let i = 0, j = 0; i < rows.length; i = j) {
      while (j < rows.length && rows[j].tariff === rows[i].tariff) j++;
      const kind = { [CHEAP]: "cheap", [DEAR]: "dear" }[rows[i].tariff];
      const from = x(rows[i].hours), to = x(rows[j - 1].hours + STEP_HOURS);
      if (kind) make("rect", this.svg, { class: kind, x: from, width: to - from, y: TOP, height: height - TOP - BOTTOM });
    }
  }

  drawLine(rows, who, x, y) {
    const at = (hours, value) => `${x(hours).toFixed(1)} ${y(value).toFixed(1)}`;
    const points = rows.map((row) => [row.hours, this.spec.value(row, who)]);
    const path = this.spec.held
      ? points.flatMap(([hours, value]) => [at(hours, value), at(hours + STEP_HOURS, value)])
      : points.map(([hours, value]) => at(hours, value));
    if (path.length) make("path", this.svg, { class: `line ${who}`, d: `M${path.join("L")}` });
  }

  // The numbers beside the title: at the pointer, or the latest ones.
  write(row, lines) {
    this.values.replaceChildren();
    for (const who of row ? lines : []) {
      const item = element("span", this.values, { className: who });
      element("i", item, { className: "swatch" });
      item.append(format(this.spec.value(row, who), this.spec.digits));
    }
  }
}

// Two actions as a plane: many that the policy may choose, and those that were set in each house (`marks`: who, action).
export function drawPlane(host, actions, titles, candidates, marks) {
  const width = host.clientWidth, height = 230, left = 44, right = 12, top = 10, bottom = 38, [across, up] = actions;
  const x = (value) => left + (value - across.low) / (across.high - across.low) * (width - left - right);
  const y = (value) => height - bottom - (value - up.low) / (up.high - up.low) * (height - top - bottom);
  host.replaceChildren();
  const label = `${candidates.length} draws of the policy's action: ${titles[1]} over ${titles[0]}`;
  const svg = make("svg", host, { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const at of ticks(across.low, across.high)) {
    make("line", svg, { class: "grid", x1: x(at), x2: x(at), y1: top, y2: height - bottom });
    make("text", svg, { x: x(at), y: height - bottom + 15, "text-anchor": "middle" }, at);
  }
  for (const at of ticks(up.low, up.high)) {
    make("line", svg, { class: "grid", x1: left, x2: width - right, y1: y(at), y2: y(at) });
    make("text", svg, { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, at);
  }
  make("text", svg, { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, titles[0]);
  const middle = (top + height - bottom) / 2;
  make("text", svg, { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, titles[1]);
  for (const [first, second] of candidates) make("circle", svg, { class: "draw policy", cx: x(first), cy: y(second), r: 3.2 });
  for (const { who, action } of marks) make("circle", svg, { class: `mark ${who}`, cx: x(action[0]), cy: y(action[1]), r: 6 });
}
