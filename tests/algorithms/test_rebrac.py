"""ReBRAC's losses against NumPy, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import ReBRAC
from edp.algorithms.td3bc import TD3BC
from edp.batches import Following
from edp.config.choice import choose
from edp.data.tasks import get_task
from edp.errors import UserError
from edp.policies import DeterministicConfig, DiffusionConfig, Fit, Policy
from edp.policies.base import PLAIN
from support.tiny_batch import BATCH, CRITIC

TWO_STATES = BATCH._replace(not_done=jnp.ones(2))


class FakePolicy(Policy):
    def sample(self, obs, key, control=PLAIN):
        return jnp.full((obs.shape[0], 1), 0.25)

    def fit(self, obs, action, key):
        return Fit(jnp.asarray([0.1, 0.3]), jnp.asarray([[0.2], [-0.6]]), jnp.zeros(2))


def test_the_target_has_a_penalty_where_the_data_has_a_next_action():
    """r + gamma (min Q'(s', ã') - beta_c |ã' - a'|²), with Q1 = s + a and Q2 = s - 2a."""
    batch = TWO_STATES._replace(following=Following(jnp.asarray([[-0.5], [0.0]]), jnp.asarray([1.0, 0.0])))
    target = ReBRAC(discount=0.9, critic_penalty=2.0).td_target(FakePolicy(), CRITIC, batch, jax.random.key(0))
    expected = [1 + 0.9 * (3 - 0.5 - 2 * 0.75**2), 2 + 0.9 * (4 - 0.5)]
    np.testing.assert_allclose(target, expected, rtol=1e-6)


def test_the_policys_loss_weighs_the_squared_error_against_the_smaller_q():
    loss, _ = ReBRAC(actor_penalty=0.5).policy_loss(FakePolicy(), CRITIC, BATCH, jax.random.key(0))
    q = np.minimum([1.2, 1.4], [0.6, 3.2])
    assert float(loss) == pytest.approx(0.5 * 0.2 - q.mean() / np.abs(q).mean(), rel=1e-5)


def test_the_penalty_is_the_squared_distance_of_a_deterministic_policy():
    """Summed over the action's dimensions."""
    policy, key = DeterministicConfig((8,)).build(1, 3, jax.random.key(0)), jax.random.key(1)
    batch = BATCH._replace(action=jnp.asarray([[0.5, 0.1, -0.2], [-0.5, 0.9, 0.0]]))
    losses = [float(ReBRAC(actor_penalty=beta).policy_loss(policy, CRITIC, batch, key)[0]) for beta in (0.0, 0.3)]
    distance = np.sum((np.asarray(policy.sample(batch.obs, key)) - np.asarray(batch.action)) ** 2, axis=1).mean()
    assert losses[1] - losses[0] == pytest.approx(0.3 * distance, rel=1e-4)


def test_the_recipe_guides_as_that_of_td3bc_does():
    task, key = get_task("hopper-medium-v2"), jax.random.key(0)
    penalised, plain = (choose(name).resolve(task).parts[:2] for name in ("rebrac", "td3bc"))
    penalised[0].check(penalised[1])
    policy = penalised[1].build(1, 1, key)
    kept = {"guidance": "spread", "improved": "low", "loss_weight": 0.5}
    expected = TD3BC(**kept).policy_loss(policy, CRITIC, BATCH, key)[0]
    assert penalised[0].guidance == plain[0].guidance == "spread"
    assert float(penalised[0].policy_loss(policy, CRITIC, BATCH, key)[0]) == pytest.approx(float(expected))


@pytest.mark.parametrize(
    ("options", "told"),
    [({"guidance": "spread", "actor_penalty": 0.3}, "would change nothing"), ({"actor_penalty": 0.0}, "above 0")],
)
def test_a_penalty_that_cannot_be_followed_is_refused(options, told):
    with pytest.raises(UserError, match=told):
        ReBRAC(**options).check(DiffusionConfig())
