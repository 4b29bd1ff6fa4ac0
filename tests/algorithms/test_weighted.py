"""Likelihood-based policy losses against NumPy, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import CRR, IQL
from edp.algorithms.crr import crr_advantage
from edp.algorithms.weighted import binary, exponential, softmax, weighted_loss
from edp.errors import UserError
from edp.policies import Fit
from edp.types import Transitions

BATCH = Transitions(
    obs=jnp.asarray([[1.0], [2.0], [3.0]]),
    action=jnp.asarray([[0.1], [0.2], [-0.3]]),
    reward=jnp.zeros(3),
    next_obs=jnp.zeros((3, 1)),
    not_done=jnp.ones(3),
)
ADVANTAGE = np.array([0.0, -1.0, 5.0])


class FakePolicy:
    def fit(self, obs, action, key):
        return Fit(jnp.asarray([0.1, 0.2, 0.3]), jnp.zeros_like(action), jnp.asarray([-1.0, -2.0, -3.0]))


def critic(obs, action):
    """Q1 = s · a, Q2 = s + a²."""
    return jnp.stack([(obs * action)[:, 0], (obs + action**2)[:, 0]])


def numpy_min_q(obs, action):
    return np.minimum(obs * action, obs + action**2)


def test_appendix_eq7_expectile_loss():
    """|tau - 1(u < 0)| u² with u = Q - V."""
    q, v = np.array([2.0, 1.0, 3.5]), np.array([1.0, 2.0, 3.0])
    loss, _ = IQL(expectile=0.9).value_loss(lambda obs: obs, BATCH, jnp.asarray(q))  # pyright: ignore
    u = q - v
    assert float(loss) == pytest.approx(np.mean(np.abs(0.9 - (u < 0)) * u**2), rel=1e-5)


def test_an_iql_update_learns_v_then_the_policy_then_q():
    """One update against the same three losses put together by hand, with the networks each of them must see."""
    from edp.policies import DeterministicConfig

    algorithm, key = IQL(critic_hidden=(8,), discount=0.9, tau=0.5), jax.random.key(1)
    init = jax.jit(lambda key: algorithm.init(DeterministicConfig((8,)).build(1, 1, key), 1, 1, key))
    state, other = init(jax.random.key(0)), init(jax.random.key(5))
    state = state._replace(critic=state.critic._replace(target=other.critic.target))
    batch = BATCH._replace(reward=jnp.asarray([1.0, 2.0, 3.0]), not_done=jnp.asarray([1.0, 0.0, 1.0]))
    after, metrics = jax.jit(algorithm.update)(state, batch, key)

    q = np.asarray(other.critic.target(batch.obs, batch.action)).min(axis=0)
    v_before, v_after = (np.asarray(net(batch.obs))[:, 0] for net in (state.value.model, after.value.model))
    u = q - v_before
    assert float(metrics["value_loss"]) == pytest.approx(np.mean(np.where(u < 0, 0.3, 0.7) * u**2), rel=1e-4)
    weights = np.minimum(np.exp(3 * (q - v_after)), 100.0)
    assert float(metrics["weight"]) == pytest.approx(weights.mean(), rel=1e-4)
    target = np.array([1.0, 2.0, 3.0]) + 0.9 * np.array([1, 0, 1]) * np.asarray(after.value.model(batch.next_obs))[:, 0]
    error = np.asarray(state.critic.model(batch.obs, batch.action)) - target[None]
    assert float(metrics["critic_loss"]) == pytest.approx((error**2).mean(axis=1).sum(), rel=1e-4)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (exponential(3.0, 10.0), np.minimum(np.exp(3 * ADVANTAGE), 10.0)),
        (binary, np.array([0.0, 0.0, 1.0])),
        (softmax(1.0), 3 * np.exp(ADVANTAGE) / np.exp(ADVANTAGE).sum()),
    ],
)
def test_eq11_weighted_likelihood(weight, expected):
    given = {"advantage": lambda fit, key: jnp.asarray(ADVANTAGE), "weight": weight, "loss_weight": 0.5}
    loss, metrics = weighted_loss(FakePolicy(), BATCH, jax.random.key(0), **given)  # pyright: ignore
    assert float(loss) == pytest.approx(0.2 - 0.5 * np.mean(expected * [-1, -2, -3]), rel=1e-5)
    assert float(metrics["weight"]) == pytest.approx(expected.mean(), rel=1e-5)


def test_appendix_eq6_crr_advantage():
    key, mean = jax.random.key(4), jnp.asarray([[0.5], [0.0], [-0.5]])
    got = crr_advantage(critic, BATCH, mean, key, samples=7)  # pyright: ignore
    actions = np.asarray(mean)[None] + np.asarray(jax.random.normal(key, (7, 3, 1)))
    obs, action = np.asarray(BATCH.obs), np.asarray(BATCH.action)
    expected = numpy_min_q(obs, action)[:, 0] - numpy_min_q(obs[None], actions)[:, :, 0].mean(axis=0)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_crr_hands_its_advantage_and_weight_to_the_shared_loss():
    algorithm, key = CRR(weights="binary", samples=3, loss_weight=2.0), jax.random.key(1)
    loss, _ = algorithm.policy_loss(FakePolicy(), critic, BATCH, key)  # pyright: ignore
    advantage = crr_advantage(critic, BATCH, jnp.zeros((3, 1)), jax.random.split(key)[1], 3)  # pyright: ignore
    expected = 0.2 - 2.0 * np.mean((np.asarray(advantage) > 0) * np.array([-1, -2, -3]))
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_unknown_weights_are_refused():
    with pytest.raises(UserError, match="did you mean 'binary'"):
        CRR(weights="binry")
