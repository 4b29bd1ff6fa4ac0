"""Signs that a policy cannot be used."""

import numpy as np

from edp.acting.usable import action_faults, value_faults


def log_actions(rng):
    return np.clip(0.3 * rng.standard_normal((500, 2)), -0.9, 0.9)


def test_a_policy_like_the_log_has_no_faults(rng):
    action = log_actions(rng)
    assert action_faults(action + 0.1 * rng.standard_normal(action.shape), action) == []
    assert action_faults(action[rng.permutation(500)], action) == [], "not farther than random ones"


def test_worse_than_random(rng):
    action = log_actions(rng)
    (fault,) = action_faults(-1.5 * action, action)
    assert "farther from the log's (2.50 std) than random ones" in fault


def test_at_the_limits(rng):
    action = log_actions(rng)
    faults = action_faults(np.sign(action), action)
    assert faults[-1] == "100% of its actions are at their limits, and 0% of the log's"


def test_not_finite(rng):
    action = log_actions(rng)
    assert action_faults(np.full_like(action, np.nan), action) == ["its actions are not finite"]


def test_values_beyond_all_returns():
    assert value_faults({"q_policy": 90.0, "q_data": -100.0}, 1.0, 0.99) == []
    (fault,) = value_faults({"q_policy": 1e4, "q_data": 10.0}, 1.0, 0.99)
    assert "q_policy 1e+04" in fault
    assert value_faults({"q_data": float("nan")}, 1.0, 0.99)
    assert value_faults({"bc_loss": 1e9}, 1.0, 0.99) == []
    assert value_faults({"q_data": 1e9}, 1.0, 1.0) == [], "without a discount there is no bound"
