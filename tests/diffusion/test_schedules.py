import numpy as np
import pytest

from edp.diffusion import SCHEDULES, Schedule
from edp.errors import UserError


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("steps", [5, 100, 1000])
def test_schedules_go_from_data_to_noise(name, steps):
    schedule = Schedule(name, steps)
    assert schedule.betas.shape == (steps,)
    assert np.all((schedule.betas > 0) & (schedule.betas < 1))
    assert np.all(np.diff(schedule.alpha_bars) < 0)
    assert schedule.alpha_bars[-1] < 0.01
    ts = np.linspace(1, 1 / steps, 50)
    assert np.allclose(schedule.alpha(ts) ** 2 + schedule.sigma(ts) ** 2, 1)
    assert np.all(np.diff(schedule.half_log_snr(ts)) > 0)


def test_linear_betas_are_the_published_ones():
    assert np.allclose(Schedule("linear", 1000).betas[[0, -1]], [1e-4, 2e-2])
    assert np.allclose(Schedule("linear", 100).betas[[0, -1]], [1e-3, 2e-1])


def test_vp_betas_by_hand():
    # beta_k = 1 - exp(-0.1/K - 9.9 (2k - 1) / (2 K²)) for k = 1, 5 and K = 5
    expected = [1 - np.exp(-0.02 - 9.9 * 1 / 50), 1 - np.exp(-0.02 - 9.9 * 9 / 50)]
    assert np.allclose(Schedule("vp", 5).betas[[0, -1]], expected)


@pytest.mark.parametrize("name", SCHEDULES)
def test_continuous_time_meets_the_discrete_steps(name):
    schedule = Schedule(name, 1000)
    k = np.arange(1000)
    t = (k + 1) / 1000
    assert np.allclose(schedule.alpha(t) ** 2, schedule.alpha_bars)
    assert np.allclose(schedule.step(t), k)
    halfway = schedule.log_alpha(t[:-1] + 0.0005)
    assert np.allclose(halfway, (schedule.log_alpha(t[:-1]) + schedule.log_alpha(t[1:])) / 2)


def test_elbo_weights_by_hand():
    schedule = Schedule("vp", 2)
    beta, bar = schedule.betas, schedule.alpha_bars
    weights = beta / (2 * (1 - beta) * (1 - bar))
    assert np.allclose(schedule.elbo_weights, 2 * weights / weights.sum())


def test_unknown_name_names_the_nearest():
    with pytest.raises(UserError, match="did you mean 'cosine'"):
        Schedule("cosin")
