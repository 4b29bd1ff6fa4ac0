"""Evaluation: all episodes of all seeds in one batch, with controlled sampling (EDP, section 4.4 and its appendix)."""

from collections import deque
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from edp.data.units import Units
from edp.errors import first_line
from edp.networks import Critic
from edp.policies.base import PLAIN, Control, Policy


class Way(NamedTuple):
    """How to choose among sampled actions. These are numbers that a compiled program is given, not parts of it."""

    control: Control = PLAIN
    temperature: float = 1.0  # of the choice: 0 takes the best
    spread: float | None = None  # std of noise around the samples


PLAIN_WAY = Way()
CPU_GROUPS = 2  # of an evaluation's episodes; a fixed number, so that scores do not depend on the machine's cores


def select_by_energy(
    policy: Policy, critic: Critic | None, obs: Float[Array, "n obs"], key, actions: int, way: Way = PLAIN_WAY
) -> Float[Array, "n act"]:
    """EAS (EDP algorithm 2): of several sampled actions, one is drawn in proportion to exp(min Q / temperature)."""
    candidates, _, chosen = consider(policy, critic, obs, key, actions, way)
    return candidates[0] if len(candidates) == 1 else jnp.take_along_axis(candidates, chosen[None, :, None], axis=0)[0]


def consider(
    policy: Policy, critic: Critic | None, obs: Float[Array, "n obs"], key, actions: int, way: Way = PLAIN_WAY
) -> tuple[Float[Array, "actions n act"], Float[Array, "actions n"], Int[Array, " n"]]:
    """What EAS chooses from, the candidates' energies (0 if nobody values them), and which one it takes."""
    sample_key, choice_key = jax.random.split(key)
    if actions == 1 or critic is None:
        candidates = policy.act(obs, sample_key, way.control)[None]
        energy = jnp.zeros(candidates.shape[:2]) if critic is None else critic(obs, candidates[0]).min(axis=0)[None]
        return candidates, energy, jnp.zeros(len(obs), int)
    candidates = jax.vmap(policy.sample, (None, 0, None))(obs, jax.random.split(sample_key, actions), way.control)
    spread_key, choice_key = jax.random.split(choice_key)
    if way.spread is not None:
        noise = way.spread * jax.random.normal(spread_key, candidates.shape, candidates.dtype)
        candidates = jnp.clip(candidates + noise, -1, 1)
    energy = jax.vmap(critic, (None, 0))(obs, candidates).min(axis=1)
    noise = jax.random.gumbel(choice_key, energy.shape, energy.dtype)
    return candidates, energy, jnp.argmax(energy + way.temperature * noise, axis=0)


@partial(jax.jit, static_argnames="actions")
def act(
    policies: Any,
    critics: Any,
    memories: Any,
    obs: Float[Array, "seeds n obs"],
    rewards: Float[Array, "seeds n"],
    steps: Int[Array, "seeds n"],
    keys: Array,
    way: Way,
    actions: int,
) -> tuple[Any, Float[Array, "seeds n act"]]:
    """New memories, and an action for each environment of each seed; models are stacked over seeds.

    Every environment has a key of its own, so that its actions do not depend on who else is there.
    """

    def one_env(policy, critic, memory, obs, reward, step, key):
        if memory is None:
            key = jax.random.fold_in(key, step)
            return None, select_by_energy(policy, critic, obs[None], key, actions, way)[0]
        memory = jax.tree.map(lambda new, old: jnp.where(step == 0, new, old), policy.memory(1), memory)
        memory, action = policy.step(memory, obs[None], reward[None], step)
        return memory, action[0]

    one_seed = jax.vmap(one_env, (None, None, 0, 0, 0, 0, 0))
    return jax.vmap(one_seed)(policies, critics, memories, obs, rewards, steps, keys)


@partial(jax.jit, static_argnames=("structure", "actions"))
def act_flat(structure: Any, leaves: list[Array], memories, obs, rewards, steps, keys, way: Way, actions: int):
    """``act`` with models that were taken apart before: that takes a while in a control loop."""
    return act(*jax.tree.unflatten(structure, leaves), memories, obs, rewards, steps, keys, way, actions)


class StoppedError(Exception):
    """Somebody asked to stop."""


class Episodes(NamedTuple):
    """One row a seed, one column an episode."""

    returns: np.ndarray  # NaN where the episode failed
    lengths: np.ndarray
    failures: dict[tuple[int, int], str]  # and why


class Choose(Protocol):
    def __call__(self, obs: np.ndarray, rewards: np.ndarray, steps: np.ndarray) -> np.ndarray: ...


class Pool:
    """Environments to be used one after the other; a broken one is replaced."""

    def __init__(self, make: Callable[[], gymnasium.Env], size: int):
        self.make, self.size = make, size
        self.free = deque(make() for _ in range(size))

    @property
    def space(self) -> tuple[int, ...]:
        return self.free[0].observation_space.shape  # pyright: ignore

    @contextmanager
    def split(self, count: int) -> Iterator[list["Pool"]]:
        """The environments dealt out to smaller pools, for the time being."""
        parts = [Pool(self.make, 0) for _ in range(count)]
        for number in range(self.size):
            parts[number % count].free.append(self.free.popleft())
        yield parts
        self.free.extend(env for part in parts for env in part.free)

    def replace(self, env: gymnasium.Env) -> gymnasium.Env:
        with suppress(Exception):  # it has failed before
            env.close()
        return self.make()


def roll_out(
    choose: Choose, pools: list[Pool], episodes: int, first_seed: int, without: Set[int] = frozenset()
) -> Episodes:
    """``episodes`` episodes for each pool, as many at a time as it has environments.

    ``choose`` serves all of them at once, given the rewards of the actions before; column ``j`` starts from the same
    state for every seed, and is always at the same place in the batch. An environment that raises, or gives NaN, costs
    its episode. Rows in ``without`` are left out.
    """
    shape = (len(pools), episodes)
    obs, rewards, steps = np.zeros((*shape, *pools[0].space)), np.zeros(shape), np.zeros(shape, int)
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
        """What an environment gives, if it can be used."""
        try:
            given = call()
        except Exception as error:
            finish(place, f"{type(error).__name__} at step {steps[place]}: {first_line(error)}")
            return None
        if not np.isfinite(given[0]).all() or (len(given) == 5 and not np.isfinite(given[1])):
            finish(place, f"NaN or Inf at step {steps[place]}")
            return None
        return given

    def start() -> None:
        for row, pool in enumerate(pools):
            while waiting[row] and pool.free:
                place = row, waiting[row].popleft()
                env = running[place] = pool.free.popleft()
                given = attempt(place, partial(env.reset, seed=first_seed + place[1]))
                if given:
                    obs[place] = given[0]

    start()
    while running:
        actions = choose(obs, rewards, steps)
        for place, env in list(running.items()):
            given = attempt(place, partial(env.step, actions[place]))
            if given:
                obs[place], rewards[place], terminal, timeout, _ = given
                returns[place] += rewards[place]
                steps[place] += 1
                if terminal or timeout:
                    finish(place)
        start()
    return Episodes(returns, steps, failures)


def evaluate(
    policies: Any,
    critics: Any,
    pools: list[Pool],
    *,
    episodes: int,
    actions: int,
    seed: int,
    way: Way = PLAIN_WAY,
    units: Units | None = None,
    first_row: int = 0,
    without: Set[int] = frozenset(),
    stopping: Callable[[], bool] = lambda: False,
) -> Episodes:
    """Roll out every seed's policy. The same seed gives the same starts and the same draws.

    ``first_row`` is the number of the first of these policies where they are a part of a run's.

    Episodes are played in groups, always the same ones, which take no notice of each other. On a CPU each group has a
    thread: while one waits for its environments, or for what is not a matrix product, another computes.
    """
    count = min(episodes, CPU_GROUPS if jax.default_backend() == "cpu" else 1)
    place = lambda row, column: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), row), column)  # noqa: E731

    def one_group(columns: np.ndarray, pools: list[Pool]) -> Episodes:
        keys = jax.vmap(jax.vmap(place, (None, 0)), (0, None))(first_row + jnp.arange(len(pools)), jnp.asarray(columns))
        memories = jax.vmap(lambda policy: jax.vmap(lambda _: policy.memory(1))(jnp.arange(len(columns))))(policies)

        def choose(obs: np.ndarray, rewards: np.ndarray, steps: np.ndarray) -> np.ndarray:
            nonlocal memories
            if stopping():
                raise StoppedError
            seen = units.observe(obs) if units else obs.astype(np.float32)
            inputs = seen, rewards.astype(np.float32), steps.astype(np.int32)
            memories, chosen = act(policies, critics, memories, *inputs, keys, way, actions)
            return units.act(np.asarray(chosen)) if units else np.asarray(chosen)

        return roll_out(choose, pools, len(columns), first_seed=seed + int(columns[0]), without=without)

    groups = np.array_split(np.arange(episodes), count)
    if all(pool.size >= count for pool in pools):
        with ExitStack() as stack, ThreadPoolExecutor(count) as threads:
            parts = [stack.enter_context(pool.split(count)) for pool in pools]
            found = list(threads.map(one_group, groups, map(list, zip(*parts, strict=True))))
    else:
        found = [one_group(group, pools) for group in groups]
    failures = {
        (row, column + int(group[0])): why
        for group, part in zip(groups, found, strict=True)
        for (row, column), why in part.failures.items()
    }
    together = lambda arrays: np.concatenate(list(arrays), axis=1)  # noqa: E731
    return Episodes(together(part.returns for part in found), together(part.lengths for part in found), failures)
