"""A batch small enough to write down, and two Q-functions of it."""

import jax.numpy as jnp

from edp.batches import Transitions

BATCH = Transitions(
    obs=jnp.asarray([[1.0], [2.0]]),
    action=jnp.asarray([[0.5], [-0.5]]),
    reward=jnp.asarray([1.0, 2.0]),
    next_obs=jnp.asarray([[3.0], [4.0]]),
    not_done=jnp.asarray([1.0, 0.0]),
)


def critic(obs, action):
    """Q1 = s + a, Q2 = s - 2a."""
    return jnp.stack([(obs + action)[:, 0], (obs - 2 * action)[:, 0]])
