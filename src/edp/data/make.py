"""Making data sets: roll out behaviour policies in an environment and write D4RL's layout."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import gymnasium
import numpy as np

from edp.data import d4rl
from edp.data.behaviours import SquashedGaussian
from edp.errors import UserError, first_line

PARALLEL = 16  # episodes at a time: one policy call serves them all


@dataclass(frozen=True)
class Behaviour:
    name: str
    policy: SquashedGaussian
    share: float = 1.0


def make(
    path: Path,
    env_id: str,
    behaviours: list[Behaviour],
    transitions: int,
    seed: int,
    on_progress: Callable[[int], None] = lambda _: None,
    attributes: dict[str, str] | None = None,
) -> None:
    """Write exactly ``transitions`` rows, split over the behaviours by their shares."""
    shares = np.array([b.share for b in behaviours])
    ends = np.round(transitions * np.cumsum(shares) / shares.sum()).astype(int)
    if np.diff(ends, prepend=0).min() < 1:
        raise UserError(f"{transitions} transitions are too few for these policies and shares")
    if seed < 0:
        raise UserError(f"a seed must be at least 0, not {seed}")
    envs = [make_env(env_id) for _ in range(PARALLEL)]
    for behaviour in behaviours:
        check_fits(behaviour, envs[0], env_id)
    d4rl.check_writable(path)
    parts, made = [], []
    for i, (behaviour, count) in enumerate(zip(behaviours, np.diff(ends, prepend=0), strict=True)):
        done = ends[i] - count
        part, cut = roll_out(
            behaviour.policy,
            envs,
            int(count),
            np.random.SeedSequence([seed, i]),
            lambda n, d=done: on_progress(int(d + n)),
        )
        returns = d4rl.episode_returns(part["rewards"], part["terminals"] | part["timeouts"])
        if cut and len(returns) > 1:
            returns = returns[:-1]
        parts.append(part)
        made.append(
            {
                "name": behaviour.name,
                "transitions": int(count),
                "episodes": len(returns),
                "mean_return": float(np.mean(returns)),
            }
        )
    arrays = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    packages = {f"{name}_version": version(name) for name in ("edp", "mujoco", "gymnasium", "numpy")}
    d4rl.write(
        path, arrays, {"env": env_id, "seed": seed, "behaviours": json.dumps(made), **packages, **(attributes or {})}
    )


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
