"""Making data sets: roll out behaviour policies in an environment and write D4RL's layout."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np

import edp
from edp.data.dataset import episode_returns
from edp.data.formats.hdf5 import write_hdf5
from edp.data.synthesis.behaviours import Actor
from edp.data.synthesis.jobs import Job, Part, Progress, run_jobs
from edp.envs.make import make_env
from edp.errors import UserError, counted
from edp.files import check_writable
from edp.memory import show_size, total_memory

SHARD = 100_000  # rows of one job; each job has separate seeds
LARGE = 20_000  # rows from which starting processes with narrow matmuls saves time
Columns = dict[str, np.ndarray]


class Style(NamedTuple):
    """Settings that change the random numbers and the rounding of the rows, but not their distribution."""

    parallel: int = 32  # episodes at a time: one policy call serves them all
    narrow: bool = True  # matmuls without AVX-512, which slows down the simulation that follows them by a quarter


STYLE = Style()


@dataclass(frozen=True)
class Behaviour:
    name: str
    actor: Actor
    share: float = 1.0
    noise: float = 0.0  # std of the Gaussian noise that is added to actions


@dataclass(frozen=True)
class RollOut:
    """A job that rolls out one behaviour."""

    env: str
    behaviour: Behaviour
    rows: int
    seeds: np.random.SeedSequence
    parallel: int

    def __call__(self, on_progress: Progress) -> Part:
        envs = [make_env(self.env) for _ in range(self.parallel)]
        return roll_out(self.behaviour, envs, self.rows, self.seeds, on_progress)


def make_dataset(
    path: Path,
    env_id: str,
    behaviours: list[Behaviour],
    transitions: int,
    seed: int,
    on_progress: Progress = lambda _: None,
    attributes: dict[str, str] | None = None,
    processes: int | None = None,
    episode_return: str = "sum",
    style: Style = STYLE,
) -> None:
    """Write a file with exactly ``transitions`` rows, split over the behaviours by their shares."""
    check_memory(transitions, make_env(env_id))
    shares = np.array([b.share for b in behaviours])
    ends = np.round(transitions * np.cumsum(shares) / shares.sum()).astype(int)
    counts = np.diff(ends, prepend=0)
    if counts.min() < 1:
        raise UserError(f"{counted(transitions, 'transition')}: too few for these policies and shares")
    for behaviour in behaviours:
        check_fits(behaviour, make_env(env_id), env_id)
    plan = [
        (behaviour.name, split_into_jobs(env_id, behaviour, i, int(count), seed, style.parallel))
        for i, (behaviour, count) in enumerate(zip(behaviours, counts, strict=True))
    ]
    run_and_write(path, env_id, plan, seed, on_progress, attributes, processes, episode_return, style.narrow)


def run_and_write(
    path: Path,
    env_id: str,
    plan: Sequence[tuple[str, Sequence[Job]]],
    seed: int,
    on_progress: Progress = lambda _: None,
    attributes: dict[str, str] | None = None,
    processes: int | None = None,
    episode_return: str = "sum",
    narrow: bool = True,
) -> None:
    """Run the jobs of every named source and write their rows to a file.

    ``processes`` (by default, one per core) share the work. Their number does not change the rows.
    """
    check_writable(path, overwrite=True)
    jobs = [job for _, jobs in plan for job in jobs]
    narrow = narrow and sum(job.rows for job in jobs) >= LARGE
    parts = run_jobs(jobs, processes or usable_cores(), on_progress, narrow)
    columns, made = concatenate([part.columns for part in parts]), []
    for key, column in columns.items():
        if not np.isfinite(column).all():
            raise UserError(f"{path}: not written, because {env_id} gave {key} with NaN or Inf")
    for name, jobs in plan:
        own, parts = parts[: len(jobs)], parts[len(jobs) :]
        returns = np.concatenate([whole_returns(part, episode_return) for part in own])
        summary = {"episodes": len(returns), "mean_return": float(np.mean(returns))}
        made.append({"name": name, "transitions": sum(job.rows for job in jobs), **summary})
    versions = {"edp": edp.__version__} | {name: version(name) for name in ("mujoco", "gymnasium", "numpy")}
    packages = {f"{name}_version": value for name, value in versions.items()}
    about = {"env": env_id, "seed": seed, "behaviours": json.dumps(made)}
    write_hdf5(path, columns, about | packages | (attributes or {}))


def usable_cores() -> int:
    """The cores that this process may use, where the system tells; otherwise all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def concatenate(parts: list[Columns]) -> Columns:
    return {key: np.concatenate([part[key] for part in parts]) for key in KEYS}


def split_into_jobs(
    env_id: str, behaviour: Behaviour, index: int, count: int, seed: int, parallel: int
) -> list[RollOut]:
    """Split a behaviour's rows into jobs of at most ``SHARD`` rows."""
    starts = range(0, count, SHARD)
    entropy = [[seed, index] if start == 0 else [seed, index, start] for start in starts]
    return [
        RollOut(env_id, behaviour, min(SHARD, count - start), np.random.SeedSequence(numbers), parallel)
        for start, numbers in zip(starts, entropy, strict=True)
    ]


def whole_returns(part: Part, episode_return: str) -> np.ndarray:
    """Return the returns of a part's episodes, without the last if it was cut off and is not the only one."""
    rewards, terminals, timeouts = (part.columns[key] for key in ("rewards", "terminals", "timeouts"))
    returns = episode_returns(rewards, terminals, timeouts, episode_return)
    return returns[:-1] if part.cut and len(returns) > 1 else returns


def check_memory(transitions: int, env: gymnasium.Env) -> None:
    """Refuse more rows than the memory of this machine holds, before any is made."""
    spaces = env.observation_space, env.observation_space, env.action_space  # a row has the next observation, too
    needed = transitions * sum(math.prod(space.shape or ()) for space in spaces) * np.dtype(np.float32).itemsize
    if needed > total_memory():
        sizes = f"{show_size(needed)} of memory, and this machine has {show_size(total_memory())}"
        raise UserError(f"`transitions={transitions}`: the rows would need at least {sizes}: make fewer")


def check_fits(behaviour: Behaviour, env: gymnasium.Env, env_id: str) -> None:
    actor, shapes = behaviour.actor, (env.observation_space.shape, env.action_space.shape)
    if shapes != ((actor.obs_dim,), (actor.act_dim,)):
        raise UserError(
            f"policy {behaviour.name!r} maps {counted(actor.obs_dim, 'observation')} to "
            f"{counted(actor.act_dim, 'action')}, "
            f"but {env_id} has spaces {shapes[0]} and {shapes[1]}"
        )
    low, high = env.action_space.low, env.action_space.high  # pyright: ignore
    if np.any(low != -1) or np.any(high != 1):
        raise UserError(f"{env_id}: actions are in [{low.min():g}, {high.max():g}], but policies give them in [-1, 1]")


class Episode:
    """An episode that is being recorded."""

    def __init__(self, index: int, env: gymnasium.Env, actor: Actor, seed: int):
        self.index, self.env, self.actor = index, env, actor
        self.rows: list[tuple] = []
        self.obs, self.aim = actor.begin(env, seed)

    @property
    def inputs(self) -> np.ndarray:
        return self.actor.inputs(self.obs, self.aim)

    def step(self, action: np.ndarray) -> bool:
        next_obs, reward, terminal, timeout, _ = self.env.step(action)
        self.rows.append((self.obs, action, reward, terminal, timeout, next_obs))
        self.obs = next_obs
        return self.actor.is_over(terminal, timeout)


KEYS = ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations")
DTYPES = (np.float32, np.float32, np.float32, bool, bool, np.float32)


def to_columns(rows: list[tuple]) -> Columns:
    columns = zip(*rows, strict=True)
    return {key: np.asarray(column, dtype) for key, dtype, column in zip(KEYS, DTYPES, columns, strict=True)}


def roll_out(
    behaviour: Behaviour,
    envs: list[gymnasium.Env],
    count: int,
    seeds: np.random.SeedSequence,
    on_progress: Progress,
) -> Part:
    """Record the first ``count`` transitions of episodes 0, 1, 2, …; a last episode that is cut off has a timeout.

    Episodes are kept in the order of their starts, not of their ends, which would favour short ones.
    """
    action_seeds, env_seeds = seeds.spawn(2)
    rng, reset_rng = np.random.default_rng(action_seeds), np.random.default_rng(env_seeds)
    actor, noise = behaviour.actor, behaviour.noise

    def start(index: int, env: gymnasium.Env) -> Episode:
        return Episode(index, env, actor, int(reset_rng.integers(2**31)))

    running = [start(i, env) for i, env in enumerate(envs)]
    finished: dict[int, Episode] = {}
    rows: list[tuple] = []
    following, kept = len(envs), 0
    while len(rows) < count:
        with np.errstate(all="ignore"):  # the next line looks at the result
            actions = actor(np.array([episode.inputs for episode in running]), rng)
        if not np.isfinite(actions).all():
            raise UserError(
                f"policy {behaviour.name!r} gave an action with NaN or Inf after {counted(len(rows), 'step')}"
            )
        if noise:
            actions = np.clip(actions + noise * rng.standard_normal(actions.shape, dtype=np.float32), -1, 1)
        wanted = count - len(rows)
        for slot in needed_slots(running, finished, wanted):
            episode = running[slot]
            if episode.step(actions[slot]):
                finished[episode.index] = episode
                running[slot] = start(following, episode.env)
                following += 1
        while kept in finished and len(rows) < count:
            rows += finished.pop(kept).rows
            kept += 1
            on_progress(min(len(rows), count))
    cut = len(rows) > count
    columns = to_columns(rows[:count])
    columns["timeouts"][-1] |= cut
    return Part(columns, cut)


def needed_slots(running: list[Episode], finished: dict[int, Episode], wanted: int) -> list[int]:
    """Return the slots of episodes that may be among the next ``wanted`` rows: those with fewer rows before them."""
    everything = [*running, *finished.values()]
    if sum(len(episode.rows) for episode in everything) < wanted:
        return list(range(len(running)))
    before, slots = 0, {episode.index: slot for slot, episode in enumerate(running)}
    for episode in sorted(everything, key=lambda episode: episode.index):
        if before >= wanted:
            slots.pop(episode.index, None)
        before += len(episode.rows)
    return sorted(slots.values())
