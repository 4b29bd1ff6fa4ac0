"""Evaluation: all episodes of all seeds in one batch, with energy-based action selection."""

from functools import partial
from typing import Any, NamedTuple, Protocol

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from edp.networks import Critic
from edp.policies.base import Policy


class Episodes(NamedTuple):
    """One row a seed, one column an episode."""

    returns: np.ndarray
    lengths: np.ndarray


def select_by_energy(
    policy: Policy, critic: Critic | None, obs: Float[Array, "n obs"], key, actions: int
) -> Float[Array, "n act"]:
    """EAS (EDP algorithm 2): of several sampled actions, one is drawn with probability proportional to exp(min Q)."""
    sample_key, choice_key = jax.random.split(key)
    if actions == 1 or policy.deterministic or critic is None:
        return policy.act(obs, sample_key)
    candidates = jax.vmap(policy.sample, (None, 0))(obs, jax.random.split(sample_key, actions))
    energy = jax.vmap(critic, (None, 0))(obs, candidates).min(axis=1)
    chosen = jax.random.categorical(choice_key, energy, axis=0)
    return jnp.take_along_axis(candidates, chosen[None, :, None], axis=0)[0]


@partial(jax.jit, static_argnames="actions")
def act(
    policies: Any,
    critics: Any,
    memories: Any,
    obs: Float[Array, "seeds n obs"],
    rewards: Float[Array, "seeds n"],
    keys,
    step,
    actions: int,
) -> tuple[Any, Float[Array, "seeds n act"]]:
    """New memories, and an action for each environment of each seed; models are stacked over seeds."""

    def one_seed(policy, critic, memory, obs, reward, key):
        if memory is None:
            return None, select_by_energy(policy, critic, obs, jax.random.fold_in(key, step), actions)
        return policy.step(memory, obs, reward, step)

    return jax.vmap(one_seed)(policies, critics, memories, obs, rewards, keys)


class Choose(Protocol):
    def __call__(self, obs: np.ndarray, rewards: np.ndarray, step: int) -> np.ndarray: ...


def roll_out(choose: Choose, envs: list[list[gymnasium.Env]], first_seed: int) -> Episodes:
    """One episode in each environment. Environments that are done wait for the others.

    ``choose`` serves all of them, given the rewards of the actions before; column ``i`` starts from the same state for
    every seed.
    """
    shape = (len(envs), len(envs[0]))
    obs = np.stack([[env.reset(seed=first_seed + i)[0] for i, env in enumerate(row)] for row in envs])
    returns, rewards = np.zeros(shape), np.zeros(shape)
    lengths, running = np.zeros(shape, int), np.ones(shape, bool)
    step = 0
    while running.any():
        actions = choose(obs, rewards, step)
        for i, j in zip(*np.nonzero(running), strict=True):
            obs[i, j], rewards[i, j], terminal, timeout, _ = envs[i][j].step(actions[i, j])
            returns[i, j] += rewards[i, j]
            lengths[i, j] += 1
            running[i, j] = not (terminal or timeout)
        step += 1
    return Episodes(returns, lengths)


def evaluate(policies: Any, critics: Any, envs: list[list[gymnasium.Env]], *, actions: int, seed: int) -> Episodes:
    """Roll out every seed's policy. The same seed gives the same starts and the same draws."""
    keys = jax.random.split(jax.random.key(seed), len(envs))
    memories = jax.vmap(lambda policy: policy.memory(len(envs[0])))(policies)

    def choose(obs: np.ndarray, rewards: np.ndarray, step: int) -> np.ndarray:
        nonlocal memories
        inputs = jnp.asarray(obs, jnp.float32), jnp.asarray(rewards, jnp.float32)
        memories, chosen = act(policies, critics, memories, *inputs, keys, step, actions)
        return np.asarray(chosen)

    return roll_out(choose, envs, first_seed=seed)
