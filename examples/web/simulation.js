// Houses side by side in the same weather: one for the policy, and one for each operator.

import { House, STEP_HOURS, Weather } from "./house.js";
import { Pulses, Steady } from "./operators.js";
import { Random } from "./random.js";

export const WHO = ["policy", "steady", "pulses"];
const KEPT = 3 * 24 / STEP_HOURS; // steps of the past: three days, an operator's turn

export class Simulation {
  constructor(policy, seed) {
    const start = new Random(seed, 0), operators = [new Steady(new Random(seed, 2)), new Pulses(new Random(seed, 3))];
    this.policy = policy;
    this.draws = new Random(seed, 1); // of the policy's actions
    this.sky = new Random(seed, 4);
    this.weather = new Weather(start);
    const house = new House(start);
    this.weather.pass(this.sky);
    const acts = [async (seen) => (await policy.act(seen, this.draws))[0], ...operators.map((each) => (seen) => each.act(seen))];
    this.players = WHO.map((who, i) => ({
      who, act: acts[i], house: Object.assign(Object.create(House.prototype), house), action: null,
      totals: { cost: 0, discomfort: 0 },
    }));
    this.steps = 0;
    this.past = []; // {hours, outdoors, sun, tariff, price, players: {who: {room, action, reward}}}
  }

  get hours() {
    return this.steps * STEP_HOURS;
  }

  // Everybody looks, acts, and half an hour passes.
  async step() {
    const { weather } = this, now = { hours: this.hours, players: {} };
    for (const name of ["outdoors", "sun", "tariff", "price"]) now[name] = weather[name];
    for (const player of this.players) {
      player.action = await player.act(player.house.observe(weather));
      const room = player.house.room, spent = player.house.step(player.action, weather);
      for (const name of Object.keys(spent)) player.totals[name] += spent[name];
      now.players[player.who] = { room, action: player.action, reward: this.reward(player) };
    }
    this.past.push(now);
    if (this.past.length > KEPT) this.past.shift();
    weather.advance(this.sky);
    this.steps += 1;
  }

  // All of it so far, in euros: electricity and discomfort, both negative.
  reward({ totals }) {
    return -totals.cost - totals.discomfort;
  }

  // What the policy sees now, and actions that it may choose.
  get seen() {
    return this.players[0].house.observe(this.weather);
  }

  candidates(count) {
    return this.policy.act(this.seen, new Random(this.steps, 5), count);
  }
}
