"""Why episodes on antmaze-umaze fail: how many end with the ant on its back, in the data and with the policies.

python benchmarks/ant_falls.py RUN [--episodes 40] [--json results/ant_falls.json]
"""

import argparse
import json
from pathlib import Path

import numpy as np

from edp.acting.load import load_policy
from edp.data import formats
from edp.data.dataset import read_steps
from edp.data.tasks import get_task
from edp.envs.make import make_env
from edp.runs.directory import Run

FIRST_START = 90_000  # the seed of the first episode: these starts are not those of training's evaluations


def uprightness(obs: np.ndarray) -> np.ndarray:
    """The vertical part of the torso's axis, from its quaternion: 1 is upright, -1 is on its back."""
    return 1 - 2 * (obs[..., 4] ** 2 + obs[..., 5] ** 2)


def count(reached: np.ndarray, upright: np.ndarray) -> dict[str, int]:
    fallen = ~reached & (upright < 0)
    return {"episodes": len(reached), "failed": int((~reached).sum()), "on its back": int(fallen.sum())}


def of_data(file: str) -> dict[str, int]:
    steps = read_steps(formats.open_log(file))
    last = np.flatnonzero(steps.timeouts)  # the data goes on at the goal, where each step is marked terminal
    starts = np.append(0, last[:-1] + 1)
    reached = np.array([steps.rewards[start : end + 1].max() > 0 for start, end in zip(starts, last, strict=True)])
    return count(reached, uprightness(steps.observations[last]))


def of_policy(run: Path, seed: int, episodes: int) -> dict[str, int]:
    task, found = get_task("antmaze-umaze-v0"), []
    env, policy = make_env(task.env), load_policy(run, seed=seed, outside="ignore")
    for number in range(episodes):
        obs, _ = env.reset(seed=FIRST_START + number)
        policy.reset()
        for _ in range(task.episode_limit):
            obs, reward, ended, cut, _ = env.step(policy.act(obs))
            if reward > 0 or ended or cut:
                break
        found.append((reward > 0, uprightness(obs)))  # pyright: ignore[reportPossiblyUnboundVariable]
    return count(*(np.array(column) for column in zip(*found, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    config = Run.open(values.run).config
    result = {"data": of_data(config["file"])}
    print(result, flush=True)
    for seed in range(config["training"]["seeds"]):
        result[f"seed {seed}"] = of_policy(values.run, seed, values.episodes)
        print(result, flush=True)
    if values.json:
        values.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
