"""Rollouts: all episodes of all seeds in one batch."""

from collections import deque
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple, Protocol

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.actors import Actors
from edp.acting.selection import act, initial_memories
from edp.data.units import Units
from edp.errors import first_line

CPU_GROUPS = 2  # of episodes; a fixed number, so that scores do not depend on the number of cores


class StoppedError(Exception):
    """The caller asked to stop."""


class Episodes(NamedTuple):
    """Results of episodes: a row per seed, a column per episode."""

    returns: np.ndarray  # NaN where the episode failed
    lengths: np.ndarray
    failures: dict[tuple[int, int], str]  # reason, by (row, column)


class Choose(Protocol):
    def __call__(self, obs: np.ndarray, rewards: np.ndarray, steps: np.ndarray) -> np.ndarray: ...


class Pool:
    """Environments for reuse. One that failed is replaced by a new one."""

    def __init__(self, make: Callable[[], gymnasium.Env], size: int):
        self.make, self.size = make, size
        self.free = deque(make() for _ in range(size))

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return self.free[0].observation_space.shape  # pyright: ignore

    @contextmanager
    def split(self, count: int) -> Iterator[list["Pool"]]:
        """Deal the environments out to ``count`` smaller pools, and take them back at the end."""
        parts = [Pool(self.make, 0) for _ in range(count)]
        for number in range(self.size):
            parts[number % count].free.append(self.free.popleft())
        yield parts
        self.free.extend(env for part in parts for env in part.free)

    def replace(self, env: gymnasium.Env) -> gymnasium.Env:
        with suppress(Exception):  # a broken environment may fail here, too
            env.close()
        return self.make()


def roll_out(
    choose: Choose, pools: list[Pool], episodes: int, first_seed: int, without: Set[int] = frozenset()
) -> Episodes:
    """Play ``episodes`` episodes per pool, as many at a time as it has environments.

    ``choose`` returns the actions of all running episodes at once, given the rewards of the previous actions. Column
    ``j`` starts from the same state for every seed and keeps its place in the batch. If an environment raises or
    returns NaN, its episode fails and the others go on. Rows in ``without`` are left out.
    """
    shape = (len(pools), episodes)
    obs, rewards, steps = np.zeros((*shape, *pools[0].observation_shape)), np.zeros(shape), np.zeros(shape, int)
    returns, failures = np.zeros(shape), {}
    returns[list(without)] = np.nan
    waiting = [deque(() if row in without else range(episodes)) for row in range(len(pools))]
    running: dict[tuple[int, int], gymnasium.Env] = {}

    def finish(place: tuple[int, int], failure: str = "") -> None:
        env = running.pop(place)
        if failure:
            failures[place], returns[place] = failure, np.nan
            env = pools[place[0]].replace(env)
        obs[place] = rewards[place] = 0
        pools[place[0]].free.append(env)

    def attempt(place: tuple[int, int], call: Callable[[], tuple]) -> tuple | None:
        """Call an environment. Returns None, and ends the episode, if it raises or returns NaN."""
        try:
            result = call()
        except Exception as error:
            finish(place, f"{type(error).__name__} at step {steps[place]}: {first_line(error)}")
            return None
        if not np.isfinite(result[0]).all() or (len(result) == 5 and not np.isfinite(result[1])):
            finish(place, f"NaN or Inf at step {steps[place]}")
            return None
        return result

    def start() -> None:
        for row, pool in enumerate(pools):
            while waiting[row] and pool.free:
                place = row, waiting[row].popleft()
                env = running[place] = pool.free.popleft()
                result = attempt(place, partial(env.reset, seed=first_seed + place[1]))
                if result:
                    obs[place] = result[0]

    start()
    while running:
        actions = choose(obs, rewards, steps)
        for place, env in list(running.items()):
            result = attempt(place, partial(env.step, actions[place]))
            if result:
                obs[place], rewards[place], terminal, timeout, _ = result
                returns[place] += rewards[place]
                steps[place] += 1
                if terminal or timeout:
                    finish(place)
        start()
    return Episodes(returns, steps, failures)


def roll_out_policies(
    actors: Actors,
    pools: list[Pool],
    *,
    episodes: int,
    seed: int,
    units: Units | None = None,
    first_row: int = 0,
    without: Set[int] = frozenset(),
    stopping: Callable[[], bool] = lambda: False,
) -> Episodes:
    """Play episodes with every seed's policy. The same ``seed`` gives the same start states and random numbers.

    ``first_row`` is the row of the first policy, if a process plays only some of a run's policies.

    Episodes are played in groups that do not depend on each other. On a CPU each group has a thread: while one waits
    for its environments, another one computes.
    """
    count = min(episodes, CPU_GROUPS if jax.default_backend() == "cpu" else 1)
    env_key = lambda row, column: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), row), column)  # noqa: E731

    def play_group(columns: np.ndarray, pools: list[Pool]) -> Episodes:
        rows = first_row + jnp.arange(len(pools))
        keys = jax.vmap(jax.vmap(env_key, (None, 0)), (0, None))(rows, jnp.asarray(columns))
        memories = initial_memories(actors.policies, len(columns))

        def choose(obs: np.ndarray, rewards: np.ndarray, steps: np.ndarray) -> np.ndarray:
            nonlocal memories
            if stopping():
                raise StoppedError
            seen = units.observations_to_network(obs) if units else obs.astype(np.float32)
            inputs = seen, rewards.astype(np.float32), steps.astype(np.int32)
            memories, chosen = act(actors.policies, actors.critics, memories, *inputs, keys, actors.selection)
            return units.actions_from_network(np.asarray(chosen)) if units else np.asarray(chosen)

        return roll_out(choose, pools, len(columns), first_seed=seed + int(columns[0]), without=without)

    groups = np.array_split(np.arange(episodes), count)
    if all(pool.size >= count for pool in pools):
        with ExitStack() as stack, ThreadPoolExecutor(count) as threads:
            parts = [stack.enter_context(pool.split(count)) for pool in pools]
            played = list(threads.map(play_group, groups, map(list, zip(*parts, strict=True))))
    else:
        played = [play_group(group, pools) for group in groups]
    failures = {
        (row, column + int(group[0])): reason
        for group, part in zip(groups, played, strict=True)
        for (row, column), reason in part.failures.items()
    }
    join = lambda arrays: np.concatenate(list(arrays), axis=1)  # noqa: E731
    return Episodes(join(part.returns for part in played), join(part.lengths for part in played), failures)
