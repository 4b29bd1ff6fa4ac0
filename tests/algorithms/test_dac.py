"""DAC's loss against NumPy, on a batch small enough to write down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import DAC
from edp.policies import DiffusionConfig, Fit, Policy
from edp.policies.base import Corrupted
from support.tiny_batch import BATCH, FakeCritic

CRITIC = FakeCritic(lambda obs, action: jnp.stack([(obs + action**2)[:, 0], (obs + 3 * action**2)[:, 0]]))
POINT, NOISE, SIGMA = jnp.asarray([[0.4], [-0.2]]), jnp.asarray([[0.7], [-1.5]]), jnp.asarray([[0.5], [0.8]])


class FakePolicy(Policy):
    def fit(self, obs, action, key):
        return Fit(jnp.asarray([0.1, 0.3]), action, jnp.zeros(2), corrupted=Corrupted(POINT, NOISE, SIGMA))


def test_the_loss_by_hand():
    """eta |noise - prediction|² + sigma <dQ/dx / mean |Q|, prediction>, where Q is mean - rho · std of two members."""
    algorithm = DAC(eta=0.5, ensemble="mean-std", rho=0.5)
    loss, metrics = algorithm.policy_loss(FakePolicy(), CRITIC, BATCH, jax.random.key(0))
    x, s = np.asarray(POINT)[:, 0], np.array([1.0, 2.0])
    q, slope = s + 2 * x**2 - 0.5 * x**2, 3 * x  # the std of the two members is x²
    guide = np.mean(np.asarray(SIGMA)[:, 0] * slope * np.asarray(NOISE)[:, 0]) / np.abs(q).mean()
    assert float(loss) == pytest.approx(0.5 * 0.2 + guide, rel=1e-5)
    assert float(metrics["q_policy"]) == pytest.approx(q.mean(), rel=1e-5)


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
