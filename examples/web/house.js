// The house of examples/heating/heating.py: the same equations, and random numbers in the same order.
// `draw` is a generator with normal(mean, std) and uniform(low, high), as in random.js.

export const ACTIONS = ["flow_temp_c", "valve_percent"];
export const OBSERVATIONS = [
  "room_temp_c", "outdoor_temp_c", "return_temp_c", "solar_w_m2", "hour_sin", "hour_cos", "price_eur_kwh",
];
export const STEP_HOURS = 0.5, COMFORT = [20, 23]; // °C
export const CHEAP = 0.14, USUAL = 0.29, DEAR = 0.44; // euros per kWh
const PARTS = 10; // of a step, for Euler's method
export const LOW = [18, 0], HIGH = [75, 100]; // of the machine: water in °C, the valve in percent

// Capacities in kWh/K, conductances in kW/K.
const RADIATORS = 0.8, ROOM = 3, WALLS = 12, WATER = 0.7;
const RADIATORS_ROOM = 0.28, ROOM_WALLS = 1, ROOM_OUTDOORS = 0.07, WALLS_OUTDOORS = 0.13;
const STRONGEST = 12, PEOPLE = 0.4, WINDOWS = 4, PUMP = 0.08;
const DISCOMFORT = 0.4; // euros for an hour that is 1 K outside of the comfortable range
const DEAR_HOURS = [6, 7, 8, 9, 17, 18, 19, 20, 21], CHEAP_HOURS = [0, 1, 2, 3, 4, 12, 13, 14];

export const clip = (number, low, high) => Math.min(Math.max(number, low), high);

export function tariff(hour) {
  const whole = Math.floor(hour);
  return DEAR_HOURS.includes(whole) ? DEAR : CHEAP_HOURS.includes(whole) ? CHEAP : USUAL;
}

function efficiency(flow, outdoors) {
  return clip(0.42 * (flow + 273.15) / Math.max(flow - outdoors, 10), 1, 6);
}

// Weather, hour and price, which all houses share.
export class Weather {
  constructor(draw) {
    this.hour = 0;
    this.season = draw.normal(3, 3.5);
    this.front = draw.normal(0, 1.5);
    this.clouds = draw.uniform(0, 1);
    this.level = draw.uniform(0.8, 1.2);
    this.changing = true;
  }

  // Fronts and clouds pass. Without `changing` they stay as they are, and only the hour matters.
  pass(draw) {
    if (this.changing) {
      this.front += -0.03 * this.front + draw.normal(0, 0.35);
      this.clouds = clip(this.clouds + draw.normal(0, 0.06), 0, 1);
    }
  }

  advance(draw) {
    this.hour = (this.hour + STEP_HOURS) % 24;
    this.pass(draw);
  }

  // The outdoor temperature of the whole day; fronts go on to pass around it.
  get mean() {
    return this.season + this.front;
  }

  set mean(value) {
    this.season = value - this.front;
  }

  get outdoors() {
    const daily = 3 * Math.cos(2 * Math.PI * (this.hour - 15) / 24);
    return clip(this.mean + daily, -30, 30);
  }

  get sun() {
    const up = this.hour >= 8 && this.hour <= 17;
    const height = up ? Math.max(Math.sin(Math.PI * (this.hour - 8) / 9), 0) : 0;
    return 550 * height * (1 - 0.85 * this.clouds);
  }

  get tariff() {
    return tariff(this.hour);
  }

  get price() {
    return this.tariff * this.level;
  }
}

export class House {
  constructor(draw) {
    this.room = draw.uniform(19.5, 22.5);
    this.radiators = this.room + draw.uniform(0, 8);
    this.walls = this.room - draw.uniform(0.5, 2);
  }

  // What can be seen, by the names of the log. Sensors give float32.
  observe(weather) {
    const angle = 2 * Math.PI * weather.hour / 24;
    const values = [
      this.room, weather.outdoors, this.radiators, weather.sun, Math.sin(angle), Math.cos(angle), weather.price,
    ];
    return Object.fromEntries(OBSERVATIONS.map((name, i) => [name, Math.fround(values[i])]));
  }

  // Half an hour with this action. Returns what it cost, in euros.
  step(action, weather) {
    const [flow, valve] = action.map((number, i) => clip(number, LOW[i], HIGH[i]));
    const opening = valve / 100, part = STEP_HOURS / PARTS, { outdoors } = weather;
    const gained = (PEOPLE + WINDOWS * weather.sun / 1000) * STEP_HOURS;
    let electricity = PUMP * opening * STEP_HOURS;
    for (let i = 0; i < PARTS; i++) {
      const given = clip(opening * WATER * (flow - this.radiators), 0, STRONGEST);
      if (given) {
        const reached = this.radiators + given / (opening * WATER); // less than was set, where the machine is too weak
        electricity += given * part / efficiency(reached, outdoors);
      }
      const radiated = RADIATORS_ROOM * (this.radiators - this.room), soaked = ROOM_WALLS * (this.room - this.walls);
      const leaked = ROOM_OUTDOORS * (this.room - outdoors), passed = WALLS_OUTDOORS * (this.walls - outdoors);
      this.radiators += (given - radiated) * part / RADIATORS;
      this.room += ((radiated - soaked - leaked) * part + gained / PARTS) / ROOM;
      this.walls += (soaked - passed) * part / WALLS;
    }
    const outside = Math.max(COMFORT[0] - this.room, this.room - COMFORT[1], 0);
    return { cost: electricity * weather.price, discomfort: DISCOMFORT * outside * STEP_HOURS };
  }
}
