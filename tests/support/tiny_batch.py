"""A batch small enough to write down, and two Q-functions of it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from edp.batches import Transitions
from edp.networks import Critic

BATCH = Transitions(
    obs=jnp.asarray([[1.0], [2.0]]),
    action=jnp.asarray([[0.5], [-0.5]]),
    reward=jnp.asarray([1.0, 2.0]),
    next_obs=jnp.asarray([[3.0], [4.0]]),
    not_done=jnp.asarray([1.0, 0.0]),
)


class FakeCritic(Critic):
    """A critic that is a given function of states and actions. ``one_of`` always chooses the first member."""

    values: Callable[[Array, Array], Array] = eqx.field(static=True)
    members: Any = None

    def __init__(self, values):
        self.values = values

    def __call__(self, obs, action):
        return self.values(obs, action)

    def one_of(self, obs, action, key):
        return self(obs, action)[0]


def two_values(obs, action):
    """Q1 = s + a, Q2 = s - 2a."""
    return jnp.stack([(obs + action)[:, 0], (obs - 2 * action)[:, 0]])


CRITIC = FakeCritic(two_values)
