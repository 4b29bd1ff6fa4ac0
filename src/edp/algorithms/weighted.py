"""Likelihood-based policy improvement (EDP eq. 11): fit the policy to the data's actions, with larger weights for
better actions.

CRR, AWR, AWAC, IQL and OneStep differ in how they estimate advantages and how they turn them into weights.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.base import TINY, Loss, Number
from edp.batches import Transitions
from edp.errors import unknown
from edp.policies.base import Fit, Policy

# Values of the preset ``quick``: advantages weight the diffusion loss itself, in units of their own spread.
WEIGHTED_RECIPE: dict[str, Any] = {
    "likelihood": "weighted",
    "advantages": "standard",
    "bc_weight": 0.0,
    "loss_weight": 1.0,
}

Weight = Callable[[Float[Array, " n"]], Float[Array, " n"]]
Advantage = Callable[[Fit, PRNGKeyArray], Float[Array, " n"]]


def weighted_loss(
    policy: Policy,
    batch: Transitions,
    key: PRNGKeyArray,
    *,
    advantage: Advantage,
    weight: Weight,
    loss_weight: Number,
    bc_weight: Number,
    standard: bool = False,
) -> Loss:
    """The imitation loss, and -E[f(A) log pi(a|s)] without gradients through the weights f(A).

    If ``standard`` is true, advantages are divided by their std in the batch, and weights by their mean.
    """
    fit_key, advantage_key = jax.random.split(key)
    fit = policy.fit(batch.obs, batch.action, fit_key)
    weights = jax.lax.stop_gradient(weigh(advantage(fit, advantage_key), weight, standard))
    bc = fit.bc.mean()
    loss = bc_weight * bc - loss_weight * jnp.mean(weights * fit.log_prob)
    return loss, {"policy_loss": loss, "bc_loss": bc, "weight": weights.mean()}


def weigh(advantage: Float[Array, " n"], weight: Weight, standard: bool) -> Float[Array, " n"]:
    """The weights of a batch."""
    if not standard:
        return weight(advantage)
    weights = weight(advantage / (advantage.std() + TINY))
    return weights / (weights.mean() + TINY)


def fixed_advantage(advantage: Float[Array, " n"]) -> Advantage:
    """An advantage that does not depend on the policy."""
    return lambda fit, key: advantage


def exponential(scale: Number, bound: Number) -> Weight:
    """min(exp(scale · A), bound)."""
    return lambda advantage: jnp.minimum(jnp.exp(scale * advantage), bound)


def binary(advantage: Float[Array, " n"]) -> Float[Array, " n"]:
    """1 where the action is better than expected."""
    return (advantage > 0).astype(advantage.dtype)


def softmax(scale: Number) -> Weight:
    """exp(scale · A), normalised to a mean of 1 over the batch."""
    return lambda advantage: jax.nn.softmax(scale * advantage) * advantage.shape[0]


WEIGHTS: dict[str, Callable[[Number, Number], Weight]] = {  # from the scale of advantages, and the largest weight
    "exp": exponential,
    "binary": lambda scale, bound: binary,
    "softmax": lambda scale, bound: softmax(scale),
}


def weight_by_name(name: str, scale: Number, bound: Number) -> Weight:
    """The function of ``WEIGHTS`` with this name."""
    if name not in WEIGHTS:
        raise unknown("choice of `weights`", name, WEIGHTS)
    return WEIGHTS[name](scale, bound)
