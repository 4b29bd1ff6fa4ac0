"""Likelihood-based policy losses against NumPy, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import AWAC, AWR, CRR, IQL, OneStep
from edp.algorithms.awr import standardise
from edp.algorithms.crr import advantage_over
from edp.algorithms.losses import value_loss
from edp.algorithms.weighted import binary, exponential, softmax, weighted_loss
from edp.batches import Tail, Transitions
from edp.errors import UserError
from edp.networks import MLP
from edp.policies import DeterministicConfig, Fit, Policy
from support.tiny_batch import FakeCritic

BATCH = Transitions(
    obs=jnp.asarray([[1.0], [2.0], [3.0]]),
    action=jnp.asarray([[0.1], [0.2], [-0.3]]),
    reward=jnp.zeros(3),
    next_obs=jnp.zeros((3, 1)),
    not_done=jnp.ones(3),
)
ADVANTAGE = np.array([0.0, -1.0, 5.0])


class FakePolicy(Policy):
    def fit(self, obs, action, key):
        return Fit(jnp.asarray([0.1, 0.2, 0.3]), jnp.full_like(action, 0.25), jnp.asarray([-1.0, -2.0, -3.0]))


# Q1 = s · a, Q2 = s + a².
CRITIC = FakeCritic(lambda obs, action: jnp.stack([(obs * action)[:, 0], (obs + action**2)[:, 0]]))


class Identity(MLP):
    """A network whose output is its input."""

    def __init__(self):
        self.layers = ()

    def __call__(self, x):
        return x


def numpy_min_q(obs, action):
    return np.minimum(obs * action, obs + action**2)


def test_appendix_eq9_iql_expectile_loss():
    """|tau - 1(u < 0)| u² with u = Q - V."""
    q, v = np.array([2.0, 1.0, 3.5]), np.array([1.0, 2.0, 3.0])
    loss, _ = value_loss(Identity(), BATCH.obs, jnp.asarray(q), 0.9)
    u = q - v
    assert float(loss) == pytest.approx(np.mean(np.abs(0.9 - (u < 0)) * u**2), rel=1e-5)


def test_an_iql_update_learns_v_then_the_policy_then_q():
    """One update against the same three losses put together by hand, with the networks each of them must see."""
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
    given = {
        "advantage": lambda fit, key: jnp.asarray(ADVANTAGE),
        "weight": weight,
        "loss_weight": 0.5,
        "bc_weight": 0.7,
    }
    loss, metrics = weighted_loss(FakePolicy(), BATCH, jax.random.key(0), **given)
    assert float(loss) == pytest.approx(0.7 * 0.2 - 0.5 * np.mean(expected * [-1, -2, -3]), rel=1e-5)
    assert float(metrics["weight"]) == pytest.approx(expected.mean(), rel=1e-5)


def test_appendix_eq8_crr_advantage():
    others = jnp.asarray([[[0.5], [0.0], [-0.5]], [[0.1], [0.9], [-0.9]]])
    got = advantage_over(CRITIC, BATCH, others, CRR().low)
    obs, action = np.asarray(BATCH.obs), np.asarray(BATCH.action)
    expected = numpy_min_q(obs, action)[:, 0] - numpy_min_q(obs[None], np.asarray(others))[:, :, 0].mean(axis=0)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_appendix_eq8_crr_draws_its_actions_around_the_approximate_one():
    """ã ~ N(â⁰, I), as many as asked for."""
    algorithm, key = CRR(weights="binary", samples=7, loss_weight=2.0), jax.random.key(1)
    loss, _ = algorithm.policy_loss(FakePolicy(), CRITIC, BATCH, key)
    drawn = 0.25 + np.asarray(jax.random.normal(jax.random.split(key)[1], (7, 3, 1)))
    obs, action = np.asarray(BATCH.obs), np.asarray(BATCH.action)
    advantage = numpy_min_q(obs, action)[:, 0] - numpy_min_q(obs[None], drawn)[:, :, 0].mean(axis=0)
    assert float(loss) == pytest.approx(0.2 - 2.0 * np.mean((advantage > 0) * np.array([-1, -2, -3])), rel=1e-5)


def test_eq11_awac_compares_with_the_policys_own_action():
    """exp((Q(s, a) - Q(s, â⁰)) / beta), at most the bound."""
    loss, metrics = AWAC(beta=0.5, max_weight=1.2).policy_loss(FakePolicy(), CRITIC, BATCH, jax.random.key(0))
    obs, action = np.asarray(BATCH.obs), np.asarray(BATCH.action)
    advantage = (numpy_min_q(obs, action) - numpy_min_q(obs, np.full((3, 1), 0.25)))[:, 0]
    weights = np.minimum(np.exp(advantage / 0.5), 1.2)
    assert float(metrics["weight"]) == pytest.approx(weights.mean(), rel=1e-5)
    assert float(loss) == pytest.approx(0.2 - np.mean(weights * [-1, -2, -3]), rel=1e-5)


def started(algorithm, seed=0):
    """A state with small networks."""
    return algorithm.init(DeterministicConfig((8,)).build(1, 1, jax.random.key(seed)), 1, 1, jax.random.key(seed))


def test_appendix_eq6_awr_advantages_are_returns_less_values():
    """V regresses on R + discount · V(last state), and the advantages, in units of their spread, become weights."""
    algorithm = AWR(critic_hidden=(8,), beta=0.5, max_weight=3.0)
    state = started(algorithm)
    tail = Tail(jnp.asarray([1.0, 5.0, 2.0]), jnp.asarray([[0.3], [0.1], [0.2]]), jnp.asarray([0.5, 0.0, 0.9]))
    after, metrics = jax.jit(algorithm.update)(state, BATCH._replace(tail=tail), jax.random.key(1))
    last = np.asarray(state.value.target(tail.obs))[:, 0]
    returns = np.array([1.0, 5.0, 2.0]) + np.array([0.5, 0.0, 0.9]) * last
    error = returns - np.asarray(state.value.model(BATCH.obs))[:, 0]
    assert float(metrics["value_loss"]) == pytest.approx(np.mean(0.5 * error**2), rel=1e-4)
    advantage = returns - np.asarray(after.value.model(BATCH.obs))[:, 0]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-5)
    assert float(metrics["weight"]) == pytest.approx(np.minimum(np.exp(advantage / 0.5), 3.0).mean(), rel=1e-4)


def test_standardised_advantages_that_are_all_equal_are_zero():
    np.testing.assert_allclose(standardise(jnp.full(4, 7.0)), 0)


def test_eq11_onestep_values_the_behaviour_then_improves_once():
    """While it evaluates: the mean (not a high expectile) and pure imitation. Then Q and V stay, and weights count."""
    algorithm = OneStep(critic_hidden=(8,), evaluation_steps=1, temperature=2.0, bc_weight=0.0)
    state, update = started(algorithm), jax.jit(algorithm.update)
    first, metrics = update(state, BATCH, jax.random.key(1))
    u = (
        np.asarray(state.critic.target(BATCH.obs, BATCH.action)).min(axis=0)
        - np.asarray(state.value.model(BATCH.obs))[:, 0]
    )
    assert float(metrics["value_loss"]) == pytest.approx(np.mean(0.5 * u**2), rel=1e-4)
    assert float(metrics["policy_loss"]) == pytest.approx(float(metrics["bc_loss"]), rel=1e-6)
    second, metrics = update(first, BATCH, jax.random.key(2))
    for a, b in zip(*(jax.tree.leaves((s.critic, s.value)) for s in (first, second)), strict=True):
        np.testing.assert_array_equal(a, b)
    action = np.asarray(first.policy.model.sample(BATCH.obs, jax.random.key(0)))
    log_prob = -0.5 * ((np.asarray(BATCH.action) - action) ** 2).sum(axis=1) - 0.5 * np.log(2 * np.pi)
    q = np.asarray(first.critic.target(BATCH.obs, BATCH.action)).min(axis=0)
    weights = np.minimum(np.exp(2.0 * (q - np.asarray(first.value.model(BATCH.obs))[:, 0])), 100.0)
    assert float(metrics["policy_loss"]) == pytest.approx(-np.mean(weights * log_prob), rel=1e-4)


def test_unknown_weights_are_refused():
    with pytest.raises(UserError, match="did you mean 'binary'"):
        CRR(weights="binry")
