"""Making data sets: roll out behaviour policies in an environment and write D4RL's layout."""

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np

import edp
from edp.data.formats import hdf5
from edp.data.log import episode_returns
from edp.data.synthesis.behaviours import Actor
from edp.envs.make import make_env
from edp.errors import UserError
from edp.files import check_writable

SHARD = 100_000  # rows that one process makes in one go; the seeds of a shard are its own
LARGE = 20_000  # rows from which on it is worth to start processes with another linear algebra
Progress = Callable[[int], None]
Columns = dict[str, np.ndarray]


class Style(NamedTuple):
    """What does not change what is made, but the random numbers and the rounding on the way."""

    parallel: int = 32  # episodes at a time: one policy call serves them all
    narrow: bool = True  # matmuls without AVX-512, which slows down the simulation that follows them by a quarter


STYLE = Style()


@dataclass(frozen=True)
class Behaviour:
    name: str
    actor: Actor
    share: float = 1.0
    noise: float = 0.0  # std of what is added to its actions


class Part(NamedTuple):
    """Rows that one job made."""

    columns: Columns
    cut: bool  # the last episode was cut off


class Job(Protocol):
    """A stretch of rows that one process makes; it has all that it needs."""

    @property
    def rows(self) -> int: ...

    def __call__(self, on_progress: Progress) -> Part: ...


@dataclass(frozen=True)
class RollOut:
    """Rows of one behaviour."""

    env: str
    behaviour: Behaviour
    rows: int
    seeds: np.random.SeedSequence
    parallel: int

    def __call__(self, on_progress: Progress) -> Part:
        envs = [make_env(self.env) for _ in range(self.parallel)]
        return roll_out(self.behaviour, envs, self.rows, self.seeds, on_progress)


def make(
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
    """Write exactly ``transitions`` rows, split over the behaviours by their shares."""
    shares = np.array([b.share for b in behaviours])
    ends = np.round(transitions * np.cumsum(shares) / shares.sum()).astype(int)
    counts = np.diff(ends, prepend=0)
    if counts.min() < 1:
        raise UserError(f"{transitions} transitions are too few for these policies and shares")
    for behaviour in behaviours:
        check_fits(behaviour, make_env(env_id), env_id)
    plan = [
        (behaviour.name, split(env_id, behaviour, i, int(count), seed, style.parallel))
        for i, (behaviour, count) in enumerate(zip(behaviours, counts, strict=True))
    ]
    write(path, env_id, plan, seed, on_progress, attributes, processes, episode_return, style.narrow)


def write(
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
    """Do the jobs of every named source, and write what they made.

    The work is shared among processes (by default, as many as there are cores); the rows do not depend on their number.
    """
    check_writable(path)
    jobs = [job for _, jobs in plan for job in jobs]
    narrow = narrow and sum(job.rows for job in jobs) >= LARGE
    parts = run_jobs(jobs, processes or len(os.sched_getaffinity(0)), on_progress, narrow)
    columns, made = concatenate([part.columns for part in parts]), []
    for name, jobs in plan:
        own, parts = parts[: len(jobs)], parts[len(jobs) :]
        returns = np.concatenate([whole_returns(part, episode_return) for part in own])
        summary = {"episodes": len(returns), "mean_return": float(np.mean(returns))}
        made.append({"name": name, "transitions": sum(job.rows for job in jobs), **summary})
    versions = {"edp": edp.__version__} | {name: version(name) for name in ("mujoco", "gymnasium", "numpy")}
    packages = {f"{name}_version": value for name, value in versions.items()}
    about = {"env": env_id, "seed": seed, "behaviours": json.dumps(made)}
    hdf5.write(path, columns, about | packages | (attributes or {}))


def concatenate(parts: list[Columns]) -> Columns:
    return {key: np.concatenate([part[key] for part in parts]) for key in KEYS}


def split(env_id: str, behaviour: Behaviour, index: int, count: int, seed: int, parallel: int) -> list[RollOut]:
    """A behaviour's rows in shards."""
    starts = range(0, count, SHARD)
    entropy = [[seed, index] if start == 0 else [seed, index, start] for start in starts]
    return [
        RollOut(env_id, behaviour, min(SHARD, count - start), np.random.SeedSequence(numbers), parallel)
        for start, numbers in zip(starts, entropy, strict=True)
    ]


def whole_returns(part: Part, episode_return: str) -> np.ndarray:
    """Returns of a part's episodes, without the last one if it was cut off (and is not the only one)."""
    rewards, terminals, timeouts = (part.columns[key] for key in ("rewards", "terminals", "timeouts"))
    returns = episode_returns(rewards, terminals, timeouts, episode_return)
    return returns[:-1] if part.cut and len(returns) > 1 else returns


def run_jobs(jobs: Sequence[Job], processes: int, on_progress: Progress, narrow: bool) -> list[Part]:
    """What every job made, in order."""
    if min(processes, len(jobs)) == 1 and not narrow:
        done, parts = 0, []
        for job in jobs:
            parts.append(job(lambda n, d=done: on_progress(d + n)))
            done += job.rows
        return parts
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", len(jobs), lock=False)
    with (
        environment(worker_environment(narrow)),
        ProcessPoolExecutor(min(processes, len(jobs)), context, count_in, (counters,)) as pool,
    ):
        futures = [pool.submit(run_counted, job, i) for i, job in enumerate(jobs)]
        try:
            while wait(futures, timeout=0.2).not_done:
                on_progress(sum(counters))
                if any(future.done() and future.exception() for future in futures):
                    break
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def worker_environment(narrow: bool) -> dict[str, str]:
    """For processes that make data: linear algebra in one thread, for the others have cores of their own."""
    wide = narrow and "avx512f" in cpu_flags()
    return {"OPENBLAS_NUM_THREADS": "1"} | ({"OPENBLAS_CORETYPE": "Haswell"} if wide else {})


def cpu_flags() -> set[str]:
    """What the processor can do, where Linux tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return set(line.split())
    return set()


@contextmanager
def environment(values: dict[str, str]):
    """Processes that are started meanwhile have these variables."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


COUNTERS: Any = None  # of a worker process: rows that each job has so far


def count_in(counters: Any) -> None:
    global COUNTERS
    COUNTERS = counters


def run_counted(job: Job, index: int) -> Part:
    def note(rows: int) -> None:
        COUNTERS[index] = rows

    return job(note)


def check_fits(behaviour: Behaviour, env: gymnasium.Env, env_id: str) -> None:
    actor, shapes = behaviour.actor, (env.observation_space.shape, env.action_space.shape)
    if shapes != ((actor.obs_dim,), (actor.act_dim,)):
        raise UserError(
            f"policy {behaviour.name!r} maps {actor.obs_dim} observations to {actor.act_dim} actions, "
            f"but {env_id} has spaces {shapes[0]} and {shapes[1]}"
        )
    low, high = env.action_space.low, env.action_space.high  # pyright: ignore
    if np.any(low != -1) or np.any(high != 1):
        raise UserError(f"{env_id}: actions are in [{low.min():g}, {high.max():g}], but policies give them in [-1, 1]")


class Episode:
    """One episode being recorded."""

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
    """The first ``count`` transitions of episodes 0, 1, 2, …; if the last one is cut off, it ends with a timeout.

    Episodes are kept in the order of their numbers, not of their ends: otherwise short ones would be favoured.
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
        actions = actor(np.array([episode.inputs for episode in running]), rng)
        if noise:
            actions = np.clip(actions + noise * rng.standard_normal(actions.shape, dtype=np.float32), -1, 1)
        wanted = count - len(rows)
        for slot in needed(running, finished, wanted):
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


def needed(running: list[Episode], finished: dict[int, Episode], wanted: int) -> list[int]:
    """The slots of episodes that may be among the next ``wanted`` rows: those with fewer rows before them."""
    everything = [*running, *finished.values()]
    if sum(len(episode.rows) for episode in everything) < wanted:
        return list(range(len(running)))
    before, slots = 0, {episode.index: slot for slot, episode in enumerate(running)}
    for episode in sorted(everything, key=lambda episode: episode.index):
        if before >= wanted:
            slots.pop(episode.index, None)
        before += len(episode.rows)
    return sorted(slots.values())
