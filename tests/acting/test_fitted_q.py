"""Fitted Q evaluation in closed form, against differences that are known."""

import numpy as np
import pytest

from edp.acting import fitted_q
from edp.acting.fitted_q import FittedQ
from edp.data.dataset import Dataset
from support.linear import run_process


@pytest.fixture(autouse=True)
def few_features(monkeypatch):
    monkeypatch.setattr(fitted_q, "FEATURES", 100)


def test_states_that_do_not_depend_on_actions(rng):
    """The reward is 1 - (a - s)². The policy slope · s loses (slope - 1)² s², and the log (a - s)²."""
    obs = rng.uniform(-1, 1, (3001, 1)).astype(np.float32)
    action = rng.uniform(-1, 1, (3000, 1)).astype(np.float32)
    reward = 1 - (action - obs[:-1])[:, 0] ** 2
    ones, episode = np.ones(3000, np.float32), np.arange(3000) // 50
    data = Dataset(obs[:-1], action, reward, obs[1:], ones, episode, np.zeros(60), [])
    fitted = FittedQ(data, 0.9)
    for slope in (1.0, 0.0, -1.0):
        found = fitted.advantages(slope * data.obs, slope * data.next_obs)
        assert found.mean() == pytest.approx(2 / 3 - (slope - 1) ** 2 / 3, abs=0.05)


def test_effects_of_actions_on_later_rewards_count():
    """The reward -x² does not depend on the action of its step."""
    data, true = run_process(100, -0.2, 0.4), run_process(100, -1.0, 0.0)
    found = FittedQ(data, 0.95).advantages(*(np.clip(-part[:, :1], -1, 1) for part in (data.obs, data.next_obs)))
    assert found.mean() == pytest.approx(true.reward.mean() - data.reward.mean(), rel=0.35)


def test_the_log_s_own_actions_have_no_advantage(rng):
    data = run_process(50, -0.5, 0.0)
    found = FittedQ(data, 0.95).advantages(data.action, np.clip(-0.5 * data.next_obs[:, :1], -1, 1))
    np.testing.assert_allclose(found, 0, atol=1e-9)


def test_values_cannot_run_away():
    """Far outside of the log, values stay within what rewards allow."""
    data = run_process(30, -0.2, 0.05)
    fitted = FittedQ(data, 0.95)
    far = np.full_like(data.action, 50.0)
    found = fitted.advantages(far, far)
    assert np.abs(found).max() <= (fitted.limits[1] - fitted.limits[0]) * (1 + 1e-9)
