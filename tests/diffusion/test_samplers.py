"""Samplers against mathematics.

For data ~ N(mu, s²) the best noise prediction and the solution of the probability-flow ODE are closed forms: with
d_t² = alpha_t² s² + sigma_t², noise(x, t) = sigma_t (x - alpha_t mu) / d_t², and (x_t - alpha_t mu) / d_t is constant.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.diffusion import SAMPLERS, Sampler, Schedule, integrate, tables, times
from edp.errors import UserError

SCHEDULE = Schedule("linear", 1000)
MEAN, STD = 0.3, 0.5


def gaussian_noise(schedule, table):
    alpha, sigma = (jnp.asarray(f(table.t)) for f in (schedule.alpha, schedule.sigma))

    def noise_at(y, i):
        return sigma[i] * (y - alpha[i] * MEAN) / (alpha[i] ** 2 * STD**2 + sigma[i] ** 2)

    return noise_at


def estimate(schedule, table, noise_at):
    """The estimate of the data from a prediction of the noise."""
    alpha, sigma = (jnp.asarray(f(table.t)) for f in (schedule.alpha, schedule.sigma))
    return lambda y, i: (y - sigma[i] * noise_at(y, i)) / alpha[i]


def run(table, x, key=None, schedule=SCHEDULE):
    key = jax.random.key(0) if key is None else key
    return integrate(table, schedule, estimate(schedule, table, gaussian_noise(schedule, table)), x, key, clip=None)


def exact(x, start, end, schedule=SCHEDULE):
    def spread(t):
        return np.sqrt(schedule.alpha(t) ** 2 * STD**2 + schedule.sigma(t) ** 2)

    return schedule.alpha(end) * MEAN + spread(end) / spread(start) * (x - schedule.alpha(start) * MEAN)


def order_of_convergence(make, calls, end=0.3):
    """The slope of log error against log number of calls, from t = 1 to ``end`` in float64."""
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).standard_normal((64, 1)))
        errors = []
        for n in calls:
            ts = np.linspace(1.0, end, n + 1)
            errors.append(np.abs(np.asarray(run(make(ts), x)) - exact(np.asarray(x), 1.0, end)).max())
    return -np.polyfit(np.log(calls), np.log(errors), 1)[0]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_dpm_solver_converges_with_its_order(order):
    calls = 6 * np.array([8, 16, 32, 64])
    measured = order_of_convergence(
        lambda ts: tables.dpm_solver_table(SCHEDULE, ts, (order,) * ((len(ts) - 1) // order)), calls
    )
    assert measured == pytest.approx(order, abs=0.3)


def test_dpm_solver_pp_converges_with_order_2():
    assert order_of_convergence(
        lambda ts: tables.dpm_solver_pp_table(SCHEDULE, ts), [48, 96, 192, 384]
    ) == pytest.approx(2, abs=0.3)


def test_ddim_converges_with_order_1():
    assert order_of_convergence(lambda ts: tables.ddim_table(SCHEDULE, ts), [48, 96, 192, 384]) == pytest.approx(
        1, abs=0.3
    )


def test_ddim_is_dpm_solver_of_order_1():
    ts = np.linspace(1, 0.001, 16)
    one, other = tables.ddim_table(SCHEDULE, ts), tables.dpm_solver_table(SCHEDULE, ts, (1,) * 15)
    assert np.allclose(one.base_coef, other.base_coef)
    assert np.allclose(one.now_coef, other.now_coef)


def test_paper_grid_and_orders():
    assert tables.dpm_orders(15, 3) == (3, 3, 3, 3, 2, 1)
    assert tables.dpm_orders(16, 3) == (3, 3, 3, 3, 3, 1)
    assert tables.dpm_orders(17, 3) == (3, 3, 3, 3, 3, 1, 1)
    assert tables.dpm_orders(3, 3) == (2, 1)
    assert tables.dpm_orders(15, 2) == (2,) * 7 + (1,)
    table = Sampler("dpm", 15, 3).table(SCHEDULE)
    assert np.allclose(table.t, np.linspace(1, 0.001, 16)[:-1])
    assert table.advance.tolist() == [False, False, True] * 4 + [False, True, True]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("calls", range(1, 21))
def test_every_call_is_used_and_the_last_step_is_of_first_order(calls, order):
    orders = tables.dpm_orders(calls, order)
    assert sum(orders) == calls
    assert orders[-1] == 1
    assert max(orders) <= order


@pytest.mark.parametrize("schedule", [SCHEDULE, Schedule("vp", 5), Schedule("cosine", 50)])
def test_grids_go_from_noise_to_the_end(schedule):
    for name, grid in times.GRIDS.items():
        ts = grid(schedule, 6)
        assert (len(ts), ts[0], ts[-1]) == (7, 1.0, pytest.approx(times.END)), name
        assert np.all(np.diff(ts) < 0), name
    assert np.ptp(np.diff(np.sqrt(times.quadratic_times(schedule, 6)))) < 1e-12
    assert np.ptp(np.diff(schedule.half_log_snr(times.logsnr_times(schedule, 6)))) < 0.02


def test_a_grid_is_for_solvers_of_the_ode():
    with pytest.raises(UserError, match="`grid`"):
        Sampler("ddim", 10, grid="quadratic")
    with pytest.raises(UserError, match="grid"):
        Sampler("dpm", 10, grid="quadratik")


def test_dpm_solver_3_step_by_hand():
    """One step of the published algorithm, written out with its own symbols."""
    ts = np.array([0.9, 0.8, 0.7, 0.6])
    alpha, sigma, lam = SCHEDULE.alpha(ts), SCHEDULE.sigma(ts), SCHEDULE.half_log_snr(ts)
    eps = lambda x, i: np.sin(3 * x) + i  # noqa: E731  (any function will do)
    x, h = 0.7, lam[3] - lam[0]
    r1, r2 = (lam[1] - lam[0]) / h, (lam[2] - lam[0]) / h
    e0 = eps(x, 0)
    u1 = alpha[1] / alpha[0] * x - sigma[1] * np.expm1(r1 * h) * e0
    d1 = eps(u1, 1) - e0
    u2 = (
        alpha[2] / alpha[0] * x
        - sigma[2] * np.expm1(r2 * h) * e0
        - sigma[2] * r2 / r1 * (np.expm1(r2 * h) / (r2 * h) - 1) * d1
    )
    d2 = eps(u2, 2) - e0
    expected = alpha[3] / alpha[0] * x - sigma[3] * np.expm1(h) * e0 - sigma[3] / r2 * (np.expm1(h) / h - 1) * d2
    with jax.enable_x64(True):
        table = tables.dpm_solver_table(SCHEDULE, ts, (3,))
        data_at = estimate(SCHEDULE, table, lambda y, i: jnp.sin(3 * y) + i)
        got = integrate(table, SCHEDULE, data_at, jnp.full((1, 1), x), jax.random.key(0), clip=None)
    assert float(got[0, 0]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "sampler", [Sampler("ddpm", 1000), Sampler("dpm", 60), Sampler("dpm++", 60), Sampler("ddim", 200)]
)
def test_samples_have_the_datas_mean_and_covariance(sampler):
    n = 20_000
    start_key, chain_key = jax.random.split(jax.random.key(1))
    table = sampler.table(SCHEDULE)
    samples = np.asarray(run(table, jax.random.normal(start_key, (n, 2)), chain_key))
    assert samples.mean(axis=0) == pytest.approx([MEAN, MEAN], abs=0.015)
    assert np.cov(samples.T) == pytest.approx(STD**2 * np.eye(2), abs=0.015)


def test_ddpm_on_the_full_grid_is_the_papers_chain():
    """x̂₀ and x mixed by q(x^{k-1} | x^k, x^0), for k in the middle of the chain."""
    rows = Sampler("ddpm", 1000).table(SCHEDULE)
    k = 500  # of 0 … 999
    beta, bar, before = SCHEDULE.betas[k], SCHEDULE.alpha_bars[k], SCHEDULE.alpha_bars[k - 1]
    row = 999 - k
    assert rows.base_coef[row] == pytest.approx(1 / np.sqrt(1 - beta))
    assert rows.now_coef[row] == pytest.approx(-beta / np.sqrt(1 - bar) / np.sqrt(1 - beta))
    assert rows.noise_coef[row] ** 2 == pytest.approx(beta * (1 - before) / (1 - bar))
    assert rows.noise_coef[-1] == 0


def test_clipping_keeps_the_estimate_in_range():
    table = Sampler("dpm", 15).table(SCHEDULE)
    data_at = estimate(SCHEDULE, table, lambda y, i: 50 * jnp.sin(y))
    wild = integrate(table, SCHEDULE, data_at, jnp.ones((8, 3)), jax.random.key(0))
    assert np.abs(np.asarray(wild)).max() < 1.1


@pytest.mark.parametrize("schedule", [SCHEDULE, Schedule("cosine", 100), Schedule("vp", 5), Schedule("vp", 1)])
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_number_of_calls_makes_so_many_calls(name, schedule):
    for calls in range(1, 31):
        if name in ("ddim", "ddpm") and calls > schedule.steps:
            break
        table = Sampler(name, calls).table(schedule)
        assert len(table.t) == calls
        assert table.advance[-1]
        assert all(np.isfinite(column).all() for column in table[:-1])
        assert np.isfinite(schedule.half_log_snr(table.t)).all()


def test_bad_samplers_are_refused():
    with pytest.raises(UserError, match="did you mean 'ddpm'"):
        Sampler("ddppm")
    with pytest.raises(UserError, match="at most one call a step"):
        Sampler("ddpm", 15).table(Schedule("vp", 5))
    with pytest.raises(UserError, match="order 1, 2 or 3"):
        Sampler("dpm", 15, 4)
