"""D4RL's kitchen data: the controls of teleoperated demonstrations, replayed in the simulator.

A log is an ``.npz`` with the demonstrations one after the other: ``qpos``, ``qvel`` and ``ctrl`` of every control step,
and the ``length`` of each demonstration (the layout of relay-policy-learning's logs at every 40th row).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edp.data.formats.npz import read_npz
from edp.data.synthesis.jobs import Part, Progress
from edp.data.synthesis.make import to_columns
from edp.data.units import ACTION_LIMIT
from edp.envs.make import make_env
from edp.errors import UserError

TOGETHER = 16  # demonstrations in one job
REACH = 0.16  # how far a full action moves a joint's target: 2 rad/s for 0.08 s
COLUMNS = {"qpos": 30, "qvel": 29, "ctrl": 9}


@dataclass(frozen=True)
class Demonstration:
    """The state at the start, and the joints' targets at each step."""

    qpos: np.ndarray
    qvel: np.ndarray
    controls: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.controls)


@dataclass(frozen=True)
class Replay:
    """A job that replays demonstrations in a kitchen."""

    env: str
    demonstrations: list[Demonstration]
    seeds: list[int]

    @property
    def rows(self) -> int:
        return sum(demonstration.rows for demonstration in self.demonstrations)

    def __call__(self, on_progress: Progress) -> Part:
        kitchen, rows = make_env(self.env).unwrapped, []
        for demonstration, seed in zip(self.demonstrations, self.seeds, strict=True):
            rows += replay(kitchen, demonstration, seed)
            on_progress(len(rows))
        return Part(to_columns(rows), cut=False)


def replay(kitchen, demonstration: Demonstration, seed: int) -> Iterator[tuple]:
    """Yield the rows of an episode. Rewards count the tasks that are done before the step; the last row is terminal."""
    kitchen.reset(seed=seed)
    kitchen.robot.set_state(demonstration.qpos, demonstration.qvel)
    obs = kitchen.observe(kitchen.robot._get_obs())
    for left, control in zip(range(demonstration.rows - 1, -1, -1), demonstration.controls, strict=True):
        action = np.clip((control - obs[:9]) / REACH, -ACTION_LIMIT, ACTION_LIMIT)
        next_obs = kitchen.step(action)[0]
        yield obs, action, len(kitchen.done(obs)), left == 0, False, next_obs
        obs = next_obs


def load_demonstrations(path: Path) -> list[Demonstration]:
    arrays, _ = read_npz(path, "log of demonstrations", (*COLUMNS, "length"))
    missing = [name for name in (*COLUMNS, "length") if name not in arrays]
    if missing:
        raise UserError(f"{path}: not a log of demonstrations: missing {', '.join(missing)}")
    lengths = arrays["length"]
    for name, array in arrays.items():
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise UserError(f"{path}: {name} holds NaN, Inf, or no numbers")
    shapes = {name: arrays[name].shape for name in COLUMNS}
    wanted = {name: (int(lengths.sum()), width) for name, width in COLUMNS.items()}
    if shapes != wanted or lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.min(initial=2) < 2:
        raise UserError(f"{path}: its arrays do not fit together: {shapes}, but lengths ask for {wanted}")
    starts = np.cumsum(lengths) - lengths
    qpos, qvel, ctrl = (arrays[name].astype(np.float64) for name in COLUMNS)
    return [
        Demonstration(qpos[start], qvel[start], ctrl[start : start + length - 1])
        for start, length in zip(starts, lengths, strict=True)
    ]


def replay_jobs(env_id: str, demonstrations: list[Demonstration], seed: int) -> list[Replay]:
    seeds = np.random.SeedSequence(seed).generate_state(len(demonstrations)).tolist()
    starts = range(0, len(demonstrations), TOGETHER)
    return [Replay(env_id, demonstrations[i : i + TOGETHER], seeds[i : i + TOGETHER]) for i in starts]
