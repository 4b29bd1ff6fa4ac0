from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.diffusion import FlowSampler
from edp.errors import UserError
from edp.networks import NoiseNet
from edp.policies import Flow, FlowConfig
from edp.policies.base import Control
from edp.policies.flow import TIME_SCALE


class PerfectVelocity(NoiseNet):
    """Knows the one action that all data has, and so the noise at any point of the path."""

    action: jax.Array
    time: Any = None
    body: Any = None

    def __init__(self, action):
        self.action = action

    def __call__(self, obs, point, k):
        return (self.action[None] - point) / (1 - k / TIME_SCALE)[:, None]

    def at_states(self, obs, ks):
        return lambda y, i: (self.action[None] - y) / (1 - ks[i] / TIME_SCALE)


@pytest.mark.parametrize("sampler", [FlowSampler("euler", 1), FlowSampler("euler", 10), FlowSampler("midpoint", 5)])
def test_a_perfect_velocity_fits_and_samples_the_data(sampler):
    action = jnp.asarray([0.8, -0.3])
    policy, data = Flow(PerfectVelocity(action), 2, sampler), jnp.tile(action[None], (500, 1))
    fit = policy.fit(jnp.zeros((500, 4)), data, jax.random.key(0))
    np.testing.assert_allclose(fit.action, data, atol=1e-5)
    np.testing.assert_allclose(np.median(fit.bc), 0, atol=1e-8)
    np.testing.assert_allclose(policy.sample(jnp.zeros((500, 4)), jax.random.key(0)), data, atol=1e-5)


class Zero(NoiseNet):
    """A velocity of zero."""

    time: Any = None
    body: Any = None

    def __init__(self):
        pass

    def __call__(self, obs, point, k):
        return jnp.zeros_like(point)

    def at_states(self, obs, ks):
        return lambda y, i: jnp.zeros_like(y)


def test_the_loss_by_hand():
    """With a velocity of zero: bc = mean (a - noise)², â = clip(x_t), log p = log N(a; â, I)."""
    key, action = jax.random.key(3), np.array([[0.5, -0.5], [0.1, 0.9]], np.float32)
    fit = Flow(Zero(), 2, FlowSampler()).fit(jnp.zeros((2, 3)), jnp.asarray(action), key)
    time_key, noise_key = jax.random.split(key)
    t, noise = np.asarray(jax.random.uniform(time_key, (2, 1))), np.asarray(jax.random.normal(noise_key, (2, 2)))
    np.testing.assert_allclose(fit.bc, ((action - noise) ** 2).mean(axis=1), rtol=1e-5)
    approximate = np.clip((1 - t) * noise + t * action, -1, 1)
    np.testing.assert_allclose(fit.action, approximate, rtol=1e-5)
    expected = -0.5 * ((action - approximate) ** 2).sum(axis=1) - np.log(2 * np.pi)
    np.testing.assert_allclose(fit.log_prob, expected, rtol=1e-5)
    # An error of the velocity by e is one of the action by (1 - t) · e.
    np.testing.assert_allclose(fit.precision, (1 - t) ** -2.0, rtol=1e-5)
    np.testing.assert_allclose(fit.snr, (t / (1 - t)) ** 2, rtol=1e-5)


def test_the_weighted_likelihood_is_minus_the_loss():
    config = FlowConfig(hidden=(8,), likelihood="weighted")
    fit = config.build(3, 2, jax.random.key(0)).fit(jnp.zeros((9, 3)), jnp.zeros((9, 2)), jax.random.key(1))
    np.testing.assert_array_equal(fit.log_prob, -fit.bc)
    assert config.asks_for == {"log_prob": "`likelihood=weighted`"}
    with pytest.raises(UserError, match="did you mean 'weighted'"):
        FlowConfig(likelihood="weigthed")


class GaussianVelocity(Zero):
    """The velocity of data ~ N(0, 0.3²)."""

    def at_states(self, obs, ks):
        t = ks / TIME_SCALE
        return lambda y, i: (0.09 * t[i] - (1 - t[i])) / ((1 - t[i]) ** 2 + 0.09 * t[i] ** 2) * y


def test_less_noise_and_a_larger_scale_make_samples_sharper():
    policy, obs, key = Flow(GaussianVelocity(), 1, FlowSampler("euler", 100)), jnp.zeros((4000, 1)), jax.random.key(0)
    spread = lambda **control: float(np.std(policy.sample(obs, key, Control(**control))))  # noqa: E731
    assert spread() == pytest.approx(0.3, rel=0.05)
    assert spread(noise=0.5) == pytest.approx(0.15, rel=0.05)
    assert spread(noise=0.0) == 0
    assert 0.02 < spread(scale=1.5) < 0.2


def test_another_sampler():
    config = FlowConfig(calls=6)
    assert config.sampler_for() == FlowSampler("euler", 6)
    assert config.sampler_for("midpoint") == FlowSampler("midpoint", 6)
    assert config.sampler_for(calls=20) == FlowSampler("euler", 20)
    policy = config.build(3, 2, jax.random.key(0)).with_sampler(FlowSampler("midpoint", 4))
    assert policy.sampler == FlowSampler("midpoint", 4)
    with pytest.raises(UserError, match="sampler of a flow"):
        config.sampler_for("ddim")
