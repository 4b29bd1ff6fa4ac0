"""Limits of actions: how they are given, and how they bring actions near to the last ones."""

import math

import numpy as np
import pytest

from edp.acting.limits import HOLD, Limits, make_limits
from edp.data.signals import Signals
from edp.data.units import Units
from edp.errors import UserError

SIGNALS = Signals(("level",), ("valve_%", "heater_%"))
UNITS = Units((0.0,), (1.0,), (0.0, 10.0), (100.0, 90.0))


def limits(**options):
    return make_limits(SIGNALS, UNITS, **options)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, (5, 5)),
        ([5, 0.5], (5, 0.5)),
        (np.array([5, 0.5]), (5, 0.5)),
        ([None, 2], (math.inf, 2)),
        ({"heater_%": 2}, (math.inf, 2)),
        ({"heater_%": np.float32(2), "valve_%": 1}, (1, 2)),
        ({}, None),
        (math.inf, None),
    ],
)
def test_changes_by_number_sequence_or_name(given, expected):
    assert limits(max_change=given) == Limits(expected)


def test_fallbacks():
    assert limits() == Limits()
    assert limits(deadline_ms=5) == limits(deadline_ms=5, fallback="hold") == Limits(None, 5.0, HOLD)
    assert limits(deadline_ms=0.5, fallback={"heater_%": 90, "valve_%": 0}).fallback == (0, 90)
    assert limits(deadline_ms=5, fallback=(0, 10)).fallback == (0, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_change": -1}, "`max_change` must be above 0, not -1"),
        ({"max_change": [3, 0]}, "`max_change` must be above 0, not 0"),
        ({"max_change": {"valv_%": 1}}, "unknown action in `max_change` 'valv_%': did you mean 'valve_%'"),
        ({"max_change": [1, 2, 3]}, "`max_change` has 3 numbers, and there are 2 actions"),
        ({"max_change": [[1, 2]]}, "`max_change` has 1 number, and there are 2 actions"),
        ({"max_change": ["1", 2]}, "`max_change` must be a number for 'valve_%', not '1'"),
        ({"max_change": [1, math.nan]}, "`max_change` must be a number for 'heater_%', not nan"),
        ({"max_change": True}, "`max_change` must be numbers, or a mapping"),
        ({"max_change": "5"}, "`max_change` must be numbers, or a mapping"),
        ({"deadline_ms": 0}, "`deadline_ms` must be a number of milliseconds above 0, not 0"),
        ({"deadline_ms": -3}, "`deadline_ms` must be a number of milliseconds above 0, not -3"),
        ({"deadline_ms": math.inf}, "`deadline_ms` must be .* not inf"),
        ({"deadline_ms": "5"}, "`deadline_ms` must be .* not '5'"),
        ({"fallback": "hold"}, "`fallback` is what is returned after `deadline_ms`"),
        ({"deadline_ms": 5, "fallback": "holds"}, "`fallback` must be 'hold' or an action, not 'holds'"),
        ({"deadline_ms": 5, "fallback": 3}, "`fallback` must be numbers, or a mapping"),
        ({"deadline_ms": 5, "fallback": {"valve_%": 3}}, "`fallback` has no 'heater_%'"),
        ({"deadline_ms": 5, "fallback": [0, None]}, "`fallback` must be a number for 'heater_%', not None"),
        ({"deadline_ms": 5, "fallback": [0, 5]}, "`fallback` is 5 for 'heater_%', which is not within 10 to 90"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(UserError, match=message) as error:
        limits(**options)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("error")
def test_actions_are_brought_near_to_the_last_ones():
    near = lambda wanted, last, **options: limits(**options).limit_change(np.float32(wanted), np.float32(last), UNITS)  # noqa: E731
    rows = [[50, 50], [0, 90], [100, 20]]
    last = [[48, 52], [10, 80], [np.nan, np.nan]]
    np.testing.assert_array_equal(near(rows, last, max_change=[3, 5]), [[50, 50], [7, 85], [100, 20]])
    np.testing.assert_array_equal(near(rows, last, max_change={"valve_%": 3}), [[50, 50], [7, 90], [100, 20]])
    np.testing.assert_array_equal(near(rows, last), rows)
    np.testing.assert_array_equal(near([[100, 90]], [[99, 89]], max_change=5), [[100, 90]])
