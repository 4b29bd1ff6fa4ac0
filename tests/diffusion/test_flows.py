"""Samplers of flows against mathematics.

For data ~ N(mu, s²), x_t has the mean t · mu and the variance d_t² = (1 - t)² + t² s². The velocity that minimises the
loss of flow matching is mu + (t s² - (1 - t)) / d_t² · (x - t mu), and (x_t - t mu) / d_t is constant along it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.diffusion import FLOW_SAMPLERS, STRAIGHT, FlowSampler, integrate
from edp.errors import UserError

MEAN, STD = 0.3, 0.5


def velocity(x, t):
    return MEAN + (t * STD**2 - (1 - t)) / ((1 - t) ** 2 + t**2 * STD**2) * (x - t * MEAN)


def run(sampler, x, clip=None, velocity=velocity):
    table = sampler.table()
    t = jnp.asarray(table.t)
    data_at = lambda y, i: y + (1 - t[i]) * velocity(y, t[i])  # noqa: E731
    return integrate(table, STRAIGHT, data_at, x, jax.random.key(0), clip)


def two_points(x, t):
    """The velocity of data that is 0.6 or -0.6, with equal shares."""
    return (0.6 * jnp.tanh(0.6 * t * x / (1 - t) ** 2) - x) / (1 - t)


CALLS = [16, 32, 64, 128]


def order_of_convergence(errors):
    return -np.polyfit(np.log(CALLS), np.log(errors), 1)[0]


@pytest.mark.parametrize(("name", "order"), [("euler", 1), ("midpoint", 3)])
def test_convergence_to_gaussian_data(name, order):
    """The velocity of a Gaussian is linear in x, and there the errors of the midpoint's rule are of third order."""
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).standard_normal((64, 1)))
        errors = [np.abs(run(FlowSampler(name, n), x) - (MEAN + STD * x)).max() for n in CALLS]
    assert order_of_convergence(errors) == pytest.approx(order, abs=0.15)
    assert errors[-1] < 0.02


@pytest.mark.parametrize(("name", "order"), [("euler", 1), ("midpoint", 2)])
def test_samplers_converge_with_their_order(name, order):
    """On data with two values, up to t = 0.6: later, all points are at one of the two values."""
    early = lambda x, t: 0.6 * two_points(x, 0.6 * t)  # noqa: E731
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).standard_normal((64, 1)))
        exact = run(FlowSampler("midpoint", 8192), x, velocity=early)
        errors = [np.abs(run(FlowSampler(name, n), x, velocity=early) - exact).max() for n in CALLS]
    assert order_of_convergence(errors) == pytest.approx(order, abs=0.15)


def test_two_values_are_sampled():
    samples = run(FlowSampler("euler", 50), jax.random.normal(jax.random.key(0), (1000, 1)), 1.0, two_points)
    np.testing.assert_allclose(np.abs(samples), 0.6, atol=1e-3)


@pytest.mark.parametrize("calls", [1, 2, 5, 6])
def test_steps_by_hand(calls):
    """Euler's and the midpoint's rule for any velocity, and Euler's for the odd call at the end."""
    any_velocity = lambda x, t: jnp.sin(3 * x) + t  # noqa: E731
    with jax.enable_x64(True):
        y = middle = jnp.asarray([[0.7], [-1.2]])
        euler, midpoint = (run(FlowSampler(name, calls), y, None, any_velocity) for name in FLOW_SAMPLERS)
        for i in range(calls):
            y = y + any_velocity(y, i / calls) / calls
        for i in range(calls // 2):
            t, h = 2 * i / calls, 2 / calls
            middle = middle + h * any_velocity(middle + h / 2 * any_velocity(middle, t), t + h / 2)
        if calls % 2:
            middle = middle + any_velocity(middle, (calls - 1) / calls) / calls
    np.testing.assert_allclose(euler, y, rtol=1e-10)
    np.testing.assert_allclose(midpoint, middle, rtol=1e-10)


def test_samples_have_the_datas_mean_and_covariance():
    samples = np.asarray(run(FlowSampler("midpoint", 20), jax.random.normal(jax.random.key(1), (20_000, 2))))
    assert samples.mean(axis=0) == pytest.approx([MEAN, MEAN], abs=0.015)
    assert np.cov(samples.T) == pytest.approx(STD**2 * np.eye(2), abs=0.015)


def test_the_path_is_that_of_the_times():
    t = np.array([0.0, 0.3, 1.0])
    np.testing.assert_allclose(STRAIGHT.alpha(t) + STRAIGHT.sigma(t), 1)
    np.testing.assert_allclose(STRAIGHT.alpha(t), t)


@pytest.mark.parametrize("name", FLOW_SAMPLERS)
def test_every_number_of_calls_makes_so_many_calls_and_clips(name):
    for calls in range(1, 12):
        table = FlowSampler(name, calls).table()
        assert len(table.t) == calls
        assert table.advance[-1]
        wild = run(FlowSampler(name, calls), jnp.ones((8, 3)), 1.0, lambda x, t: 50 * jnp.sin(x))
        assert np.abs(np.asarray(wild)).max() < 1.5


def test_unknown_samplers_and_numbers_of_calls_are_refused():
    with pytest.raises(UserError, match="did you mean 'midpoint'"):
        FlowSampler("midpiont")
    with pytest.raises(UserError, match="`calls`"):
        FlowSampler("euler", 0)
