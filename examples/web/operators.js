// The operators of examples/heating/logs.py: the same rules, and random numbers in the same order.

import { CHEAP, HIGH, LOW, clip, tariff } from "./house.js";

class Operator {
  constructor(draw) {
    this.draw = draw;
    this.habit = [draw.normal(0, 1), draw.normal(0, 1)];
    this.setting = null;
    this.cheap = true;
  }

  // The setting stays for a while, until the tariff changes or the operator looks at the heating again.
  act(seen) {
    const hour = (Math.atan2(seen.hour_sin, seen.hour_cos) * 12 / Math.PI + 24) % 24;
    const cheap = tariff(Math.round(2 * hour) / 2 % 24) === CHEAP;
    if (this.setting === null || cheap !== this.cheap || this.draw.uniform(0, 1) < 1 / this.patience) {
      this.cheap = cheap;
      const aim = this.aim(seen), off = [this.draw.normal(0, 1), this.draw.normal(0, 1)];
      this.setting = [aim[0] + 2 * off[0], aim[1] + 4 * off[1]];
      if (this.draw.uniform(0, 1) < 0.05) { // something else altogether
        this.setting = LOW.map((low, i) => this.draw.uniform(low, HIGH[i]));
      }
    }
    return this.setting.map((number, i) => Math.fround(clip(number, LOW[i], HIGH[i])));
  }
}

// Heats steadily, with water as warm as the weather asks for.
export class Steady extends Operator {
  patience = 4;

  aim(seen) {
    const flow = 43 + (5 - seen.outdoor_temp_c) + 4 * (21 - seen.room_temp_c) + 1.5 * this.habit[0];
    return [flow, 55 + 5 * this.habit[1]];
  }
}

// Heats as hot as it gets while electricity is cheap, and not at all otherwise.
export class Pulses extends Operator {
  patience = 3;

  aim(seen) {
    const warm = 22.5 + 0.3 * this.habit[0];
    return this.cheap && seen.room_temp_c < warm ? [68 + 3 * this.habit[0], 95 + 3 * this.habit[1]] : [22, 3];
  }
}
