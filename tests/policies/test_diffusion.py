from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.diffusion import Sampler, Schedule
from edp.errors import UserError
from edp.networks import NoiseNet
from edp.policies import Diffusion, DiffusionConfig
from edp.policies.diffusion import elbo_likelihood


class PerfectNoise(NoiseNet):
    """Knows the one action that all data has, and so the noise in any corruption of it."""

    action: jax.Array
    schedule: Schedule = eqx.field(static=True)
    time: Any = None
    body: Any = None

    def __init__(self, action, schedule):
        self.action, self.schedule = action, schedule

    def __call__(self, obs, action, k):
        alpha_bar = jnp.asarray(self.schedule.alpha_bars, jnp.float32)[k.astype(int)][:, None]
        return (action - jnp.sqrt(alpha_bar) * self.action[None]) / jnp.sqrt(1 - alpha_bar)

    def at_states(self, obs, ks):
        alpha = jnp.asarray(self.schedule.alpha((np.asarray(ks) + 1) / self.schedule.steps), jnp.float32)
        return lambda y, i: (y - alpha[i] * self.action[None]) / jnp.sqrt(1 - alpha[i] ** 2)


@pytest.mark.parametrize("name", ["linear", "cosine", "vp"])
def test_eq9_action_approximation_is_exact_for_a_perfect_predictor(name):
    action = jnp.asarray([0.8, -0.3, 0.05])
    schedule = Schedule(name, 100)
    policy = Diffusion(PerfectNoise(action, schedule), 3, schedule, Sampler())
    data = jnp.tile(action[None], (500, 1))
    fit = policy.fit(jnp.zeros((500, 4)), data, jax.random.key(0))
    # At the noisiest steps alpha is as small as 1e-4, so float32 rounding is magnified as much.
    np.testing.assert_allclose(np.median(np.abs(fit.action - data)), 0, atol=1e-5)
    np.testing.assert_allclose(fit.action, data, atol=5e-3)
    np.testing.assert_allclose(fit.bc, 0, atol=1e-5)


@pytest.mark.parametrize("schedule", [Schedule("linear", 1000), Schedule("linear", 100), Schedule("vp", 100)])
@pytest.mark.parametrize(
    "sampler", [Sampler("dpm", 15), Sampler("dpm++", 10), Sampler("ddim", 20), Sampler("ddpm", 100)]
)
def test_a_perfect_predictor_samples_the_data(sampler, schedule):
    action = jnp.asarray([0.8, -0.3])
    policy = Diffusion(PerfectNoise(action, schedule), 2, schedule, sampler)
    samples = policy.sample(jnp.zeros((200, 4)), jax.random.key(0))
    # The DPM-Solvers stop at t = 0.001, where sigma is about 0.01; the others end on clean data.
    np.testing.assert_allclose(samples, np.tile(action, (200, 1)), atol=0.04)


class Zero(NoiseNet):
    """Predicts no noise."""

    time: Any = None
    body: Any = None

    def __init__(self):
        pass

    def __call__(self, obs, action, k):
        return jnp.zeros_like(action)


def test_eq5_and_eq13_by_hand():
    """With a predictor that says zero: bc = mean noise², â = clip(a^k / alpha), log p = log N(a; â, I)."""
    schedule, key = Schedule("vp", 5), jax.random.key(3)
    policy = Diffusion(Zero(), 2, schedule, Sampler())
    action = np.array([[0.5, -0.5], [0.1, 0.9]], np.float32)
    fit = policy.fit(jnp.zeros((2, 3)), jnp.asarray(action), key)
    step_key, noise_key, _ = jax.random.split(key, 3)
    k = np.asarray(jax.random.randint(step_key, (2,), 0, 5))
    noise = np.asarray(jax.random.normal(noise_key, (2, 2)))
    bar = schedule.alpha_bars[k][:, None]
    approximate = np.clip((np.sqrt(bar) * action + np.sqrt(1 - bar) * noise) / np.sqrt(bar), -1, 1)
    np.testing.assert_allclose(fit.bc, (noise**2).mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(fit.action, approximate, rtol=1e-4)
    expected = -0.5 * ((action - approximate) ** 2).sum(axis=1) - np.log(2 * np.pi)
    np.testing.assert_allclose(fit.log_prob, expected, rtol=1e-4)

    bound = Diffusion(Zero(), 2, schedule, Sampler(), elbo_likelihood)
    weights = schedule.betas / (2 * (1 - schedule.betas) * (1 - schedule.alpha_bars))
    expected = -(weights / weights.mean())[k] * (noise**2).sum(axis=1)  # eq. 12
    np.testing.assert_allclose(bound.fit(jnp.zeros((2, 3)), jnp.asarray(action), key).log_prob, expected, rtol=1e-4)


def test_chain_gradients_equal_those_of_the_unrolled_loop():
    """Recomputing the calls changes the memory that a gradient takes, not the gradient."""
    policy = DiffusionConfig(diffusion_steps=20, sampler="ddpm", calls=20, hidden=(8,), train_action="chain")
    model, obs = policy.build(3, 2, jax.random.key(0)), jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))
    key = jax.random.key(1)

    def unrolled(model):
        start_key, chain_key = jax.random.split(jax.random.split(key, 3)[2])
        table, schedule = model.sampler.table(model.schedule), model.schedule
        y, keys = jax.random.normal(start_key, (4, 2)), jax.random.split(chain_key, 20)
        for i in range(20):
            alpha, sigma = float(schedule.alpha(table.t[i])), float(schedule.sigma(table.t[i]))
            predicted = model.net(obs, y, jnp.full(4, schedule.step(table.t[i])))
            data = jnp.clip((y - sigma * predicted) / alpha, -1, 1)
            y = table.base_coef[i] * y + table.now_coef[i] * (y - alpha * data) / sigma
            y = y + table.noise_coef[i] * jax.random.normal(keys[i], (4, 2))
        return jnp.sum(jnp.clip(y, -1, 1) ** 2)

    chain = jax.jit(jax.grad(lambda m: jnp.sum(m.fit(obs, jnp.zeros((4, 2)), key).action ** 2)))(model)
    for a, b in zip(jax.tree.leaves(chain), jax.tree.leaves(jax.jit(jax.grad(unrolled))(model)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-5)


def test_chain_gradients_take_little_memory():
    """A hundred calls keep a hundred actions, not a hundred times the hidden layers (about 160 MB here)."""
    policy = DiffusionConfig(diffusion_steps=100, sampler="ddpm", calls=100, train_action="chain")
    model, obs = policy.build(11, 3, jax.random.key(0)), jnp.zeros((256, 11))
    loss = jax.grad(lambda m: jnp.sum(m.fit(obs, jnp.zeros((256, 3)), jax.random.key(1)).action))
    memory = jax.jit(loss).lower(model).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 20e6


def test_another_sampler_has_its_own_grid():
    fast = DiffusionConfig(sampler="dpm++", grid="quadratic", calls=6)
    assert fast.sampler_for() == Sampler("dpm++", 6, grid="quadratic")
    assert fast.sampler_for(calls=10) == Sampler("dpm++", 10, grid="quadratic")
    assert fast.sampler_for("dpm") == Sampler("dpm", 15)
    with pytest.raises(UserError, match="`grid`"):
        DiffusionConfig(sampler="ddpm", grid="quadratic").sampler_for()


class PerfectV(PerfectNoise):
    """The same knowledge, as v = alpha · noise - sigma · action."""

    def __call__(self, obs, corrupted, k):
        alpha = jnp.sqrt(jnp.asarray(self.schedule.alpha_bars, jnp.float32)[k.astype(int)])[:, None]
        return self.v(corrupted, alpha)

    def at_states(self, obs, ks):
        alpha = jnp.asarray(self.schedule.alpha((np.asarray(ks) + 1) / self.schedule.steps), jnp.float32)
        return lambda y, i: self.v(y, alpha[i])

    def v(self, y, alpha):
        sigma = jnp.sqrt(1 - alpha**2)
        return alpha * (y - alpha * self.action[None]) / sigma - sigma * self.action[None]


@pytest.mark.parametrize("sampler", [Sampler("dpm", 15), Sampler("dpm++", 10), Sampler("ddpm", 100)])
def test_a_network_that_predicts_v_fits_and_samples_the_data(sampler):
    action, schedule = jnp.asarray([0.8, -0.3]), Schedule("linear", 1000)
    policy = Diffusion(PerfectV(action, schedule), 2, schedule, sampler, predicts_v=True)  # pyright: ignore
    data = jnp.tile(action[None], (500, 1))
    fit = policy.fit(jnp.zeros((500, 4)), data, jax.random.key(0))
    np.testing.assert_allclose(fit.action, data, atol=1e-3)  # also at the noisiest steps
    np.testing.assert_allclose(fit.bc, 0, atol=1e-4)
    samples = policy.sample(jnp.zeros((200, 4)), jax.random.key(0))
    np.testing.assert_allclose(samples, np.tile(action, (200, 1)), atol=0.04)


def test_v_and_noise_are_two_names_of_one_prediction():
    """An error of the noise by e is an error of v by e / alpha, so the losses differ by alpha² alone."""
    schedule, key = Schedule("vp", 5), jax.random.key(3)
    obs, data = jnp.zeros((50, 1)), jnp.full((50, 2), 0.3)

    class Off(PerfectNoise):
        def __call__(self, obs, corrupted, k):
            return super().__call__(obs, corrupted, k) + 0.1

    class OffV(PerfectV):
        def __call__(self, obs, corrupted, k):
            alpha = jnp.sqrt(jnp.asarray(self.schedule.alpha_bars, jnp.float32)[k.astype(int)])[:, None]
            return super().__call__(obs, corrupted, k) + 0.1 / alpha

    noise, v = (
        Diffusion(net(data[0], schedule), 2, schedule, Sampler(), elbo_likelihood, predicts_v=is_v).fit(obs, data, key)  # pyright: ignore
        for net, is_v in ((Off, False), (OffV, True))
    )
    np.testing.assert_allclose(v.action, noise.action, atol=1e-4)
    np.testing.assert_allclose(v.log_prob, noise.log_prob, rtol=1e-3)
    np.testing.assert_allclose(noise.bc, 0.01, rtol=1e-2)
    assert v.bc.max() > 2 * noise.bc.max()


def test_the_weighted_likelihood_is_minus_the_diffusion_loss():
    config = DiffusionConfig(hidden=(8,), likelihood="weighted")
    fit = config.build(3, 2, jax.random.key(0)).fit(jnp.zeros((9, 3)), jnp.zeros((9, 2)), jax.random.key(1))
    np.testing.assert_array_equal(fit.log_prob, -fit.bc)
