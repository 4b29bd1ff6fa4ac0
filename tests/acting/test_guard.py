"""What happens to observations outside of the training data."""

import warnings

import numpy as np
import pytest

import edp
from edp.acting.guard import Guard
from edp.acting.reference import Reference
from edp.data.signals import Signals
from edp.errors import UserError
from support.plant import observations


@pytest.fixture
def guard(rng):
    """Of two numbers that rise together, and one that never changes."""
    x = np.linspace(-1, 1, 200)
    rows = np.stack([x, x + 0.02 * rng.normal(size=200), np.full(200, 5.0)], axis=1).astype(np.float32)
    low, high = rows.min(axis=0), rows.max(axis=0)
    signals = Signals(("a", "b", "c"), ("u",), tuple(map(float, low)), tuple(map(float, high)), distance=0.1)
    return Guard(signals, Reference(rows, True))


def check(guard, *rows):
    rows = np.float32(rows)
    return guard.check(rows, rows)


class TestStatus:
    def test_inside(self, guard):
        status = check(guard, (0.5, 0.5, 5), (-0.3, -0.3, 5))
        assert not status.outside and not status.columns and not status.rows and not status.why
        assert 0 <= status.distance < 1

    def test_a_tenth_of_the_width_is_not_far(self, guard):
        assert "a" not in check(guard, (1.15, 1, 5)).columns
        assert check(guard, (1.25, 1, 5)).columns == ("a",)
        assert check(guard, (1, 1, 5.001)).columns == ("c",)

    def test_together_but_not_alone(self, guard):
        status = check(guard, (0.8, -0.8, 5))
        assert status.outside and status.columns == () and status.distance > 5
        assert "times as far from it as unseen data usually is" in status.why

    def test_the_message_has_names_values_and_ranges(self, guard):
        status = check(guard, (0, 0, 5), (0, 1e30, 5), (0, 0, 6))
        assert status.columns == ("b", "c") and status.rows == (1, 2)
        assert "'b' is 1e+30 in row 1 (-0.99" in status.why and "'c' is 6 in row 2 (5 to 5)" in status.why

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
    def test_what_is_not_finite(self, guard, bad):
        assert check(guard, (bad, 0, 5)).columns == ("a",)


@pytest.fixture
def good(plant):
    return observations(plant)[700]


@pytest.mark.filterwarnings("error")
def test_most_of_the_log_is_inside(plant_run, plant):
    policy, rows = edp.load_policy(plant_run, outside="ignore"), observations(plant)
    policy.act({name: [row[name] for row in rows] for name in rows[0]})
    assert len(policy.status.rows) < 0.01 * len(rows)
    policy = edp.load_policy(plant_run)
    for row in rows[:5]:
        policy.act(row)
        assert not policy.status.outside


def test_warnings_come_once_for_each_column(plant_run, good):
    policy = edp.load_policy(plant_run)
    with pytest.warns(UserWarning, match=r"'level_%' is 4.1e\+31 \(.* to .*\); the policy has not learned") as said:
        policy.act(good | {"level_%": 4.1e31})
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for level in (90.0, 91.0, 1e30):
            policy.act(good | {"level_%": level})
            assert policy.status.outside and policy.status.columns == ("level_%",) and not policy.status.held
        policy.act(good)
        assert not policy.status.outside
    with pytest.warns(UserWarning, match=r"'temp_C' is 0 \("):
        policy.act(good | {"temp_C": 0.0})


def test_a_far_array_is_not_acted_on_without_a_word(plant_run):
    """It was: full valve."""
    policy = edp.load_policy(plant_run)
    with pytest.warns(UserWarning, match="outside of the training data"):
        policy.act(np.full(9, 1e30))
    assert policy.status.outside


def test_refusing(plant_run, good):
    policy = edp.load_policy(plant_run, outside="refuse")
    policy.act(good)
    with pytest.raises(UserError, match=r"'temp_C' is 5 \(5\d.* to 6\d.*\)$"):
        policy.act(good | {"temp_C": 5.0})
    twin = edp.load_policy(plant_run)
    twin.act(good)
    assert policy.act(good) == twin.act(good)  # what was refused draws no random numbers


BAD = [
    {"level_%": 1e30},
    {"level_%": float("nan")},
    {"level_%": 10**400},
    {"level_%": "Bad Input"},
    {"draw_l_min": "Bad Input"},
    {"temp_C": None},
    {"mode": None},
    {"mode": "dusk"},
    {"time": None},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_holding(plant_run, good, bad):
    policy = edp.load_policy(plant_run, outside="hold")
    first, second = policy.act(good), policy.act(good)
    assert first != second
    with pytest.warns(UserWarning, match="the last good action is held"):
        assert policy.act(good | bad) == second
    assert policy.status.held and policy.status.outside
    assert policy.act(good | bad) == second
    after = policy.act(good)
    assert after != second and not policy.status.held
    policy.reset()
    with pytest.raises(UserError, match="there is no earlier action to hold"):
        policy.act(good | bad)


def test_a_cell_that_cannot_be_read_is_explained(plant_run, good):
    policy = edp.load_policy(plant_run, outside="hold")
    policy.act(good)
    with pytest.warns(UserWarning, match="'mode' is 'dusk', which is not in the training data.*is held"):
        policy.act(good | {"mode": "dusk"})
    assert policy.status.why.startswith("the observation's 'mode' is 'dusk'")
    assert policy.status.columns == ("mode=day", "mode=night")


@pytest.mark.filterwarnings("ignore:outside of the training data")
def test_each_row_holds_its_own_action(plant_run, plant):
    rows, twin = np.zeros((3, 9), np.float32), edp.load_policy(plant_run, outside="ignore")
    policy = edp.load_policy(plant_run, outside="hold")
    encoded, _ = policy._encoder.rows(table := columns_of(observations(plant)[:3]), list(table))
    rows[:] = encoded
    first = policy.act(rows)
    np.testing.assert_array_equal(first, twin.act(rows))
    rows[1, 2] = 1e30
    second, free = policy.act(rows), twin.act(rows)
    np.testing.assert_array_equal(second[1], first[1])
    np.testing.assert_array_equal(second[[0, 2]], free[[0, 2]])
    assert policy.status.rows == (1,)
    with pytest.raises(UserError, match="no earlier action"):
        policy.act(rows[1:])


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_unknown_choices(plant_run):
    with pytest.raises(UserError, match="unknown choice of `outside` 'holds': did you mean 'hold'"):
        edp.load_policy(plant_run, outside="holds")
