"""Logs of the house in heating.py, as its two operators kept them: a CSV file with a row for each half hour.

    python logs.py --out heating.csv --days 750

The operators take turns of three days. One heats steadily, with water as warm as the weather asks for. The other heats
in pulses: as hot as it gets while electricity is cheap, and not at all otherwise. Both have habits that differ from
turn to turn, leave what they have set for a while, and sometimes do something else. Weather and prices come from seeds
that evaluations do not use.
"""

import argparse
import csv
from datetime import datetime, timedelta
from pathlib import Path

import gymnasium
import numpy as np

import heating

FIRST_SEED = 1_000_000
COLUMNS = ("turn", "operator", "time", *heating.OBSERVATIONS, *heating.ACTIONS, "reward_eur")


class Operator:
    """Sets the heating by what can be seen; ``aim`` is the style, the rest is human."""

    name = ""
    patience = 1.0  # steps between two looks at the heating, on average

    def __init__(self, rng: np.random.Generator):
        self.rng, self.habit = rng, rng.normal(size=2)
        self.setting: np.ndarray | None = None
        self.cheap = True

    def aim(self, seen: dict[str, float]) -> tuple[float, float]:
        raise NotImplementedError

    def act(self, obs: np.ndarray) -> np.ndarray:
        seen = dict(zip(heating.OBSERVATIONS, obs.tolist(), strict=True))
        hour = np.arctan2(seen["hour_sin"], seen["hour_cos"]) * 12 / np.pi % 24
        cheap = heating.tariff(round(2 * hour) / 2 % 24) == heating.CHEAP
        if self.setting is None or cheap != self.cheap or self.rng.random() < 1 / self.patience:
            self.cheap = cheap
            self.setting = np.array(self.aim(seen)) + self.rng.normal(size=2) * (2.0, 4.0)
            if self.rng.random() < 0.05:  # something else altogether
                self.setting = self.rng.uniform(heating.LOW, heating.HIGH)
        return np.clip(self.setting, heating.LOW, heating.HIGH).astype(np.float32)


class Steady(Operator):
    name, patience = "steady", 4.0

    def aim(self, seen: dict[str, float]) -> tuple[float, float]:
        flow = 43 + (5 - seen["outdoor_temp_c"]) + 4 * (21 - seen["room_temp_c"]) + 1.5 * self.habit[0]
        return flow, 55 + 5 * self.habit[1]


class Pulses(Operator):
    name, patience = "pulses", 3.0

    def aim(self, seen: dict[str, float]) -> tuple[float, float]:
        if self.cheap and seen["room_temp_c"] < 22.5 + 0.3 * self.habit[0]:
            return 68 + 3 * self.habit[0], 95 + 3 * self.habit[1]
        return 22, 3


OPERATORS = Steady, Pulses


def turns(days: int, seed: int):
    """Rows of the log, turn by turn."""
    env = gymnasium.make("Heating-v0")
    start = datetime(2023, 1, 1)
    for turn in range(days // heating.DAYS):
        operator = OPERATORS[turn % 2](np.random.default_rng([seed, turn]))
        obs, _ = env.reset(seed=FIRST_SEED + 100_000 * seed + turn)
        over, step = False, 0
        while not over:
            action = operator.act(obs)
            after, reward, _, over, _ = env.step(action)
            time = start + timedelta(days=turn * heating.DAYS, hours=step * heating.STEP_HOURS)
            numbers = [f"{number:.4g}" for number in (*obs.tolist(), *action.tolist())]
            yield turn, operator.name, time.isoformat(" ", "minutes"), *numbers, f"{reward:.4f}"
            obs, step = after, step + 1


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("heating.csv"))
    parser.add_argument("--days", type=int, default=750, help="of both operators together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    args = parser.parse_args(argv)
    if args.out.exists() and not args.overwrite:
        parser.error(f"{args.out}: already exists; choose another name, or replace it with --overwrite")
    with args.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(turns(args.days, args.seed))
    print(args.out)


if __name__ == "__main__":
    main()
