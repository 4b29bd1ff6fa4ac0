"""DAC's loss against values computed by hand, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import DAC
from edp.policies import DiffusionConfig, Fit, Policy
from edp.policies.base import Corrupted
from support.tiny_batch import BATCH, FakeCritic

CRITIC = FakeCritic(lambda obs, action: jnp.stack([(obs + action**2)[:, 0], (obs + 3 * action**2)[:, 0]]))
POINT, TRUE, SIGMA = jnp.asarray([[0.4], [-0.2]]), jnp.asarray([[0.3], [-1.0]]), jnp.asarray([[0.5], [0.8]])


class FakePolicy(Policy):
    """A policy whose parameter is its prediction of the noise ``TRUE``."""

    prediction: jax.Array

    def fit(self, obs, action, key):
        bc = jnp.mean((TRUE - self.prediction) ** 2, axis=-1)
        return Fit(bc, action, jnp.zeros(2), corrupted=Corrupted(POINT, self.prediction, SIGMA))


def loss_of(prediction, **options):
    algorithm = DAC(ensemble="mean-std", rho=0.5, **options)
    return algorithm.policy_loss(FakePolicy(jnp.asarray(prediction)), CRITIC, BATCH, jax.random.key(0))


def test_the_loss_by_hand():
    """The mean of both members is s + 2x², with the slope 4x. mean |Q| of the data's actions, 0.5 and -0.5, is 2."""
    loss, metrics = loss_of([[0.7], [-1.5]], eta=0.5)
    imitation = ((0.3 - 0.7) ** 2 + (-1.0 + 1.5) ** 2) / 2  # 0.205
    guide = (0.5 * 1.6 * 0.7 + 0.8 * -0.8 * -1.5) / 2 / 2  # sigma · slope · prediction: 0.38
    assert float(loss) == pytest.approx(0.5 * imitation + guide, rel=1e-5)
    assert float(loss) == pytest.approx(0.4825, rel=1e-5)
    assert float(metrics["bc_loss"]) == pytest.approx(0.205, rel=1e-5)
    assert float(metrics["q_policy"]) == pytest.approx((1 + 2 * 0.16 + 2 + 2 * 0.04) / 2, rel=1e-5)


@pytest.mark.parametrize("eta", [0.1, 0.5, 2.0])
def test_the_best_prediction_moves_actions_up_the_slope(eta):
    """The loss is smallest at noise - sigma · slope / (2 eta mean |Q|), so (x - sigma · prediction) / alpha rises."""
    shift = np.array([[0.5 * 1.6], [0.8 * -0.8]]) / (2 * eta * 2.0)
    best = np.asarray(TRUE) - shift
    gradient = jax.grad(lambda prediction: loss_of(prediction, eta=eta)[0])(jnp.asarray(best, jnp.float32))
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    assert float(loss_of(best, eta=eta)[0]) < float(loss_of(TRUE, eta=eta)[0])
    moved = -np.asarray(SIGMA) * (best - np.asarray(TRUE))  # of the estimated actions, times alpha
    assert (np.sign(moved) == np.sign([[1.6], [-0.8]])).all()


@pytest.mark.parametrize(("limit", "eta", "after"), [(0.0, 1.0, None), (100.0, 1.0, 0.8), (100.0, 0.1, 1e-3)])
def test_dual_ascent_of_eta(limit, eta, after):
    """Eta rises by the learning rate times the excess of the imitation loss, which is clipped to ±1."""
    algorithm = DAC(eta=eta, eta_lr=0.2, bc_limit=limit, critics=2, critic_hidden=(8,))
    policy = DiffusionConfig(hidden=(8,), diffusion_steps=5, schedule="vp", sampler="ddpm", calls=5)
    state = algorithm.init(policy.build(1, 1, jax.random.key(0)), 1, 1, jax.random.key(1))
    assert float(state.eta) == pytest.approx(eta)
    new, metrics = jax.jit(algorithm.update)(state, BATCH, jax.random.key(2))
    rises = eta + 0.2 * min(float(metrics["bc_loss"]), 1)
    assert float(new.eta) == pytest.approx(rises if after is None else after, rel=1e-5)
    assert float(metrics["eta"]) == pytest.approx(eta)
    assert not hasattr(DAC().init(policy.build(1, 1, jax.random.key(0)), 1, 1, jax.random.key(1)), "eta")


def test_a_diffusion_policy_has_the_corrupted_action_and_the_prediction():
    config, key = DiffusionConfig(hidden=(8,), diffusion_steps=5, schedule="vp"), jax.random.key(3)
    policy, action = config.build(1, 1, jax.random.key(0)), jnp.asarray([[0.5], [-0.5]])
    fit = policy.fit(BATCH.obs, action, key)
    step_key, noise_key, _ = jax.random.split(key, 3)
    k, noise = jax.random.randint(step_key, (2,), 0, 5), np.asarray(jax.random.normal(noise_key, (2, 1)))
    alpha_bar = policy.schedule.alpha_bars[np.asarray(k)][:, None]
    point = np.sqrt(alpha_bar) * np.asarray(action) + np.sqrt(1 - alpha_bar) * noise
    np.testing.assert_allclose(fit.corrupted.action, point, rtol=1e-5)
    np.testing.assert_allclose(fit.corrupted.sigma, np.sqrt(1 - alpha_bar), rtol=1e-5)
    np.testing.assert_allclose(fit.bc, ((noise - np.asarray(fit.corrupted.noise)) ** 2)[:, 0], rtol=1e-5)
    assert DiffusionConfig(hidden=(8,), prediction="v").build(1, 1, key).fit(BATCH.obs, action, key).corrupted is None
