"""The exported file beside the JAX policy: the same observations and the same random numbers, and how far they differ.

The JAX policy draws its noise from keys. Here the same numbers are drawn from the same keys, and given to the file.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.policy import LoadedPolicy
from edp.acting.selection import rate_candidates
from edp.batches import Windows
from edp.data.units import Units
from edp.errors import UserError
from edp.exporting.plan import Chain, Plan, model_of
from edp.policies import Transformer
from edp.policies.transformer import EPISODE_LIMIT

LIMIT = 1e-4  # of the action's range: how far an exported policy may be from the JAX policy
TIE = 1e-2  # of the spread of a state's scores: candidates whose scores differ by less are as good as each other
MOST_TIES = 0.05  # the share of states in which another candidate may be chosen

Run = Callable[[Mapping[str, np.ndarray]], np.ndarray]  # from inputs by name to actions


class Comparison(NamedTuple):
    states: int
    greatest_difference: float  # of all states and actions, as a share of the action's range
    ties: int  # states in which another candidate was chosen, as good as the JAX policy's


class Reference(NamedTuple):
    """What the JAX policy does: actions in the units of the data, and the candidates that it chose from."""

    inputs: dict[str, np.ndarray]
    keys: np.ndarray  # of the states
    actions: np.ndarray  # (states, act)
    candidates: np.ndarray  # (states, candidates, act)
    scores: np.ndarray  # (states, candidates)


def reference_actions(loaded: LoadedPolicy, plan: Plan, obs: np.ndarray, key: Any) -> Reference:
    """The actions of the JAX policy, as ``LoadedPolicy.act`` computes them, and the inputs that belong to them."""
    *models, selection = model_of(loaded)
    policy, critic = jax.tree.map(jnp.asarray, models)
    units, keys = plan.units, jax.random.split(key, len(obs))

    def act(obs: jax.Array, key: Any) -> Any:
        rated = rate_candidates(policy, critic, obs[None], key, selection)
        return rated, draw_inputs(plan, key)

    (candidates, energy, chosen), drawn = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(act))(units.observations_to_network(obs), keys)
    )
    candidates, scores = units.actions_from_network(candidates[:, :, 0]), energy[:, :, 0]
    if plan.choice and plan.gumbel:
        scores = scores + plan.choice.temperature * drawn["gumbel"]
    actions = np.take_along_axis(candidates, chosen[:, :, None], axis=1)[:, 0]
    inputs = {"observation": obs, **drawn}
    return Reference(inputs, np.asarray(jax.random.key_data(keys)), actions, candidates, scores)


def draw_inputs(plan: Plan, key: Any) -> dict[str, jax.Array]:
    """The random numbers that ``edp.acting.selection.rate_candidates`` draws from this key for one state."""
    drawn: dict[str, jax.Array] = {}
    if plan.draws:
        drawn["noise"] = draw_noise(plan, key)
    if plan.gumbel:
        drawn["gumbel"] = jax.random.gumbel(choice_keys(key)[1], (plan.candidates, 1))[:, 0]
    return drawn


def draw_noise(plan: Plan, key: Any) -> jax.Array:
    """The normal random numbers of one state: (candidates, draws, act)."""
    act = plan.units.dims[1]
    sample_key, _ = jax.random.split(key)
    keys = jax.random.split(sample_key, plan.candidates) if plan.choice else sample_key[None]
    noise = jax.vmap(lambda key: policy_noise(plan, key))(keys)
    if plan.choice and plan.choice.spread:
        spread = jax.random.normal(choice_keys(key)[0], (plan.candidates, 1, act))
        noise = jnp.concatenate([noise, spread], axis=1)
    return noise


def choice_keys(key: Any) -> Any:
    """The keys of the noise around candidates, and of the choice."""
    _, choice_key = jax.random.split(key)
    return jax.random.split(choice_key)


def policy_noise(plan: Plan, key: Any) -> jax.Array:
    """The random numbers of one sample: (draws, act)."""
    policy, act = plan.policy, plan.units.dims[1]
    assert not isinstance(policy, Transformer)
    if not isinstance(policy, Chain):
        return jax.random.normal(key, (policy.draws, act))
    start_key, chain_key = jax.random.split(key)
    start = jax.random.normal(start_key, (1, act))[: policy.draws]
    noisy = np.flatnonzero([call.noise for call in policy.calls])
    if not noisy.size:
        return start
    keys = jax.random.split(chain_key, len(policy.calls))[noisy]
    return jnp.concatenate([start, jax.vmap(lambda key: jax.random.normal(key, (act,)))(keys)])


def compare(actions: np.ndarray, reference: Reference, units: Units) -> Comparison:
    """Compare actions with those of the JAX policy.

    The choice among candidates is sensitive to rounding where two scores are almost equal. There the file may choose
    the other candidate: it is then compared with that one, and counted.
    """
    half = units.arrays[3]
    if actions.shape != reference.actions.shape or not np.isfinite(actions).all():
        raise UserError("the exported policy's actions are not finite numbers of the right shape: nothing was written")
    difference = (np.abs(actions - reference.actions) / (2 * half)).max(axis=1)
    others = (np.abs(actions[:, None] - reference.candidates) / (2 * half)).max(axis=2)
    nearest, rows = others.argmin(axis=1), np.arange(len(actions))
    scores, other = reference.scores, others[rows, nearest]
    gap = scores.max(axis=1) - scores[rows, nearest]
    tied = (difference > LIMIT) & (other <= LIMIT) & (gap <= TIE * np.ptp(scores, axis=1))
    difference = np.where(tied, other, difference)
    return Comparison(len(actions), float(difference.max()), int(tied.sum()))


def refuse_difference(found: Comparison, advice: str = "") -> Comparison:
    """Refuse an exported policy that does not act as the JAX policy does."""
    if not found.greatest_difference <= LIMIT or found.ties > max(1, MOST_TIES * found.states):
        differ = f"by up to {found.greatest_difference:.1e} of the action's range (at most {LIMIT:g} is allowed)"
        ties = f", and chooses another candidate in {found.ties} of {found.states} states" if found.ties else ""
        raise UserError(f"the exported policy differs from the JAX policy {differ}{ties}: nothing was written{advice}")
    return found


def reference_histories(loaded: LoadedPolicy, plan: Plan, obs: np.ndarray, key: Any) -> Reference:
    """The actions of a JAX transformer for histories of these observations, of every length."""
    policy, _, _ = model_of(loaded)
    assert isinstance(policy, Transformer)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    count, time, units = len(obs), policy.context, plan.units
    *_, low, high = units.arrays
    goal = policy.target * policy.scale
    known = np.arange(time) >= time - 1 - np.arange(count)[:, None] % time
    last = rng.integers(time, EPISODE_LIMIT + time, count)
    steps = np.where(known, (last[:, None] - np.arange(time)[::-1]), 0)
    inputs = {
        "observations": np.where(known[..., None], obs[rng.integers(count, size=(count, time))], 0).astype(np.float32),
        "actions": np.where(known[..., None], rng.uniform(low, high, (count, time, len(low))), 0).astype(np.float32),
        "returns_to_go": np.where(known, rng.uniform(0, 1, (count, time)) * goal, 0).astype(np.float32),
        "steps": steps.astype(np.int64),
        "mask": known.astype(np.float32),
    }
    seen = Windows(
        obs=jnp.asarray(units.observations_to_network(inputs["observations"])),
        action=jnp.asarray(units.actions_to_network(inputs["actions"])),
        to_go=jnp.asarray(inputs["returns_to_go"] / np.float32(policy.scale)),
        step=jnp.asarray(inputs["steps"]),
        mask=jnp.asarray(known),
    )
    policy = jax.tree.map(jnp.asarray, policy)
    actions = units.actions_from_network(np.asarray(jax.jit(lambda seen: policy(seen)[:, -1])(seen)))
    keys = np.zeros((count, 2), np.uint32)
    return Reference(inputs, keys, actions, actions[:, None], np.zeros((count, 1)))
