// Names, units and numbers as the page writes them.

export const NAMES = { policy: "Policy", steady: "Steady operator", pulses: "Pulsing operator" };
const SIGNALS = { // columns of the log: what it is, its unit, and digits
  room_temp_c: ["Room", "°C", 1],
  outdoor_temp_c: ["Outdoors", "°C", 1],
  return_temp_c: ["Return water", "°C", 1],
  solar_w_m2: ["Sun", "W/m²", 0],
  hour_sin: ["Hour, sine", "", 2],
  hour_cos: ["Hour, cosine", "", 2],
  price_eur_kwh: ["Price", "€/kWh", 2],
  flow_temp_c: ["Flow water", "°C", 1],
  valve_percent: ["Valve", "%", 0],
};

export function format(value, digits = 1) {
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) ? "−" : "") + text;
}

// How a signal is written: its title, unit and digits, and `text` for a value with its unit.
export function signal(name) {
  const [title, unit, digits] = SIGNALS[name] ?? [name, "", 1];
  return { title, unit, digits, text: (value) => `${format(value, digits)}${unit && ` ${unit}`}` };
}

export function element(name, parent, properties = {}, text = undefined) {
  const made = Object.assign(document.createElement(name), properties);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

export const find = (id) => document.getElementById(id);
