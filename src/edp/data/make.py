"""Making data sets: roll out behaviour policies in an environment and write D4RL's layout."""

import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from edp.data import d4rl
from edp.data.behaviours import SquashedGaussian
from edp.errors import UserError, first_line

PARALLEL = 16  # episodes at a time: one policy call serves them all
SHARD = 50_000  # rows that one process makes in one go; the seeds of a shard are its own


@dataclass(frozen=True)
class Behaviour:
    name: str
    policy: SquashedGaussian
    share: float = 1.0


class Shard(NamedTuple):
    """A stretch of one behaviour's rows."""

    behaviour: int
    rows: int
    seeds: np.random.SeedSequence


def make(
    path: Path,
    env_id: str,
    behaviours: list[Behaviour],
    transitions: int,
    seed: int,
    on_progress: Callable[[int], None] = lambda _: None,
    attributes: dict[str, str] | None = None,
    processes: int | None = None,
) -> None:
    """Write exactly ``transitions`` rows, split over the behaviours by their shares.

    The work is shared among processes (by default, as many as there are cores); the rows do not depend on their number.
    """
    shares = np.array([b.share for b in behaviours])
    ends = np.round(transitions * np.cumsum(shares) / shares.sum()).astype(int)
    counts = np.diff(ends, prepend=0)
    if counts.min() < 1:
        raise UserError(f"{transitions} transitions are too few for these policies and shares")
    if seed < 0:
        raise UserError(f"a seed must be at least 0, not {seed}")
    for behaviour in behaviours:
        check_fits(behaviour, make_env(env_id), env_id)
    d4rl.check_writable(path)
    shards = [shard for i, count in enumerate(counts) for shard in split(i, int(count), seed)]
    policies = [behaviour.policy for behaviour in behaviours]
    parts = run_shards(env_id, policies, shards, processes or len(os.sched_getaffinity(0)), on_progress)
    made = []
    for i, behaviour in enumerate(behaviours):
        returns = np.concatenate(
            [whole_returns(*part) for s, part in zip(shards, parts, strict=True) if s.behaviour == i]
        )
        summary = {"episodes": len(returns), "mean_return": float(np.mean(returns))}
        made.append({"name": behaviour.name, "transitions": int(counts[i]), **summary})
    arrays = {key: np.concatenate([part[key] for part, _ in parts]) for key in KEYS}
    packages = {f"{name}_version": version(name) for name in ("edp", "mujoco", "gymnasium", "numpy")}
    d4rl.write(
        path, arrays, {"env": env_id, "seed": seed, "behaviours": json.dumps(made), **packages, **(attributes or {})}
    )


def split(behaviour: int, count: int, seed: int) -> list[Shard]:
    """A behaviour's rows in shards."""
    starts = range(0, count, SHARD)
    entropy = [[seed, behaviour] if start == 0 else [seed, behaviour, start] for start in starts]
    return [
        Shard(behaviour, min(SHARD, count - start), np.random.SeedSequence(numbers))
        for start, numbers in zip(starts, entropy, strict=True)
    ]


def whole_returns(part: dict[str, np.ndarray], cut: bool) -> np.ndarray:
    """Returns of a shard's episodes, without the last one if it was cut off (and is not the only one)."""
    returns = d4rl.episode_returns(part["rewards"], part["terminals"] | part["timeouts"])
    return returns[:-1] if cut and len(returns) > 1 else returns


def run_shards(
    env_id: str,
    policies: list[SquashedGaussian],
    shards: list[Shard],
    processes: int,
    on_progress: Callable[[int], None],
) -> list[tuple[dict[str, np.ndarray], bool]]:
    """Every shard's arrays, in order."""
    if min(processes, len(shards)) == 1:
        done, parts = 0, []
        for shard in shards:
            parts.append(run_shard(env_id, policies[shard.behaviour], shard, lambda n, d=done: on_progress(d + n)))
            done += shard.rows
        return parts
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", len(shards), lock=False)
    with ProcessPoolExecutor(min(processes, len(shards)), context, count_in, (counters,)) as pool:
        futures = [
            pool.submit(run_counted, env_id, policies[shard.behaviour], shard, i) for i, shard in enumerate(shards)
        ]
        try:
            while wait(futures, timeout=0.2).not_done:
                on_progress(sum(counters))
                if any(future.done() and future.exception() for future in futures):
                    break
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


COUNTERS: Any = None  # of a worker process: rows that each shard has so far


def count_in(counters: Any) -> None:
    global COUNTERS
    COUNTERS = counters


def run_counted(env_id: str, policy: SquashedGaussian, shard: Shard, index: int) -> tuple[dict[str, np.ndarray], bool]:
    def note(rows: int) -> None:
        COUNTERS[index] = rows

    return run_shard(env_id, policy, shard, note)


def run_shard(
    env_id: str, policy: SquashedGaussian, shard: Shard, on_progress: Callable[[int], None]
) -> tuple[dict[str, np.ndarray], bool]:
    return roll_out(policy, [make_env(env_id) for _ in range(PARALLEL)], shard.rows, shard.seeds, on_progress)


def make_env(env_id: str) -> gymnasium.Env:
    import edp.envs  # noqa: F401  (registers ours)

    try:
        return gymnasium.make(env_id, disable_env_checker=True)
    except (gymnasium.error.Error, ImportError) as error:
        raise UserError(f"environment {env_id!r}: {first_line(error)}") from None


def check_fits(behaviour: Behaviour, env: gymnasium.Env, env_id: str) -> None:
    policy, shapes = behaviour.policy, (env.observation_space.shape, env.action_space.shape)
    if shapes != ((policy.obs_dim,), (policy.act_dim,)):
        raise UserError(
            f"policy {behaviour.name!r} maps {policy.obs_dim} observations to {policy.act_dim} actions, "
            f"but {env_id} has spaces {shapes[0]} and {shapes[1]}"
        )
    low, high = env.action_space.low, env.action_space.high  # pyright: ignore
    if np.any(low != -1) or np.any(high != 1):
        raise UserError(f"{env_id}: actions are in [{low.min():g}, {high.max():g}], but policies give them in [-1, 1]")


class Episode:
    """One episode being recorded."""

    def __init__(self, index: int, env: gymnasium.Env, seed: int):
        self.index, self.env = index, env
        self.rows: list[tuple] = []
        self.obs, _ = env.reset(seed=seed)

    def step(self, action: np.ndarray) -> bool:
        next_obs, reward, terminal, timeout, _ = self.env.step(action)
        self.rows.append((self.obs, action, reward, terminal, timeout and not terminal, next_obs))
        self.obs = next_obs
        return terminal or timeout


KEYS = ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations")
DTYPES = (np.float32, np.float32, np.float32, bool, bool, np.float32)


def roll_out(
    policy: SquashedGaussian,
    envs: list[gymnasium.Env],
    count: int,
    seeds: np.random.SeedSequence,
    on_progress: Callable[[int], None],
) -> tuple[dict[str, np.ndarray], bool]:
    """The first ``count`` transitions of episodes 0, 1, 2, …, and whether the last one was cut off (by a timeout).

    Episodes are kept in the order of their numbers, not of their ends: otherwise short ones would be favoured.
    """
    action_seeds, env_seeds = seeds.spawn(2)
    rng, reset_rng = np.random.default_rng(action_seeds), np.random.default_rng(env_seeds)

    def start(index: int, env: gymnasium.Env) -> Episode:
        return Episode(index, env, int(reset_rng.integers(2**31)))

    running = [start(i, env) for i, env in enumerate(envs)]
    finished: dict[int, Episode] = {}
    rows: list[tuple] = []
    following, kept = len(envs), 0
    while len(rows) < count:
        actions = policy(np.stack([episode.obs for episode in running]), rng)
        for slot, action in enumerate(actions):
            episode = running[slot]
            if episode.step(action):
                finished[episode.index] = episode
                running[slot] = start(following, episode.env)
                following += 1
        while kept in finished:
            rows += finished.pop(kept).rows
            kept += 1
            on_progress(min(len(rows), count))
    columns = zip(*rows[:count], strict=True)
    arrays = {key: np.asarray(column, dtype) for key, dtype, column in zip(KEYS, DTYPES, columns, strict=True)}
    cut = not (arrays["terminals"][-1] or arrays["timeouts"][-1])
    arrays["timeouts"][-1] |= cut
    return arrays, cut
