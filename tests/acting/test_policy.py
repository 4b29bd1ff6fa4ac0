"""Policies loaded from their runs."""

import threading

import numpy as np
import pytest

import edp
from edp.acting import policy as policy_module
from edp.acting.limits import make_limits
from edp.cli import main
from edp.errors import UserError
from edp.runs.directory import Run
from support.plant import observations
from support.tiny_policy import UNITS, tiny_policy

SMALL = [
    *["--steps", "20", "--epoch-steps", "10", "--eval-every", "20", "--episodes", "2", "--hidden", "16"],
    *["--policy-target-after", "0", "--seeds", "2", "--seed", "3", "--critic-hidden", "16"],
]


@pytest.fixture(scope="module")
def folder(hopper_file, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "r"
    words = ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(out), "--calls", "3", *SMALL]
    assert main([*words, "--checkpoint-every", "10", "--quiet"]) == 0
    return out


def test_one_observation_or_many(folder, rng):
    policy = edp.load_policy(folder)
    assert policy.act(np.zeros(11)).shape == (3,)
    many = policy.act(rng.standard_normal((5, 11)))
    assert many.shape == (5, 3)
    assert many.dtype == np.float32
    assert np.abs(many).max() <= 1
    for wrong in (np.zeros(12), np.zeros((1, 1, 11)), "level", [[1.0], [1.0, 2.0]]):
        with pytest.raises(UserError, match=r"observations (have 11|are) numbers"):
            policy.act(wrong)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_what_is_not_finite_is_never_acted_on(folder, bad):
    policy, obs = edp.load_policy(folder), np.zeros((2, 11))
    obs[1, 4] = bad
    with pytest.raises(UserError, match=r"NaN or Inf .* in row 1, column 'observation_4'"):
        policy.act(obs)
    with pytest.raises(UserError, match=r"NaN or Inf .* in column 'observation_4'"):
        policy.act(obs[1])
    assert np.isfinite(policy.act(obs[0])).all()


def test_no_observation_at_all(folder):
    policy = edp.load_policy(folder)
    assert policy.act(np.zeros((0, 11))).shape == (0, 3)


def test_it_acts_as_in_the_run_s_evaluation(folder):
    """Random numbers may differ, but without noise the actions are the same."""
    import gymnasium

    import edp.envs

    calm = ["--initial-noise", "0", "--eas", "1", "--episodes", "1"]
    assert main(["eval", str(folder), *calm]) == 0
    row = Run.open(folder).evaluations()[-1]
    for place, seed in enumerate((3, 4)):
        policy = edp.load_policy(str(folder), seed=seed, initial_noise=0.0, eas=1, outside="ignore")
        env = gymnasium.make("edp/hopper-d4rl-v2")
        obs, _ = env.reset(seed=row["env_seeds"][0])
        total, over = 0.0, False
        while not over:
            obs, reward, terminal, timeout, _ = env.step(policy.act(obs))
            total, over = total + float(reward), terminal or timeout
        assert total == pytest.approx(row["returns"][place][0], rel=1e-4)


def test_a_task_s_signals_are_numbered(folder):
    names = {f"observation_{number}": 0.1 * number for number in range(11)}
    action = edp.load_policy(folder).act(names)
    assert list(action) == ["action_0", "action_1", "action_2"]
    numbers = edp.load_policy(folder).act(np.array([*names.values()]))
    np.testing.assert_array_equal(np.float32([*action.values()]), numbers)


def test_its_description(plant_run, folder):
    lines = repr(edp.load_policy(plant_run, outside="hold")).splitlines()
    assert lines[0] == f"LoadedPolicy: bc + diffusion ({plant_run}, step 20, seed 0)"
    assert "2 network calls of dpm++" in lines[1] and "EAS" not in lines[1]
    assert lines[2] == "outside of the training data: hold"
    shown = dict(line.split(maxsplit=1) for line in lines[3:])
    signals = edp.load_policy(plant_run).signals
    assert shown["mode"] == "'day', 'night'"
    assert shown["level_%"] == f"{signals.low[2]:g} to {signals.high[2]:g}"
    assert shown["time"] == "a time (seen as hour, weekday)"
    assert shown["valve_%"] == "0 to 100"
    text = repr(edp.load_policy(folder, eas=4, eas_temperature=0.5, initial_noise=0.5))
    assert "EAS of 4 actions (temperature 0.5), initial_noise 0.5" in text
    assert "observation_10" in text and "action_2" in text


def test_draws_are_its_own(folder):
    obs = np.ones((4, 11))
    first, again, other = (edp.load_policy(folder, draws=draws) for draws in (0, 0, 1))
    one = first.act(obs)
    np.testing.assert_array_equal(one, again.act(obs))
    assert not np.array_equal(one, other.act(obs))
    assert not np.array_equal(one, first.act(obs))  # the next step
    first.reset()
    again.reset()
    other_episode = first.act(obs)
    assert not np.array_equal(one, other_episode)
    np.testing.assert_array_equal(other_episode, again.act(obs))


def test_checkpoints_and_seeds_are_chosen(folder):
    obs = np.random.default_rng(0).standard_normal((50, 11))
    actions = [
        edp.load_policy(folder, eas=1, **which).act(obs)
        for which in ({}, {"checkpoint": 20}, {"checkpoint": "best"}, {"checkpoint": 10}, {"seed": 4})
    ]
    for same in actions[1:3]:
        np.testing.assert_array_equal(actions[0], same)
    for different in actions[3:]:
        assert not np.array_equal(actions[0], different)
    for wrong in ({"seed": 5}, {"checkpoint": 15}, {"checkpoint": "worst"}, {"eas": 0}):
        with pytest.raises(UserError):
            edp.load_policy(folder, **wrong)


def test_policies_that_remember(hopper_file, tmp_path):
    out = tmp_path / "dt"
    words = ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(out), "--algo", "dt", "--quiet"]
    small = ["--steps", "10", "--epoch-steps", "10", "--episodes", "1", "--width", "16", "--layers", "1"]
    assert main([*words, *small]) == 0
    policy = edp.load_policy(out)
    first, second = policy.act(np.ones(11)), policy.act(np.ones(11), reward=100.0)
    assert not np.allclose(first, second)
    with pytest.raises(UserError, match="reset"):
        policy.act(np.ones((2, 11)))
    policy.reset()
    np.testing.assert_array_equal(policy.act(np.ones(11)), first)
    for limits in ({"max_change": 0.1}, {"deadline_ms": 10}):
        with pytest.raises(UserError, match="not for transformers"):
            edp.load_policy(out, **limits)


CHANGES = np.float32([0.5, 20.0])


class TestMaxChange:
    @pytest.fixture
    def rows(self, plant):
        return observations(plant)[:30]

    def test_each_action_changes_by_at_most_that(self, plant_run, rows):
        free = edp.load_policy(plant_run, outside="ignore")
        policy = edp.load_policy(plant_run, outside="ignore", max_change={"valve_%": 0.5, "heater_%": 20})
        wanted, given = (np.array([[*each.act(row).values()] for row in rows]) for each in (free, policy))
        np.testing.assert_array_equal(given[0], wanted[0])  # there is nothing to compare with
        changes = np.abs(np.diff(given, axis=0))
        assert (changes <= CHANGES * (1 + 1e-5)).all() and (np.abs(np.diff(wanted, axis=0)) > CHANGES).any(axis=0).all()
        towards = np.clip(wanted[1:], given[:-1] - CHANGES, given[:-1] + CHANGES)
        np.testing.assert_allclose(given[1:], towards, rtol=1e-5, atol=1e-5)
        assert set(policy.status.limited) == {"valve_%", "heater_%"} - set(
            np.array(["valve_%", "heater_%"])[given[-1] == wanted[-1]]
        )
        free.reset()
        policy.reset()
        assert policy.act(rows[0]) == free.act(rows[0])
        assert policy.status.limited == ()

    def test_rows_of_a_batch_are_limited_one_by_one(self, plant_run):
        policy, alone = (edp.load_policy(plant_run, outside="ignore", max_change=1, initial_noise=0.0) for _ in "12")
        batch = np.random.default_rng(0).uniform(0, 60, (4, 3, 9)).astype(np.float32)
        given = np.stack([policy.act(rows) for rows in batch])
        np.testing.assert_allclose(given[:, 1], [alone.act(rows[1]) for rows in batch], atol=1e-3)
        with pytest.raises(UserError, match="number of rows may change only at reset"):
            policy.act(batch[0, 0])
        policy.reset()
        policy.act(batch[0, 0])

    def test_what_is_held_is_the_limited_action(self, plant_run, rows):
        policy = edp.load_policy(plant_run, outside="hold", max_change=0.5)
        *_, last = [policy.act(row) for row in rows[:5]]
        with pytest.warns(UserWarning, match="the last good action is held"):
            assert policy.act(rows[5] | {"temp_C": 1e9}) == last

    def test_what_is_returned_may_be_changed(self, plant_run):
        policy = edp.load_policy(plant_run, outside="ignore", max_change=0.5)
        first = policy.act(np.zeros(9))
        kept = first.copy()
        first[:] = 1e9
        assert (np.abs(policy.act(np.zeros(9)) - kept) <= 0.51).all()


class Gate(threading.Event):
    """While it is closed, policies do not finish."""

    begun = 0  # computations so far


@pytest.fixture
def gate(monkeypatch):
    gate, right = Gate(), policy_module.act_flat

    def gated(*arguments):
        gate.begun += 1
        gate.wait()
        return right(*arguments)

    monkeypatch.setattr(policy_module, "act_flat", gated)
    gate.set()
    yield gate
    gate.set()


class TestDeadline:
    def test_the_last_action_is_held_until_the_policy_is_in_time_again(self, plant_run, plant, gate):
        good = observations(plant)[700]
        policy, twin = edp.load_policy(plant_run, deadline_ms=1000), edp.load_policy(plant_run)
        assert gate.begun == 1  # it is compiled before the first call
        first = policy.act(good)
        assert first == twin.act(good)
        assert (policy.status.calls, policy.status.misses, policy.status.late) == (1, 0, False)
        assert 0 < policy.status.latency_ms < 1000
        gate.clear()
        gate.begun = 0
        for misses in (1, 2):
            assert policy.act(good) == first
            assert (policy.status.late, policy.status.misses) == (True, misses)
            assert policy.status.latency_ms >= 1000
        assert gate.begun == 1  # the second call did not queue up behind the first
        gate.set()
        *_, third = [twin.act(good) for _ in range(3)]
        assert policy.act(good) == third != first
        assert (policy.status.late, policy.status.misses, policy.status.calls) == (False, 2, 4)

    def test_an_action_as_fallback_is_approached(self, plant_run, plant, gate):
        good, safe = observations(plant)[700], {"valve_%": 0.0, "heater_%": 50.0}
        policy = edp.load_policy(plant_run, deadline_ms=300, fallback=safe, max_change={"valve_%": 1e-3})
        first = policy.act(good)
        gate.clear()
        second = policy.act(good)
        assert second["heater_%"] == 50 != first["heater_%"]
        assert second["valve_%"] == pytest.approx(first["valve_%"] - 1e-3, rel=1e-5)
        assert policy.status.limited == ("valve_%",)
        policy.reset()
        assert policy.act(good) == safe  # also in the first call

    def test_nothing_to_hold(self, plant_run, plant, gate):
        good = observations(plant)[700]
        policy = edp.load_policy(plant_run, deadline_ms=50)
        gate.clear()
        with pytest.raises(UserError, match="no action within 50 ms, and there is no earlier action to hold"):
            policy.act(good)
        assert policy.status.late and policy.status.misses == 1

    def test_a_slow_policy(self):
        """Without a gate: the computation itself is slow, and does not keep the fallback from coming."""
        slow = tiny_policy(eas=30_000, calls=15)
        obs, limits = np.array(UNITS.obs_shift), make_limits(slow.signals, UNITS, deadline_ms=2, fallback=(0, 50, 20))
        slow.act(obs)
        slow.act(obs)
        needed = slow.status.latency_ms
        assert needed > 20
        policy = tiny_policy(eas=30_000, calls=15, limits=limits)
        times = []
        for _ in range(8):
            np.testing.assert_array_equal(policy.act(obs), [0, 50, 20])
            times.append(policy.status.latency_ms)
        assert policy.status.misses == 8
        assert np.median(times) < needed / 2

    def test_another_number_of_rows_is_compiled_before_the_clock_starts(self, plant_run, gate):
        policy = edp.load_policy(plant_run, deadline_ms=1000, outside="ignore")
        gate.begun = 0
        assert policy.act(np.full((2, 9), 50.0)).shape == (2, 2)
        assert gate.begun == 2
        policy.reset()
        policy.act(np.full((2, 9), 50.0))
        assert gate.begun == 3


def test_limits_in_its_description(plant_run):
    lines = repr(edp.load_policy(plant_run, max_change={"valve_%": 2.5}, deadline_ms=20)).splitlines()
    assert lines[3] == "deadline: 20 ms, then the last action"
    assert [line.split()[1:] for line in lines[-2:]] == [
        ["0", "to", "100,", "by", "at", "most", "2.5", "from", "one", "call", "to", "the", "next"],
        ["0", "to", "100"],
    ]
    text = repr(edp.load_policy(plant_run, deadline_ms=20, fallback=[0, 50]))
    assert "deadline: 20 ms, then valve_% 0, heater_% 50" in text


def test_wrong_limits(plant_run):
    for wrong in ({"max_change": {"valve": 1}}, {"deadline_ms": -1}, {"fallback": "hold"}):
        with pytest.raises(UserError):
            edp.load_policy(plant_run, **wrong)
    with pytest.raises(UserError, match="unknown option of acting 'deadline': did you mean 'deadline_ms'"):
        edp.load_policy(plant_run, deadline=5)


@pytest.mark.filterwarnings("ignore:outside of the training data")
def test_only_good_numbers_fill_empty_cells(plant, plant_run):
    good = observations(plant)[3]
    policy, twin = (edp.load_policy(plant_run, outside="hold") for _ in range(2))
    for each in (policy, twin):
        each.act(good)
    for bad in (float("inf"), 1e30, "Bad Input"):
        policy.act(good | {"draw_l_min": bad})
        twin.act(good | {"draw_l_min": 1e30})
        assert policy.status.held and not policy.status.filled
        for calls in (1, 2):
            assert policy.act(good | {"draw_l_min": None}) == twin.act(good)
            assert policy.status.filled == ("draw_l_min",) and policy.status.filled_calls == calls
    policy.act(good)
    assert policy.status.filled == () and policy.status.filled_calls == 0


def test_empty_cells_are_filled_as_in_training(plant, plant_run):
    """The draw has the number of the call before; the temperature is refused, as in the log."""
    first, second = observations(plant)[100:102]
    filled, given = (edp.load_policy(plant_run) for _ in range(2))
    for policy in (filled, given):
        policy.act(first)
    assert filled.act(second | {"draw_l_min": None}) == given.act(second | {"draw_l_min": first["draw_l_min"]})
    with pytest.raises(UserError, match="'temp_C'"):
        filled.act(second | {"temp_C": None})
    filled.reset()
    with pytest.raises(UserError, match="'draw_l_min'"):
        filled.act(second | {"draw_l_min": None})
