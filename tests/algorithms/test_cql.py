"""CQL's losses against NumPy, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import CQL
from edp.algorithms.cql import conservative_gap
from edp.errors import UserError
from edp.policies import DeterministicConfig, DiffusionConfig, Fit, GaussianConfig, Policy
from support.tiny_batch import BATCH, CRITIC


class FakePolicy(Policy):
    def fit(self, obs, action, key):
        return Fit(jnp.asarray([0.1, 0.3]), jnp.asarray([[0.2], [-0.6]]), jnp.zeros(2))

    def sample_with_log_prob(self, obs, key):
        return jnp.asarray([[0.9], [0.1]]), jnp.asarray([-0.5, 1.5])


def test_cql_eq4_penalty_is_the_soft_maximum_less_the_datas_value():
    """log mean exp Q(s, ·) - Q(s, a), for each member of the ensemble."""
    others = np.array([[[0.0], [1.0]], [[-1.0], [0.5]], [[0.3], [0.3]]])
    got = conservative_gap(CRITIC, BATCH, jnp.asarray(others))
    s, a = np.array([1.0, 2.0]), np.array([0.5, -0.5])
    for member, q in enumerate((lambda s, a: s + a, lambda s, a: s - 2 * a)):
        soft = np.log(np.mean(np.exp(q(s[None], others[:, :, 0])), axis=0))
        assert float(got[member]) == pytest.approx(np.mean(soft - q(s, a)), rel=1e-5)


def test_cql_adds_the_penalty_over_policy_and_random_actions_to_the_td_error():
    algorithm, key, target = CQL(conservatism=3.0, samples=5), jax.random.key(2), jnp.asarray([1.0, 1.0])
    loss, metrics = algorithm.critic_loss(CRITIC, FakePolicy(), BATCH, target, key)
    _, near_key, random_key = jax.random.split(key, 3)
    near = np.array([[0.2], [-0.6]])[None] + np.asarray(jax.random.normal(near_key, (5, 2, 1)))
    anywhere = np.asarray(jax.random.uniform(random_key, (5, 2, 1), minval=-1, maxval=1))
    others = jnp.asarray(np.concatenate([np.clip(near, -1, 1), anywhere]), jnp.float32)
    gap = float(conservative_gap(CRITIC, BATCH, others).sum())
    td = ((np.array([1.5, 1.5]) - 1) ** 2).mean() + ((np.array([0.0, 3.0]) - 1) ** 2).mean()
    assert float(metrics["conservative_gap"]) == pytest.approx(gap, rel=1e-5)
    assert float(loss) == pytest.approx(td + 3.0 * gap, rel=1e-5)


@pytest.mark.parametrize("entropy", [0.0, 0.1])
def test_cql_policy_loss(entropy):
    """bc - alpha · min(Q1, Q2) / mean|min(Q1, Q2)| + entropy · log pi, at a sample where entropy counts."""
    algorithm = CQL(entropy=entropy, bc_weight=0.5, alpha=2.0)
    loss, _ = algorithm.policy_loss(FakePolicy(), CRITIC, BATCH, jax.random.key(0))
    s, a = np.array([1.0, 2.0]), np.array([0.9, 0.1]) if entropy else np.array([0.2, -0.6])
    q = np.minimum(s + a, s - 2 * a)
    expected = 0.5 * 0.2 - 2.0 * q.mean() / np.abs(q).mean() + entropy * 0.5
    assert float(loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "policy", [DeterministicConfig(), DiffusionConfig(), GaussianConfig(std=0.1, squash=True), GaussianConfig()]
)
def test_entropy_without_an_entropy_is_refused(policy):
    CQL().check(policy)
    with pytest.raises(UserError, match="use `policy=gaussian` with `squash` and a learned spread, or `entropy=0`"):
        CQL(entropy=0.1).check(policy)
    CQL(entropy=0.1).check(GaussianConfig(squash=True))
