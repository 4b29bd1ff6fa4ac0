"""How a policy chooses an action: controlled sampling and energy-based action selection (EDP, section 4.4)."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from edp.algorithms.energies import ENERGIES
from edp.config.spec import EvalOptions
from edp.diffusion import FlowSampler, Sampler
from edp.networks import Critic
from edp.policies.base import PLAIN, Control, Policy


class Selection(eqx.Module):
    """How to select one of several sampled actions. ``candidates`` and ``energy`` are compiled into a program."""

    candidates: int = eqx.field(static=True, default=1)  # sampled actions to choose from
    energy: str = eqx.field(static=True, default="raw")  # of ENERGIES
    control: Control = PLAIN
    temperature: float = 1.0  # of the choice; 0 takes the best
    spread: float | None = None  # std of noise around the candidates


def selection_of(options: EvalOptions) -> Selection:
    return Selection(
        options.eas, options.eas_energy, options.control, options.eas_temperature, options.eas_spread or None
    )


def acting_models(states: Any, act_with: str, sampler: Sampler | FlowSampler | None) -> tuple[Any, Any]:
    """The policies and critics that act, stacked over seeds: online parameters or their average."""
    learners = states.policy, states.critic
    policies, critics = (part and (part.target if act_with == "average" else part.model) for part in learners)
    return policies.with_sampler(sampler) if sampler else policies, critics


def select_action(
    policy: Policy, critic: Critic | None, obs: Float[Array, "n obs"], key, selection: Selection
) -> Float[Array, "n act"]:
    """EAS (EDP algorithm 2): draw one of several sampled actions in proportion to exp(energy / temperature)."""
    candidates, _, chosen = rate_candidates(policy, critic, obs, key, selection)
    return candidates[0] if len(candidates) == 1 else jnp.take_along_axis(candidates, chosen[None, :, None], axis=0)[0]


def rate_candidates(
    policy: Policy, critic: Critic | None, obs: Float[Array, "n obs"], key, selection: Selection
) -> tuple[Float[Array, "candidates n act"], Float[Array, "candidates n"], Int[Array, " n"]]:
    """The candidates of EAS, their energies (0 without a critic), and the index of the chosen one."""
    sample_key, choice_key = jax.random.split(key)
    if selection.candidates == 1 or critic is None:
        candidates = policy.act(obs, sample_key, selection.control)[None]
        energy = jnp.zeros(candidates.shape[:2]) if critic is None else critic(obs, candidates[0]).min(axis=0)[None]
        return candidates, energy, jnp.zeros(len(obs), int)
    keys = jax.random.split(sample_key, selection.candidates)
    candidates = jax.vmap(policy.sample, (None, 0, None))(obs, keys, selection.control)
    spread_key, choice_key = jax.random.split(choice_key)
    if selection.spread is not None:
        noise = selection.spread * jax.random.normal(spread_key, candidates.shape, candidates.dtype)
        candidates = jnp.clip(candidates + noise, -1, 1)
    energy = ENERGIES[selection.energy](jax.vmap(critic, (None, 0), 1)(obs, candidates))
    noise = jax.random.gumbel(choice_key, energy.shape, energy.dtype)
    return candidates, energy, jnp.argmax(energy + selection.temperature * noise, axis=0)


@jax.jit
def act(
    policies: Any,
    critics: Any,
    memories: Any,
    obs: Float[Array, "seeds n obs"],
    rewards: Float[Array, "seeds n"],
    steps: Int[Array, "seeds n"],
    keys: Array,
    selection: Selection,
) -> tuple[Any, Float[Array, "seeds n act"]]:
    """New memories, and an action for each environment of each seed. Models are stacked over seeds.

    Every environment has its own random key, so its actions do not depend on the other environments in the batch.
    """

    def act_in_env(policy, critic, memory, obs, reward, step, key):
        if memory is None:
            key = jax.random.fold_in(key, step)
            return None, select_action(policy, critic, obs[None], key, selection)[0]
        memory = jax.tree.map(lambda new, old: jnp.where(step == 0, new, old), policy.memory(1), memory)
        memory, action = policy.step(memory, obs[None], reward[None], step)
        return memory, action[0]

    act_for_seed = jax.vmap(act_in_env, (None, None, 0, 0, 0, 0, 0))
    return jax.vmap(act_for_seed)(policies, critics, memories, obs, rewards, steps, keys)


@partial(jax.jit, static_argnames="structure")
def act_flat(structure: Any, leaves: list[Any], memories, obs, rewards, steps, keys):
    """``act`` with (policies, critics, selection) flattened once, before a control loop, and not in each call."""
    policies, critics, selection = jax.tree.unflatten(structure, leaves)
    return act(policies, critics, memories, obs, rewards, steps, keys, selection)


def initial_memories(policies: Any, count: int) -> Any:
    """The memories of ``count`` environments per seed at the start of an episode; None for policies without one."""
    return jax.vmap(lambda policy: jax.vmap(lambda _: policy.memory(1))(jnp.arange(count)))(policies)
