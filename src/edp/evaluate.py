"""Evaluation: all episodes of all seeds in one batch, with energy-based action selection."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

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
        return policy.sample(obs, sample_key)
    candidates = jax.vmap(policy.sample, (None, 0))(obs, jax.random.split(sample_key, actions))
    energy = jax.vmap(critic, (None, 0))(obs, candidates).min(axis=1)
    chosen = jax.random.categorical(choice_key, energy, axis=0)
    return jnp.take_along_axis(candidates, chosen[None, :, None], axis=0)[0]


@partial(jax.jit, static_argnames="actions")
def act(
    policies: Any, critics: Any, obs: Float[Array, "seeds n obs"], keys, step, actions: int
) -> Float[Array, "seeds n act"]:
    """An action for each environment of each seed; models are stacked over seeds."""

    def one_seed(policy, critic, obs, key):
        return select_by_energy(policy, critic, obs, jax.random.fold_in(key, step), actions)

    return jax.vmap(one_seed)(policies, critics, obs, keys)


def roll_out(
    act: Callable[[np.ndarray, int], np.ndarray], envs: list[list[gymnasium.Env]], first_seed: int
) -> Episodes:
    """One episode in each environment. Environments that are done wait for the others.

    ``act(obs, step)`` serves all of them; column ``i`` starts from the same state for every seed.
    """
    shape = (len(envs), len(envs[0]))
    obs = np.stack([[env.reset(seed=first_seed + i)[0] for i, env in enumerate(row)] for row in envs])
    returns, lengths, running = np.zeros(shape), np.zeros(shape, int), np.ones(shape, bool)
    step = 0
    while running.any():
        actions = act(obs, step)
        for i, j in zip(*np.nonzero(running), strict=True):
            obs[i, j], reward, terminal, timeout, _ = envs[i][j].step(actions[i, j])
            returns[i, j] += reward
            lengths[i, j] += 1
            running[i, j] = not (terminal or timeout)
        step += 1
    return Episodes(returns, lengths)


def evaluate(policies: Any, critics: Any, envs: list[list[gymnasium.Env]], *, actions: int, seed: int) -> Episodes:
    """Roll out every seed's policy. The same seed gives the same starts and the same draws."""
    keys = jax.random.split(jax.random.key(seed), len(envs))

    def choose(obs: np.ndarray, step: int) -> np.ndarray:
        return np.asarray(act(policies, critics, jnp.asarray(obs, jnp.float32), keys, step, actions))

    return roll_out(choose, envs, first_seed=seed)
