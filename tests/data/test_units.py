import json

import numpy as np
import pytest

from edp.data import units
from edp.data.arrays import from_arrays
from edp.data.dataset import read_dataset
from edp.errors import UserError

LOW, HIGH = (18.0, 0.0), (75.0, 100.0)


@pytest.fixture
def recorded(rng):
    n = 50
    obs = rng.normal([20.0, -5.0, 7.0], [3.0, 40.0, 0.0], (n, 3)).astype(np.float32)
    action = rng.uniform(LOW, HIGH, (n, 2)).astype(np.float32)
    action[0], action[1] = LOW, HIGH
    ends = np.arange(n) % 10 == 9
    return from_arrays(obs, action, rng.normal(size=n), np.zeros(n, bool), ends, obs + 1, name="data")


@pytest.fixture
def dataset(recorded):
    return read_dataset(recorded)


def test_what_float32_rounds_to_two_values_is_scaled_away():
    """Seconds since 1970, over three minutes: float32 keeps only two different values."""
    obs = np.stack([1.7e9 + np.arange(200), np.sin(np.arange(200))], axis=1)
    log = from_arrays(obs, np.zeros((200, 1)), np.zeros(200), np.arange(200) % 10 == 9)
    dataset = read_dataset(log)
    assert len(np.unique(dataset.obs[:, 0])) > 1
    found = units.fit_units(dataset, "standard", (-1.0,), (1.0,), "x")
    assert np.abs(found.convert_dataset(dataset, log).obs[:, 0]).max() < 1e-3


def test_jitter_that_float32_does_not_see_is_no_change():
    """Constant columns of a simulator are allowed, because columns of an HDF5 file cannot be left out."""
    rng = np.random.default_rng(0)
    obs = np.stack([0.5 + 1e-8 * rng.standard_normal(100), rng.standard_normal(100)], axis=1)
    log = from_arrays(obs, np.zeros((100, 1)), np.zeros(100), np.arange(100) % 10 == 9)
    dataset = read_dataset(log)
    found = units.fit_units(dataset, "standard", (-1.0,), (1.0,), "x")
    assert np.abs(found.convert_dataset(dataset, log).obs[:, 0]).max() < 1e-6


def test_actions_become_numbers_in_the_unit_range_and_come_back(dataset, recorded):
    raw = dataset.action.copy()
    found = units.fit_units(dataset, "none", (), (), "data")
    scaled = found.convert_dataset(dataset, recorded)
    assert np.abs(scaled.action).max() == pytest.approx(units.ACTION_LIMIT)
    back = found.actions_from_network(scaled.action)
    np.testing.assert_allclose(back, raw, atol=0.06)  # the ends are cut off at 0.999
    assert found.low == LOW
    assert found.high == HIGH


def test_no_rounding_carries_an_action_past_its_range():
    odd = units.Units((0.0,), (1.0,), (0.1, -3.3), (0.7, 1e6))
    extreme = odd.actions_from_network(np.array([[-1.0, -1.0], [1.0, 1.0]], np.float32))
    assert (extreme >= np.array(odd.low, np.float32)).all()
    assert (extreme <= np.array(odd.high, np.float32)).all()


def test_a_range_that_is_given_wins_and_one_number_serves_all(dataset):
    found = units.fit_units(dataset, "none", (-10.0,), (80.0, 120.0), "data")
    assert found.low == (-10.0, -10.0)
    assert found.high == (80.0, 120.0)


@pytest.mark.parametrize(
    ("how", "low", "high"), [("standard", -4.0, 4.0), ("min-max", -1.0, 1.0), ("none", -200.0, 200.0)]
)
def test_observations_are_normalised_and_constant_columns_survive(dataset, how, low, high):
    found = units.fit_units(dataset, how, (), (), "data")
    scaled = found.observations_to_network(dataset.obs)
    assert low - 1e-5 <= scaled.min()
    assert scaled.max() <= high + 1e-5
    if how == "standard":
        np.testing.assert_allclose(scaled[:, :2].mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(scaled[:, :2].std(axis=0), 1, atol=1e-5)
    if how != "none":
        assert (scaled[:, 2] == 0).all()


@pytest.mark.parametrize("how", ["standard", "min-max"])
def test_a_small_change_on_a_large_number_is_scaled(how):
    obs = np.stack([1.7e9 + 10.0 * np.arange(1000), 1 + 1e-7 * (np.arange(1000) % 2)], axis=1).astype(np.float32)
    shift, scale = units.normalisation(obs, how)
    scaled = units.Units(tuple(shift), tuple(scale), (-1.0,), (1.0,)).observations_to_network(obs)
    assert scaled[:, 0].min() == pytest.approx(-1 if how == "min-max" else -(3**0.5), abs=0.03)
    assert scaled[:, 0].max() == pytest.approx(1 if how == "min-max" else 3**0.5, abs=0.03)
    assert np.abs(scaled[:, 1]).max() < 1e-6  # rounding is not blown up


def test_moments_in_pieces_are_those_of_the_whole(monkeypatch, rng):
    monkeypatch.setattr(units, "PIECE", 7)
    array = rng.normal([1e6, 0.0], [1.0, 100.0], (100, 2))
    mean, std = units.moments(array)
    np.testing.assert_allclose(mean, array.mean(axis=0))
    np.testing.assert_allclose(std, array.std(axis=0))
    np.testing.assert_array_equal(units.extremes(array), (array.min(axis=0), array.max(axis=0)))


def test_plain_units_change_nothing_but_the_outermost_actions(rng):
    obs, action = rng.normal(size=(20, 3)).astype(np.float32), rng.uniform(-1, 1, (20, 2)).astype(np.float32)
    log = from_arrays(obs, action, np.zeros(20), np.zeros(20, bool), next_observations=obs)
    scaled = units.identity_units(3, 2).convert_dataset(read_dataset(log), log)
    np.testing.assert_array_equal(scaled.obs, obs)
    np.testing.assert_array_equal(scaled.action, np.clip(action, -0.999, 0.999))


def test_units_are_kept_as_json_without_loss(dataset):
    found = units.fit_units(dataset, "standard", (), (), "data")
    assert units.Units.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (
            (20.0, 0.0),
            (),
            "data: an action outside of its range, first in row 0: 18 in column 0 is not within 20 to 75",
        ),
        ((1.0, 2.0, 3.0), (), "`action_low` has 3 numbers, and data has 2"),
        ((), (18.0,), "the range of action 0 is empty .18 to 18."),
    ],
)
def test_ranges_that_do_not_fit(dataset, recorded, low, high, message):
    with pytest.raises(UserError, match=message):
        units.fit_units(dataset, "none", low, high, "data").convert_dataset(dataset, recorded)


def test_an_action_outside_is_told_by_its_row_in_the_source():
    n = 40  # the last row of each episode is dropped, because its next state is unknown
    action = np.where(np.arange(n) == 33, 2.0, np.linspace(-1, 1, n))[:, None]
    ends = np.arange(n) % 5 == 4
    log = from_arrays(np.zeros((n, 1)), action, np.zeros(n), np.zeros(n, bool), ends, action_names=("flow",))
    with pytest.raises(UserError, match="first in row 33: 2 in column 'flow' is not within -1 to 1 "):
        units.identity_units(1, 1).convert_dataset(read_dataset(log), log)


@pytest.mark.parametrize(
    "content",
    [
        {"obs_shift": [0], "obs_scale": [0], "low": [0], "high": [1]},
        {"obs_shift": [0], "obs_scale": [1], "low": [1], "high": [1]},
        {"obs_shift": [0, 1], "obs_scale": [1], "low": [0], "high": [1]},
        {"obs_shift": [float("inf")], "obs_scale": [1], "low": [0], "high": [1]},
        {"obs_shift": [], "obs_scale": [], "low": [0], "high": [1]},
    ],
)
def test_units_that_make_no_sense_are_refused(content):
    with pytest.raises(UserError, match="units must"):
        units.Units.from_json(content)


def test_signal_scales_noise_down_and_leaves_the_rest_standard():
    """A slow signal, its fast alternation, noise of any size, and a constant."""
    rng, n = np.random.default_rng(0), 4000
    walk = np.sin(np.arange(n) / 20)
    columns = [5 + 3 * walk, walk * (-1.0) ** np.arange(n), 1e-4 * rng.standard_normal(n), np.full(n, 7.0)]
    log = from_arrays(np.stack(columns, axis=1), np.zeros((n, 1)), np.zeros(n), np.arange(n) % 1000 == 999)
    dataset = read_dataset(log)
    found = units.fit_units(dataset, "signal", (-1.0,), (1.0,), "x").convert_dataset(dataset, log).obs.std(axis=0)
    np.testing.assert_allclose(found, [1, 1, units.NOISE_SCALE, 0], atol=0.02)


def test_signal_is_standard_where_nothing_predicts_anything():
    """For example where every row is an episode: independent draws are all that there is to learn from."""
    rng = np.random.default_rng(0)
    log = from_arrays(rng.normal(size=(500, 3)), np.zeros((500, 1)), np.zeros(500), np.ones(500, bool))
    dataset = read_dataset(log)
    found = units.fit_units(dataset, "signal", (-1.0,), (1.0,), "x").convert_dataset(dataset, log).obs.std(axis=0)
    np.testing.assert_allclose(found, 1, rtol=1e-3)


@pytest.mark.parametrize("side", ["low", "high"])
def test_ranges_that_float32_does_not_hold_are_refused(side):
    """Actions in such a range would be infinite."""
    ends = {"low": -1.0, "high": 1.0} | {side: {"low": -1e39, "high": 1e39}[side]}
    with pytest.raises(UserError, match="finite in float32"):
        units.Units((0.0,), (1.0,), (ends["low"],), (ends["high"],))
