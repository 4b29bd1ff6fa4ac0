"""The two operators of the logs and a policy trained on them, in the house of heating.py.

    python picture.py RUN --data heating.csv --out heating.png

All three play the same episodes, with weather that is not in the logs. Prints a table, and draws a day of the first
episode, the actions in one state of the logs, and what all episodes cost.
"""

import argparse
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import logs
import numpy as np

import edp
import heating

COLOURS = {"steady": "#2a6fbb", "pulses": "#c1440e", "policy": "#0b6e4f"}
SHADES = {heating.CHEAP: "#e3f1e3", heating.DEAR: "#f8e3dc"}
SAMPLES, NEAR = 200, 80  # actions of the policy in one state; steps of the logs that are like it
COLUMNS = {
    "cost_eur": "electricity €",
    "discomfort_eur": "discomfort €",
    "heat_kwh": "heat kWh",
    "kelvin_hours_outside": "K·h outside",
    "stored_kwh": "heat stored kWh",
}
Act = Callable[[np.ndarray], np.ndarray]  # an action for each row


class Played(NamedTuple):
    obs: np.ndarray  # (episodes, steps, observations), before each action
    actions: np.ndarray
    rewards: np.ndarray  # (episodes, steps)
    totals: dict[str, np.ndarray]  # of each episode

    @property
    def returns(self) -> np.ndarray:
        return self.rewards.sum(axis=1)


def play(act: Act, seeds: range) -> Played:
    """One episode for each seed, all in step."""
    envs = [gymnasium.make("Heating-v0") for _ in seeds]
    obs = np.stack([env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)])
    seen, done, earned = [], [], []
    totals = {name: np.zeros(len(envs)) for name in COLUMNS}
    for _ in range(heating.STEPS):
        actions = act(obs)
        steps = [env.step(action) for env, action in zip(envs, actions, strict=True)]
        seen.append(obs)
        done.append(actions)
        earned.append([step[1] for step in steps])
        for name, total in totals.items():
            total += [step[4][name] for step in steps]
        obs = np.stack([step[0] for step in steps])
    return Played(np.stack(seen, 1), np.stack(done, 1), np.array(earned).T, totals)


def of_operators(kind: type[logs.Operator], seeds: range) -> Act:
    people = [kind(np.random.default_rng([7, seed])) for seed in seeds]
    return lambda obs: np.stack([person.act(row) for person, row in zip(people, obs, strict=True)])


def like_midnight(path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A state at midnight, when electricity becomes cheap, and what each operator did in the states next to it."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["time"].endswith("00:00")]
    obs, actions = (
        np.array([[float(row[name]) for name in names] for row in rows])
        for names in (heating.OBSERVATIONS, heating.ACTIONS)
    )
    operators, state = np.array([row["operator"] for row in rows]), np.median(obs, axis=0)
    far = (((obs - state) / (obs.std(axis=0) + 1e-6)) ** 2).sum(axis=1)
    near = np.argsort(far)[:NEAR]
    return state, {kind.name: actions[near][operators[near] == kind.name] for kind in logs.OPERATORS}


def table(played: dict[str, Played]) -> str:
    head = f"{'':<8}{'return €':>14}" + "".join(f"{title:>17}" for title in COLUMNS.values())
    lines = [head]
    for who, part in played.items():
        means = "".join(f"{part.totals[name].mean():>17.1f}" for name in COLUMNS)
        lines.append(f"{who:<8}{part.returns.mean():>7.2f} ± {part.returns.std(ddof=1):<4.2f}{means}")
    ours = played["policy"].returns
    for kind in logs.OPERATORS:
        gain = ours - played[kind.name].returns
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        won = f"{(gain > 0).sum()} of {len(gain)} episodes"
        lines.append(f"policy less {kind.name}: {gain.mean():+.2f} ± {error:.2f} € (standard error), better in {won}")
    return "\n".join(lines)


def draw_day(axes: list[Any], played: dict[str, Played]) -> None:
    """The second day of the first episode."""
    per_day = round(24 / heating.STEP_HOURS)
    hours, rows = np.arange(per_day) * heating.STEP_HOURS, slice(per_day, 2 * per_day)
    for axis in axes:
        for hour in range(24):
            if heating.tariff(hour) in SHADES:
                axis.axvspan(hour, hour + 1, color=SHADES[heating.tariff(hour)], lw=0)
        axis.set(xlim=(0, 24), xticks=range(0, 25, 4))
    for side in heating.COMFORT:
        axes[0].axhline(side, color="0.35", lw=1, ls="--")
    for who, part in played.items():
        style = {"color": COLOURS[who], "lw": 2.2 if who == "policy" else 1.5, "label": who}
        axes[0].plot(hours, part.obs[0, rows, 0], **style)
        for column, axis in enumerate(axes[1:]):
            axis.step(hours, part.actions[0, rows, column], where="post", **style)
    axes[0].set(ylabel="room °C", title="A day: room and actions (green: cheap hours, red: dear, dashed: comfort)")
    axes[1].set_ylabel("flow °C")
    axes[2].set(ylabel="valve %", xlabel="hour of the second day")
    lowest, highest = axes[0].get_ylim()
    axes[0].set_ylim(lowest, highest + 0.25 * (highest - lowest))
    axes[0].legend(ncols=3, loc="upper right", fontsize=8, framealpha=1.0)


def draw_state(axis: Any, state: np.ndarray, near: dict[str, np.ndarray], chosen: np.ndarray) -> None:
    for who, actions in ({"policy": chosen} | near).items():
        which = f"policy: {len(chosen)} samples" if who == "policy" else f"{who}: {len(actions)} steps of the logs"
        axis.scatter(*actions.T, s=16, alpha=0.55, color=COLOURS[who], label=which, linewidths=0)
    seen = dict(zip(heating.OBSERVATIONS, state, strict=True))
    where = "midnight, room {room_temp_c:.1f} °C, outdoors {outdoor_temp_c:.1f} °C".format(**seen)
    axis.set(xlabel="flow °C", ylabel="valve %", title=f"One state: {where}")
    margins = [0.03 * (high - low) for low, high in zip(heating.LOW, heating.HIGH, strict=True)]
    axis.set_xlim(heating.LOW[0] - margins[0], heating.HIGH[0] + margins[0])
    axis.set_ylim(heating.LOW[1] - margins[1], heating.HIGH[1] + margins[1])
    axis.legend(fontsize=8, loc="best")


def draw_costs(axis: Any, played: dict[str, Played]) -> None:
    for place, (who, part) in enumerate(played.items()):
        cost, discomfort = part.totals["cost_eur"], part.totals["discomfort_eur"]
        axis.bar(place, cost.mean(), 0.6, color=COLOURS[who], alpha=0.75)
        axis.bar(place, discomfort.mean(), 0.6, bottom=cost.mean(), color=COLOURS[who], alpha=0.35, hatch="//")
        spread = np.linspace(-0.2, 0.2, len(cost))
        axis.scatter(place + spread, cost + discomfort, s=7, color="0.15", linewidths=0)
        mean = -part.returns.mean()
        axis.annotate(f"{mean:.1f} €", (place + 0.32, mean), va="center", fontsize=9)
    episodes = len(played["policy"].rewards)
    title = f"{episodes} episodes of {heating.DAYS} days: electricity, discomfort (hatched), each episode (dots)"
    axis.set(xlim=(-0.5, len(played) - 0.2), ylabel="€ an episode", title=title)
    axis.set_xticks(range(len(played)), list(played))


def main(argv: list[str] | None = None) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the directory that edp train wrote")
    parser.add_argument("--data", type=Path, default=Path("heating.csv"), help="the logs")
    parser.add_argument("--out", type=Path, default=Path("heating.png"))
    parser.add_argument("--seed", type=int, help="of the policy, if the run has several")
    parser.add_argument("--json", type=Path, help="write every episode's totals here")
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=1000, help="of the episodes' weather")
    args = parser.parse_args(argv)
    seeds = range(args.first_seed, args.first_seed + args.episodes)
    policy = edp.load_policy(args.run, seed=args.seed)
    played = {kind.name: play(of_operators(kind, seeds), seeds) for kind in logs.OPERATORS}
    played["policy"] = play(policy.act, seeds)
    print(table(played))
    if args.json:
        totals = {who: {"returns": part.returns, **part.totals} for who, part in played.items()}
        content = {
            who: {name: np.round(each, 3).tolist() for name, each in part.items()} for who, part in totals.items()
        }
        args.json.write_text(json.dumps({"first_seed": args.first_seed, **content}) + "\n", encoding="utf-8")

    state, near = like_midnight(args.data)
    policy.reset()
    chosen = policy.act(np.tile(state, (SAMPLES, 1)))
    plt.rcParams["axes.titlesize"] = 9.5
    figure = plt.figure(figsize=(12.5, 6.6), layout="constrained")
    halves: Any = figure.subfigures(1, 2)
    left, right = halves
    draw_day(list(left.subplots(3, 1, sharex=True)), played)
    upper, lower = right.subplots(2, 1)
    draw_state(upper, state, near, chosen)
    draw_costs(lower, played)
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(args.out, dpi=110)
    print(args.out)


if __name__ == "__main__":
    main()
