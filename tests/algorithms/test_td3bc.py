"""TD3+BC's losses against NumPy, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms.base import adam, descend, for_each_member, init_learner
from edp.algorithms.losses import critic_loss
from edp.algorithms.td3bc import TD3BC
from edp.networks import Critic
from edp.policies import Fit, Policy
from edp.policies.base import PLAIN
from support.tiny_batch import BATCH, CRITIC, FakeCritic, two_values


class FakePolicy(Policy):
    def sample(self, obs, key, control=PLAIN):
        return jnp.full((obs.shape[0], 1), 0.25) * jnp.where(jax.random.bernoulli(key), 1.0, -1.0)

    def fit(self, obs, action, key):
        return Fit(jnp.asarray([0.1, 0.3]), jnp.asarray([[0.2], [-0.6]]), jnp.zeros(2))


def test_eq6_critic_loss():
    target = jnp.asarray([1.0, 1.0])
    loss, metrics = critic_loss(CRITIC, BATCH, target)
    q1, q2 = np.array([1.5, 1.5]), np.array([0.0, 3.0])
    assert float(loss) == pytest.approx(((q1 - 1) ** 2).mean() + ((q2 - 1) ** 2).mean())
    assert float(metrics["q_data"]) == pytest.approx(1.5)


@pytest.mark.parametrize("seed", range(4))
def test_appendix_eq1_td_target_takes_the_smaller_q_and_stops_at_terminals(seed):
    key = jax.random.key(seed)
    a = 0.25 if bool(jax.random.bernoulli(jax.random.split(key)[0])) else -0.25
    target = TD3BC(discount=0.9).td_target(FakePolicy(), CRITIC, BATCH, key)
    np.testing.assert_allclose(target, [1 + 0.9 * min(3 + a, 3 - 2 * a), 2.0], rtol=1e-6)


def test_max_q_backup_takes_each_members_best_action_then_the_smaller_member():
    target = TD3BC(discount=0.9, max_q_backup=64).td_target(FakePolicy(), CRITIC, BATCH, jax.random.key(0))
    np.testing.assert_allclose(target, [1 + 0.9 * min(3.25, 3.5), 2.0], rtol=1e-6)


def test_eq10_policy_loss_and_lambda_normalisation():
    loss, _ = TD3BC(alpha=2.0, loss_weight=0.5).policy_loss(FakePolicy(), CRITIC, BATCH, jax.random.key(0))
    q = np.array([1.2, 1.4])
    assert float(loss) == pytest.approx(0.2 - 2.0 * 0.5 / np.abs(q).mean() * q.mean(), rel=1e-5)


def test_appendix_a1_policy_improvement_tosses_a_coin_between_q1_and_q2():
    """One member for the whole batch, each as often."""
    critics, policy = Critic(1, 1, (8,), jax.random.key(0)), FakePolicy()
    q = np.asarray(critics(BATCH.obs, policy.fit(BATCH.obs, BATCH.action, jax.random.key(0)).action))
    used = jax.jit(lambda key: TD3BC().policy_loss(policy, critics, BATCH, key)[1]["q_policy"])
    means = np.array([float(used(key)) for key in jax.random.split(jax.random.key(1), 200)])
    first, second = (np.isclose(means, value, rtol=1e-4) for value in q.mean(axis=1))
    assert (first ^ second).all()
    assert 70 < first.sum() < 130


def test_target_noise_moves_next_actions_by_at_most_a_half():
    class Still(FakePolicy):
        def sample(self, obs, key, control=PLAIN):
            return jnp.zeros((obs.shape[0], 1))

    keys = jax.random.split(jax.random.key(0), 500)
    algorithm = TD3BC(discount=1.0, target_noise=5.0)
    noisy = jax.vmap(lambda key: algorithm.td_target(Still(), CRITIC, BATCH, key))(keys)
    # With noise z in [-0.5, 0.5], min(Q1, Q2) = 3 + min(z, -2 z), which lies between 2 and 3.
    assert pytest.approx(float(noisy[:, 0].min())) == 1 + 2.0
    assert float(noisy[:, 0].max()) <= 1 + 3.0


def test_lambda_has_no_gradient():
    """d loss / d q = -alpha / (n · mean|q|): what it is when lambda is a constant."""

    def loss(scale):
        scaled = FakeCritic(lambda obs, action: scale * two_values(obs, action))
        return TD3BC(alpha=2.0).policy_loss(FakePolicy(), scaled, BATCH, jax.random.key(0))[0]

    grad = jax.grad(loss)(1.0)
    assert float(grad) == pytest.approx(-2.0, rel=1e-5)


def test_descend_is_adam_on_clipped_gradients_and_moves_the_target():
    start = init_learner(jnp.asarray([3.0, 4.0]), adam(0.1, 1.0))
    after, metrics = descend(start, lambda x: (10 * jnp.sum(x), {"sum": x.sum()}), adam(0.1, 1.0), 0.25)
    # Adam's first step is lr in each direction, whatever the size of the gradient.
    np.testing.assert_allclose(after.model, [2.9, 3.9], rtol=1e-5)
    np.testing.assert_allclose(after.target, [2.975, 3.975], rtol=1e-5)
    np.testing.assert_allclose(after.opt[1][0].mu, 0.1 * np.full(2, 1 / np.sqrt(2)), rtol=1e-5)  # pyright: ignore[reportAttributeAccessIssue]
    assert float(metrics["sum"]) == 7.0


def test_each_member_of_an_ensemble_has_its_own_norm():
    optimiser = for_each_member(adam(0.1, 1.0))
    start = init_learner(jnp.zeros((2, 2)), optimiser)
    grads = jnp.asarray([[0.3, 0.4], [30.0, 40.0]])
    after, _ = descend(start, lambda x: (jnp.sum(grads * x), {}), optimiser, 0.0)
    np.testing.assert_allclose(after.opt[1][0].mu, 0.1 * np.array([[0.3, 0.4], [0.6, 0.8]]), rtol=1e-5)  # pyright: ignore[reportAttributeAccessIssue]


def test_an_update_bootstraps_from_the_targets():
    """The first critic step depends on the target networks alone: changing them changes it, changing the others not."""
    from edp.policies import DeterministicConfig

    algorithm = TD3BC(critic_hidden=(8,))
    init = jax.jit(lambda key: algorithm.init(DeterministicConfig((8,)).build(1, 1, key), 1, 1, key))
    state, other, update = init(jax.random.key(0)), init(jax.random.key(5)), jax.jit(algorithm.update)

    def first_weight(state):
        return np.asarray(jax.tree.leaves(update(state, BATCH, jax.random.key(1))[0].critic.model)[0])

    same_online = state._replace(policy=state.policy._replace(model=other.policy.model))
    np.testing.assert_array_equal(first_weight(state), first_weight(same_online))
    for part in ("policy", "critic"):
        changed = state._replace(**{part: getattr(state, part)._replace(target=getattr(other, part).target)})
        loss = [float(update(s, BATCH, jax.random.key(1))[1]["critic_loss"]) for s in (state, changed)]
        assert loss[0] != loss[1], part


def test_the_target_policy_waits_and_then_moves_every_few_steps():
    from edp.policies import DeterministicConfig

    algorithm = TD3BC(policy_target_every=2, policy_target_after=3, critic_hidden=(8,))
    init = jax.jit(lambda key: algorithm.init(DeterministicConfig((8,)).build(1, 1, key), 1, 1, key))
    state, update, moved = init(jax.random.key(0)), jax.jit(algorithm.update), []
    for i in range(8):
        before = jax.tree.leaves(state.policy.target)[0]
        state, _ = update(state, BATCH, jax.random.key(i))
        moved.append(bool(jnp.any(before != jax.tree.leaves(state.policy.target)[0])))
    assert moved == [False, False, False, True, False, True, False, True]
