"""The losses of values that algorithms share."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from edp.algorithms.base import Loss, Number
from edp.batches import Transitions
from edp.networks import MLP, Critic


def critic_loss(critic: Critic, batch: Transitions, target: Float[Array, " n"]) -> Loss:
    """The squared TD error (EDP eq. 6), summed over the ensemble."""
    q = critic(batch.obs, batch.action)
    loss = jnp.sum(jnp.mean((q - target[None]) ** 2, axis=-1))
    return loss, {"critic_loss": loss, "q_data": q.mean()}


def value_loss(value: MLP, obs: Float[Array, "n obs"], target: Float[Array, " n"], expectile: Number) -> Loss:
    """Expectile regression of V: mean |expectile - 1(u < 0)| u² with u = target - V. With 0.5, V learns the mean."""
    u = target - value(obs)[:, 0]
    loss = jnp.mean(jnp.where(u < 0, 1 - expectile, expectile) * u**2)
    return loss, {"value_loss": loss}
