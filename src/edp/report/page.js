"use strict";
// Curves and tables of a report. Everything is drawn from the JSON in the page; nothing is fetched.
const DATA = JSON.parse(document.getElementById("data").textContent);
// Curves with the same steps share one list of them. Without low and high, they equal the mean.
for (const curve of [...DATA.tasks, DATA.speed].flatMap((panel) => panel.charts).flatMap((chart) => chart.curves)) {
  curve.steps = DATA.grids[curve.steps];
  curve.low ??= curve.mean; curve.high ??= curve.mean;
}
const COLOURS = DATA.colours;
const BARS = "#8a94a0";
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 56, RIGHT = 16, TOP = 24, BOTTOM = 34;

// Hidden curves and sort orders survive a reload of the page.
const KEPT = `edp report: ${document.title}`;
const kept = (() => { try { return JSON.parse(sessionStorage.getItem(KEPT)) ?? {}; } catch { return {}; } })();
function keep(name, value) {
  kept[name] = value;
  try { sessionStorage.setItem(KEPT, JSON.stringify(kept)); } catch { /* storage may be switched off */ }
}

function make(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

function element(name, parent, text, properties) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  Object.assign(made, properties || {});
  if (parent) parent.appendChild(made);
  return made;
}

const short = (value) => {
  const size = Math.abs(value);
  if (size >= 1e10) return value.toExponential(1);
  if (size >= 1e6) return +(value / 1e6).toPrecision(3) + "M";
  if (size >= 1e4) return +(value / 1e3).toPrecision(3) + "k";
  return String(+value.toPrecision(4));
};

function ticks(low, high, count) {
  const span = high - low || 1, raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9 * span; at += step) found.push(at);
  return found;
}

// One picture of several curves: {name, colour, steps, mean, low, high, rat, oms, dashed}; hidden ones are left out.
function draw(box, curves, height, what, across = "training steps") {
  box.replaceChildren();
  const width = Math.max(280, box.clientWidth);
  const known = curves.filter((curve) => !curve.hidden && curve.mean.some((value) => value !== null));
  if (!known.length) { element("p", box, "Nothing to show."); return; }
  let x0 = 0, x1 = 1, y0 = Infinity, y1 = -Infinity;
  for (const curve of known) {
    curve.steps.forEach((step, i) => {
      if (curve.mean[i] === null) return;
      x1 = Math.max(x1, step);
      y0 = Math.min(y0, curve.low[i] ?? curve.mean[i]); y1 = Math.max(y1, curve.high[i] ?? curve.mean[i]);
    });
    if (curve.oms) y1 = Math.max(y1, curve.oms[2]);
  }
  const room = (y1 - y0 || Math.abs(y1) || 1) * 0.06;
  y0 -= room; y1 += room;
  const x = (step) => LEFT + (step - x0) / (x1 - x0) * (width - LEFT - RIGHT);
  const y = (value) => TOP + (y1 - value) / (y1 - y0) * (height - TOP - BOTTOM);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": what }, box);
  for (const at of ticks(y0, y1, 5)) {
    make("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }, svg);
    make("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, svg, short(at));
  }
  for (const at of ticks(x0, x1, width < 500 ? 3 : 6)) make("text", { x: x(at), y: height - 16, "text-anchor": "middle" }, svg, short(at));
  make("text", { x: width - RIGHT, y: height - 4, "text-anchor": "end" }, svg, across);
  make("text", { x: LEFT, y: 12 }, svg, what);
  for (const curve of known) {
    const points = curve.steps.map((step, i) => [step, curve.mean[i], curve.low[i], curve.high[i]])
      .filter((point) => point[1] !== null);
    const up = points.map((p) => `${x(p[0]).toFixed(1)},${y(p[3] ?? p[1]).toFixed(1)}`);
    const down = points.map((p) => `${x(p[0]).toFixed(1)},${y(p[2] ?? p[1]).toFixed(1)}`).reverse();
    if (!curve.dashed) make("polygon", { points: up.concat(down).join(" "), fill: curve.colour, opacity: 0.15 }, svg);
    const line = points.map((p) => `${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join(" ");
    const look = curve.dashed ? { "stroke-width": 1.2, "stroke-dasharray": "5 3" } : { "stroke-width": 1.8 };
    make("polyline", { points: line, fill: "none", stroke: curve.colour, ...look }, svg);
    if (points.length === 1) make("circle", { cx: x(points[0][0]), cy: y(points[0][1]), r: 3, fill: curve.colour }, svg);
    const level = ([from, to, at], look) => make("line", { x1: x(from), x2: x(to), y1: y(at), y2: y(at), stroke: curve.colour, ...look }, svg);
    if (curve.oms) level(curve.oms, { class: "oms", "stroke-width": 1.5, "stroke-dasharray": "1 4", "stroke-linecap": "round" });
    if (curve.rat) level(curve.rat, { class: "rat", "stroke-width": 4, opacity: 0.6 });
  }
  hover(box, svg, known, { x, x0, x1, width }, height);
}

function hover(box, svg, curves, scale, height) {
  const cross = make("line", { class: "cross", y1: TOP, y2: height - BOTTOM, visibility: "hidden" }, svg);
  const tip = element("div", box, undefined, { className: "tip" });
  svg.addEventListener("pointerleave", () => { tip.style.display = "none"; cross.setAttribute("visibility", "hidden"); });
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    const at = (event.clientX - frame.left) / frame.width * scale.width;
    const step = scale.x0 + (at - LEFT) / (scale.width - LEFT - RIGHT) * (scale.x1 - scale.x0);
    const rows = [];
    let nearest = null;
    for (const curve of curves) {
      let best = -1;
      curve.steps.forEach((other, i) => {
        if (curve.mean[i] !== null && (best < 0 || Math.abs(other - step) < Math.abs(curve.steps[best] - step))) best = i;
      });
      if (best < 0) continue;
      if (nearest === null || Math.abs(curve.steps[best] - step) < Math.abs(nearest - step)) nearest = curve.steps[best];
      rows.push([curve, best]);
    }
    if (nearest === null) return;
    const shown = rows.filter(([curve, i]) => curve.steps[i] === nearest)
      .sort((a, b) => b[0].mean[b[1]] - a[0].mean[a[1]]);
    tip.replaceChildren();
    element("div", tip, `step ${nearest.toLocaleString("en")}`);
    for (const [curve, i] of shown.slice(0, 12)) {
      const row = element("div", tip);
      element("span", row, undefined, { className: "swatch" }).style.background = curve.colour;
      const spread = curve.low[i] === curve.high[i] ? "" : ` (${short(curve.low[i])} to ${short(curve.high[i])})`;
      row.append(`${short(curve.mean[i])}${spread}  ${curve.name}`);
    }
    if (shown.length > 12) element("div", tip, `and ${shown.length - 12} more`);
    tip.style.display = "block";
    const side = event.clientX - frame.left;
    tip.style.left = side > frame.width / 2 ? "" : `${side + 14}px`;
    tip.style.right = side > frame.width / 2 ? `${frame.width - side + 14}px` : "";
    tip.style.top = "8px";
    cross.setAttribute("x1", scale.x(nearest)); cross.setAttribute("x2", scale.x(nearest));
    cross.setAttribute("visibility", "visible");
  });
}

// The charts of one task, with one legend for all: wide ones on top, then the others side by side.
function panel(task, host) {
  const hidden = new Set(kept[`hidden of ${task.name}`]);
  const legend = element("div", host, undefined, { className: "legend" });
  const wide = element("div", host), grid = element("div", host, undefined, { className: "pair charts" });
  const boxes = task.charts.map((chart) => element("div", chart.wide ? wide : grid, undefined, { className: "chart" }));
  const redraw = () => task.charts.forEach((chart, i) => {
    const curves = chart.curves.map((curve) => {
      const { name, colour } = task.runs[curve.run];
      return { ...curve, name: curve.kind ? `${name}, ${curve.kind}` : name, colour, hidden: hidden.has(name), dashed: curve.kind === "training" };
    });
    const both = curves.some((curve) => curve.dashed) ? ": held out, and in training (dashed)" : "";
    draw(boxes[i], curves, chart.wide ? 300 : 200, chart.name + both);
  });
  for (const run of task.runs) {
    const button = element("button", legend, undefined, { type: "button", ariaPressed: String(!hidden.has(run.name)) });
    element("span", button, undefined, { className: "swatch" }).style.background = run.colour;
    button.append(run.name);
    button.addEventListener("click", (event) => {
      if (event.altKey || event.shiftKey) {  // this one alone, or all again
        const alone = task.runs.every((other) => hidden.has(other.name) === (other.name !== run.name));
        task.runs.forEach((other) => { if (alone || other === run) hidden.delete(other.name); else hidden.add(other.name); });
      } else if (!hidden.delete(run.name)) hidden.add(run.name);
      keep(`hidden of ${task.name}`, [...hidden]);
      legend.querySelectorAll("button").forEach((each, i) => each.setAttribute("aria-pressed", String(!hidden.has(task.runs[i].name))));
      redraw();
    });
  }
  addEventListener("resize", redraw);
  redraw();
}

// The data's actions as bars, and the policy's as a line, for each action.
function histograms(actions, host) {
  element("p", host, actions.about);
  const legend = element("div", host, undefined, { className: "legend" });
  for (const [name, colour] of [[`in the ${actions.who}`, BARS], ["of the policy", COLOURS[0]]]) {
    const item = element("span", legend);
    element("span", item, undefined, { className: "swatch" }).style.background = colour;
    item.append(name);
  }
  const grid = element("div", host, undefined, { className: "pair" });
  actions.columns.forEach((action) => {
    const box = element("div", grid, undefined, { className: "chart histogram" });
    const width = 300, height = 190, left = 40, bottom = 34, right = 12, top = 18, bins = action.data.length;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": action.name }, box);
    // A policy that acts at the ends of the range would flatten all other bars: cut its bars at three times the data's highest.
    const most = Math.max(1e-9, Math.min(Math.max(...action.data, ...action.policy), 3 * Math.max(...action.data)));
    const x = (bin) => left + bin / bins * (width - left - right);
    const y = (share) => height - bottom - Math.min(share / most, 1) * (height - bottom - top);
    for (const at of ticks(0, 100 * most, 3)) {
      make("line", { class: "axis", x1: left, x2: width - right, y1: y(at / 100), y2: y(at / 100) }, svg);
      make("text", { x: left - 5, y: y(at / 100) + 4, "text-anchor": "end" }, svg, `${short(at)} %`);
    }
    const span = action.high - action.low;
    for (const at of ticks(action.low, action.high, 4)) make("text", { x: x((at - action.low) / span * bins), y: height - bottom + 14, "text-anchor": "middle" }, svg, short(at));
    make("text", { x: width - right, y: height - 4, "text-anchor": "end" }, svg, action.name);
    make("text", { x: left, y: top - 7 }, svg, "share of the states");
    action.data.forEach((share, i) => make("rect", { x: x(i), width: Math.max(x(1) - x(0) - 1, 0.5), y: y(share), height: y(0) - y(share), fill: BARS, opacity: 0.6 }, svg));
    action.policy.forEach((share, i) => {
      if (share > most) make("text", { x: Math.min(width - 16, Math.max(left + 14, x(i + 0.5))), y: top + 10, "text-anchor": "middle" }, svg, `↑${Math.round(100 * share)}%`);
    });
    const line = action.policy.map((share, i) => `${x(i)},${y(share)} ${x(i + 1)},${y(share)}`);
    make("polyline", { points: line.join(" "), fill: "none", stroke: COLOURS[0], "stroke-width": 2 }, svg);
  });
}

// The values of EAS's candidates at each step, with a ring around the one that was taken.
function choices(host, episode) {
  const known = episode.choices.filter((choice) => choice.q.some((value) => value !== null)).map((choice) => {
    const there = choice.q.filter((value) => value !== null), mean = there.reduce((sum, value) => sum + value, 0) / there.length;
    return { ...choice, q: choice.q.map((value) => (value === null ? null : value - mean)) };
  });
  if (!known.length) return;
  const box = element("div", host, undefined, { className: "chart" }), width = Math.max(280, box.clientWidth), height = 200;
  const values = known.flatMap((choice) => choice.q).filter((value) => value !== null);
  const low = Math.min(...values), high = Math.max(...values), room = (high - low || Math.abs(high) || 1) * 0.08;
  const x = (i) => LEFT + (i + 0.5) / known.length * (width - LEFT - RIGHT);
  const y = (value) => TOP + (high + room - value) / (high - low + 2 * room) * (height - TOP - BOTTOM);
  const what = "Q of EAS's candidates, centred (ring: taken)";
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": what }, box);
  for (const at of ticks(low - room, high + room, 4)) {
    make("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }, svg);
    make("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, svg, short(at));
  }
  make("text", { x: LEFT, y: 12 }, svg, what);
  make("text", { x: width - RIGHT, y: height - 2, "text-anchor": "end" }, svg, "steps of the episode");
  known.forEach((choice, i) => {
    if (width > 500 || i % 3 === 0) make("text", { x: x(i), y: height - 16, "text-anchor": "middle" }, svg, short(choice.at));
    choice.q.forEach((value, j) => {
      if (value === null) return;
      make("circle", { cx: x(i), cy: y(value), r: 3, fill: COLOURS[0], opacity: 0.55 }, svg);
      if (j === choice.chosen) make("circle", { class: "taken", cx: x(i), cy: y(value), r: 6, fill: "none", stroke: COLOURS[1], "stroke-width": 2 }, svg);
    });
  });
}

// A map of how many points are in each square of a plane.
function density(grid, title, points, ends) {
  const bins = 28, size = 240, counts = new Map();
  for (const [a, b] of points) {
    const place = [a, b].map((value, i) => Math.min(bins - 1, Math.max(0, Math.floor((value - ends[i][0]) / (ends[i][1] - ends[i][0] || 1) * bins))));
    counts.set(place.join(), (counts.get(place.join()) || 0) + 1);
  }
  const figure = element("figure", grid), box = element("div", figure, undefined, { className: "chart" });
  const svg = make("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": title }, box);
  const most = Math.max(1, ...counts.values()), each = size / bins;
  make("rect", { class: "axis", x: 0.5, y: 0.5, width: size - 1, height: size - 1, fill: "none" }, svg);
  for (const [place, count] of counts) {
    const [i, j] = place.split(",").map(Number);
    make("rect", { x: i * each, y: size - (j + 1) * each, width: each, height: each, fill: COLOURS[0], opacity: 0.15 + 0.85 * count / most }, svg);
  }
  element("figcaption", figure, title);
}

function planes(host, plane) {
  const all = [...plane.data, ...plane.policy];
  if (!all.length) return;
  const ends = [0, 1].map((i) => [Math.min(...all.map((point) => point[i])), Math.max(...all.map((point) => point[i]))]);
  const grid = element("div", host, undefined, { className: "pair" });
  const range = ["across", "up"].map((way, i) => `${way}: ${plane.names[i]}, ${ends[i].map(short).join(" to ")}`).join("; ");
  density(grid, `the data (${range})`, plane.data, ends);
  density(grid, `the policy in the same states, after ${plane.after} (${range})`, plane.policy, ends);
}

// Paths from above; walls are squares, rings goals, dots starts.
function paths(host, maze) {
  const half = maze.cell / 2;
  const corners = maze.walls.flatMap(([x, y]) => [[x - half, y - half], [x + half, y + half]]);
  const all = [...corners, ...maze.paths.flatMap((path) => path.points.concat(path.goal ? [path.goal] : []))];
  if (!all.length) return;
  const [left, right, low, high] = [0, 0, 1, 1].map((i, n) => all.reduce((end, point) => Math[n % 2 ? "max" : "min"](end, point[i]), all[0][i]));
  const room = maze.walls.length ? 0 : 0.05 * Math.max(right - left, high - low, 1e-6);
  const across = right - left + 2 * room, up = high - low + 2 * room, width = 480, scale = width / (across || 1), height = Math.min(2 * width, Math.max(40, up * scale));
  const figure = element("figure", host), box = element("div", figure, undefined, { className: "chart map" });
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "paths" }, box);
  const x = (value) => (value - left + room) * scale, y = (value) => height - (value - low + room) * scale;
  for (const [a, b] of maze.walls) make("rect", { class: "wall", x: x(a - half), y: y(b + half), width: maze.cell * scale, height: maze.cell * scale }, svg);
  maze.paths.forEach((path, i) => {
    const colour = COLOURS[i % COLOURS.length];
    make("polyline", { class: "path", points: path.points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" "), fill: "none", stroke: colour, "stroke-width": 2 }, svg);
    if (path.points.length) make("circle", { cx: x(path.points[0][0]), cy: y(path.points[0][1]), r: 5, fill: colour }, svg);
    if (path.goal) make("circle", { cx: x(path.goal[0]), cy: y(path.goal[1]), r: 8, fill: "none", stroke: colour, "stroke-width": 3 }, svg);
  });
  element("figcaption", figure, `${maze.paths.length} episode${maze.paths.length > 1 ? "s" : ""}: dots are starts` + (maze.paths.some((path) => path.goal) ? ", rings goals" : ""));
}

function behaviour(run, host) {
  if (run.actions) histograms(run.actions, host);
  if (run.plane) planes(host, run.plane);
  if (run.maze) paths(host, run.maze);
  if (run.episode) {
    element("p", host, `One episode: ${run.episode.about}.`);
    if (!run.episode.q) return;
    const box = element("div", host, undefined, { className: "chart" });
    const value = [{ ...run.episode.q, name: "the action taken", colour: COLOURS[0] }];
    draw(box, value, 200, "Q of the action taken (band: of all candidates)", "steps of the episode");
    choices(host, run.episode);
  }
}

// Draw now, and again when the width changes.
function sized(host, render) {
  let width = -1;
  const again = () => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    host.replaceChildren();
    render();
  };
  addEventListener("resize", again);
  again();
}

// Draw when the host comes into view or the page is printed: a page may have hundreds of curves.
const waiting = new Set();
function whenSeen(host, action) {
  const seen = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) now(); }, { rootMargin: "300px" });
  const now = () => { seen.disconnect(); waiting.delete(now); action(); };
  waiting.add(now);
  seen.observe(host);
}

// Sort by the cells' numbers or texts, up or down; empty cells are last either way.
function inOrder(items, cellOf, up) {
  const key = (item) => cellOf(item).dataset.value ?? cellOf(item).textContent;
  return [...items].sort((a, b) => {
    const [x, y] = [key(a), key(b)], order = Number.isNaN(x - y) ? x.localeCompare(y) : x - y;
    if (x === "" || y === "") return (x === "") - (y === "");
    return up ? order : -order;
  });
}

// A click on the head of a column sorts the rows. In a table marked "across", a click on the head of a row sorts the columns.
document.querySelectorAll("table").forEach((table, number) => {
  const body = table.tBodies[0], sort = (head, up) => {
    table.querySelectorAll("th").forEach((other) => { if (other.scope === head.scope) other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    keep(`${head.scope} of table ${number}`, [head.textContent, up]);
    if (head.scope === "col") { body.append(...inOrder(body.rows, (row) => row.cells[head.cellIndex], up)); return; }
    const columns = inOrder([...head.parentElement.cells].slice(1), (cell) => cell, up).map((cell) => cell.cellIndex);
    for (const row of table.rows) row.append(...columns.map((column) => row.cells[column]));
  };
  for (const head of table.querySelectorAll("th")) {
    const first = head.scope === "col" ? "ascending" : "descending";  // of methods, the best first
    head.firstChild.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      sort(head, before ? before === "descending" : first === "ascending");
    });
    const [name, up] = kept[`${head.scope} of table ${number}`] ?? [];
    if (name === head.textContent) sort(head, up);
  }
});

DATA.tasks.forEach((task, i) => {
  const host = document.getElementById(`curves-${i}`);
  whenSeen(host, () => panel(task, host));
});
DATA.looks.forEach((run, i) => {
  const host = document.getElementById(`looks-${i}`);
  whenSeen(host, () => sized(host, () => behaviour(run, host)));
});
const speed = document.getElementById("speed");
if (speed) whenSeen(speed, () => panel(DATA.speed, speed));
addEventListener("beforeprint", () => waiting.forEach((action) => action()));
