"""The mean flow against mathematics.

For data ~ N(mu, s²), x_t has the mean (1 - t) mu and the variance d_t² = t² + (1 - t)² s², and the flow leads from x_t
to x_r = (1 - r) mu + d_r / d_t · (x_t - (1 - t) mu). The mean velocity between them is u = (x_t - x_r) / (t - r).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import InitialState
from edp.batches import Transitions
from edp.bench.flops import matmul_flops
from edp.bench.variants import build_parts
from edp.config.spec import EvalOptions, acting_sampler
from edp.errors import UserError
from edp.policies import MeanFlow, MeanFlowConfig
from edp.policies.meanflow import MeanVelocityNet, draw_times

MEAN, STD = 0.1, 0.2


def spread(t):
    return jnp.sqrt(t**2 + (1 - t) ** 2 * STD**2)


class FakeNet(MeanVelocityNet):
    time: Any = None
    body: Any = None

    def __init__(self):
        pass


class GaussianNet(FakeNet):
    """The exact mean velocity of Gaussian data, times a parameter that is 1."""

    factor: Any = None

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, obs, point, r, t):
        r, t = r[:, None], t[:, None]
        same = t - r < 1e-3
        end = (1 - r) * MEAN + spread(r) / spread(t) * (point - (1 - t) * MEAN)
        slope = (t - (1 - t) * STD**2) / spread(t) ** 2
        velocity = slope * (point - (1 - t) * MEAN) - MEAN
        return self.factor * jnp.where(same, velocity, (point - end) / jnp.where(same, 1.0, t - r))


def exact(factor=1.0):
    return MeanFlow(GaussianNet(jnp.asarray(factor)), 1, 0.25)


def test_one_call_samples_a_gaussian_exactly():
    obs, key = jnp.zeros((2000, 1)), jax.random.key(0)
    noise = jax.random.normal(jax.random.split(key)[0], (2000, 1))
    np.testing.assert_allclose(exact().sample(obs, key), np.clip(MEAN + STD * noise, -1, 1), atol=1e-5)


def test_the_exact_mean_velocity_has_the_smallest_loss():
    """Gradients of the loss are random numbers around 0 there, and around another number elsewhere."""
    keys = jax.random.split(jax.random.key(0), 100)

    def gradients(factor):
        def loss(policy, key):
            data_key, fit_key = jax.random.split(key)
            data = MEAN + STD * jax.random.normal(data_key, (2000, 1))
            return policy.fit(jnp.zeros((2000, 1)), data, fit_key).bc.mean()

        return np.asarray(jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(exact(factor), keys).net.factor)

    for factor, at_minimum in ((1.0, True), (1.05, False), (0.95, False)):
        found = gradients(factor)
        errors = abs(found.mean()) / (found.std() / np.sqrt(len(found)))
        assert (errors < 4) == at_minimum, (factor, errors)


class LinearNet(FakeNet):
    """u = 2 x + 3 t - r."""

    def __call__(self, obs, point, r, t):
        return 2 * point + (3 * t - r)[:, None]


def test_the_loss_by_hand():
    """du/dt = 2 v + 3 along the path."""
    policy, key = MeanFlow(LinearNet(), 2, 0.25), jax.random.key(3)
    action = np.random.default_rng(0).uniform(-1, 1, (50, 2)).astype(np.float32)
    fit = policy.fit(jnp.zeros((50, 3)), jnp.asarray(action), key)
    time_key, noise_key, sample_key = jax.random.split(key, 3)
    r, t = (np.asarray(part)[:, None] for part in draw_times(time_key, 50, 0.25))
    noise = np.asarray(jax.random.normal(noise_key, (50, 2)))
    velocity = noise - action
    error = 2 * ((1 - t) * action + t * noise) + 3 * t - r - (velocity - (t - r) * (2 * velocity + 3))
    np.testing.assert_allclose(fit.bc, (error**2).mean(axis=1), rtol=1e-4)
    np.testing.assert_array_equal(fit.log_prob, -fit.bc)
    np.testing.assert_array_equal(fit.action, policy.sample(jnp.zeros((50, 3)), sample_key))


def test_times():
    r, t = (np.asarray(part) for part in draw_times(jax.random.key(0), 20_000, 0.2))
    assert ((r >= 0) & (r <= t) & (t <= 1)).all()
    assert np.mean(r == t) == pytest.approx(0.5, abs=0.02)
    assert np.mean((r == 0) & (t == 1)) == pytest.approx(0.2, abs=0.02)
    free = (r != t) & (t < 1)
    logits = np.concatenate([np.log(part[free] / (1 - part[free])) for part in (r, t)])
    assert (logits.mean(), logits.std()) == (pytest.approx(-0.4, abs=0.03), pytest.approx(1, abs=0.03))


def step_flops(policy):
    """Of a step of TD3+BC with the paper's settings."""
    algorithm, config = build_parts("td3bc", policy)
    state = jax.eval_shape(InitialState(algorithm, config, 17, 6), jax.random.key(0))
    shapes = {"obs": (256, 17), "action": (256, 6), "reward": (256,), "next_obs": (256, 17), "not_done": (256,)}
    batch = Transitions(**{name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()})
    return matmul_flops(algorithm.update, state, batch, jax.random.key(0))


def test_a_td3_step_costs_at_most_three_quarters_of_edps_and_little_more_than_a_feed_forward_step():
    assert step_flops("meanflow") < 0.67 * step_flops("diffusion")
    assert step_flops("meanflow") < 1.35 * step_flops("deterministic")


def test_a_sample_is_one_network_call():
    policy = MeanFlowConfig().build(17, 6, jax.random.key(0))
    call = lambda policy, obs: policy.net.body(jnp.zeros((1, 17 + 6 + 16)))  # noqa: E731
    one = matmul_flops(call, policy, jnp.zeros((1, 17)))
    sample = matmul_flops(lambda policy, obs: policy.sample(obs, jax.random.key(0)), policy, jnp.zeros((1, 17)))
    assert one <= sample < 1.02 * one  # and the embedding of two times


def test_scaling_is_refused():
    algorithm, policy = build_parts("td3bc", "meanflow")
    with pytest.raises(UserError, match="`policy_scale` is for chains of network calls"):
        acting_sampler(algorithm, policy, EvalOptions(policy_scale=1.5))
    assert acting_sampler(algorithm, policy, EvalOptions(initial_noise=0.5)) is None
    with pytest.raises(UserError, match="`act_calls`"):
        acting_sampler(algorithm, policy, EvalOptions(act_calls=3))
