"""Policies loaded from their runs."""

import numpy as np
import pytest

import edp
from edp.cli import main
from edp.errors import UserError
from edp.runs.directory import Run

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
    with pytest.raises(ValueError, match="reset"):
        policy.act(np.ones((2, 11)))
    policy.reset()
    np.testing.assert_array_equal(policy.act(np.ones(11)), first)
