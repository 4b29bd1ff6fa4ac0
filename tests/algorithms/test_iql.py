"""IQL's losses against NumPy, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import IQL
from edp.policies import Fit
from edp.types import Transitions

BATCH = Transitions(
    obs=jnp.asarray([[1.0], [2.0], [3.0]]),
    action=jnp.zeros((3, 1)),
    reward=jnp.zeros(3),
    next_obs=jnp.zeros((3, 1)),
    not_done=jnp.ones(3),
)


def test_expectile_loss_of_appendix_eq7():
    """|tau - 1(u < 0)| u² with u = Q - V."""
    q, v = np.array([2.0, 1.0, 3.5]), np.array([1.0, 2.0, 3.0])
    loss, _ = IQL(expectile=0.9).value_loss(lambda obs: obs, BATCH, jnp.asarray(q))  # pyright: ignore
    u = q - v
    assert float(loss) == pytest.approx(np.mean(np.abs(0.9 - (u < 0)) * u**2), rel=1e-5)


class FakePolicy:
    def fit(self, obs, action, key):
        return Fit(jnp.asarray([0.1, 0.2, 0.3]), action, jnp.asarray([-1.0, -2.0, -3.0]))


def test_eq13_weighted_likelihood_with_bounded_weights():
    algorithm = IQL(temperature=3.0, max_weight=10.0, loss_weight=0.5)
    advantage = np.array([0.0, -1.0, 5.0])
    loss, metrics = algorithm.policy_loss(FakePolicy(), BATCH, jnp.asarray(advantage), jax.random.key(0))  # pyright: ignore
    weights = np.minimum(np.exp(3 * advantage), 10.0)
    assert float(loss) == pytest.approx(0.2 - 0.5 * np.mean(weights * [-1, -2, -3]), rel=1e-5)
    assert float(metrics["weight"]) == pytest.approx(weights.mean(), rel=1e-5)
