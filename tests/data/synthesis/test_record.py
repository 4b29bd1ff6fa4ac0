"""Recording any policy in any environment."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

import edp
from edp.cli import main
from edp.data import formats
from edp.data.dataset import read_dataset
from edp.data.units import fit_units
from edp.errors import UserError
from support.own_data import Room


@pytest.fixture
def short(monkeypatch):
    """Lower the limit of 10,000 steps, to be quick."""
    for module in ("edp.envs.make", "edp.data.synthesis.record", "edp.acting.evaluator", "edp.cli.display"):
        monkeypatch.setattr(f"{module}.MOST_STEPS", 30)


def test_an_environment_whose_options_cannot_be_written_down_is_not_named():
    recorder = edp.Recorder(gymnasium.make("Room-v0", goal=np.float32(19.0)))
    recorder.reset(seed=0)
    recorder.step(np.float32([30.0, 50.0]))
    assert recorder.log().env == ""


def test_recording_a_callable_and_training_on_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("operator_of_mine.py").write_text("def act(obs):\n    return [40.0, 10 * obs[2] % 100]\n", encoding="utf-8")
    words = ["data", "record", "a.npz", "--env", "Room-v0", "--policy", "operator_of_mine:act", "--episodes", "3"]
    assert main(words) == 0
    assert "a.npz: 45 steps" in capsys.readouterr().out
    data = read_dataset(formats.open_log("a.npz"))
    np.testing.assert_allclose(data.action[:, 0], 40.0)
    np.testing.assert_allclose(data.action[:, 1], 10 * data.obs[:, 2] % 100, rtol=1e-5)
    assert (data.not_done == 1).all()
    assert len(data.returns) == 3


def test_recording_an_environment_without_an_end(short, tmp_path, capsys, fails):
    words = ["data", "record", str(tmp_path / "a.npz"), "--env", "EndlessRoom-v0", "--episodes", "2", "--overwrite"]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "60 steps" in captured.out
    assert "2 of 2 episodes were cut off after 30 steps: the environment has no limit" in captured.err
    assert main([*words, "--max-steps", "7"]) == 0
    captured = capsys.readouterr()
    assert "14 steps" in captured.out
    assert "cut off" not in captured.err
    assert "--max-steps must be at least 1" in fails(*words, "--max-steps", "0")
    with pytest.warns(UserWarning, match="1 episode was cut off"):
        assert edp.record(Room(), episodes=1).size == 30
    assert edp.record(Room(), episodes=1, max_steps=5).size == 5
    assert edp.record("Room-v0", episodes=1).size == 15


def test_actions_outside_of_the_range_are_noted_once():
    said = []
    log = edp.record("Pendulum-v1", lambda obs: [5.0 * obs[0]], episodes=1, max_steps=50, on_note=said.append)
    (steps,) = log.pieces()
    count = int((np.abs(steps.actions) > 2).sum())
    assert count
    (note,) = said
    assert note.startswith(f"{count} of 50 actions were outside of the environment's range, and recorded as they were")
    edp.record("Pendulum-v1", episodes=1, max_steps=50, on_note=said.append)
    assert len(said) == 1


def test_clipped_actions_are_taken_and_trained_on(tmp_path, capsys, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    Path("strong.py").write_text("def act(obs):\n    return [400.0 * obs[0]]\n", encoding="utf-8")
    words = ["--env", "Pendulum-v1", "--policy", "strong:act", "--episodes", "1", "--max-steps", "40"]
    assert main(["data", "record", "given.npz", *words]) == 0
    assert "and recorded as they were given: training refuses them, and --clip" in capsys.readouterr().err
    assert main(["data", "record", "clipped.npz", *words, "--clip"]) == 0
    assert "40 of 40 actions were outside of the environment's range, and clipped" in capsys.readouterr().err
    ranges = ["--action-low", "-2", "--action-high", "2"]
    assert "an action outside of its range" in fails("train", "given.npz", *ranges)
    log = edp.open_log("clipped.npz")
    assert np.abs(read_dataset(log).action).tolist() == [[2.0]] * 40
    units = fit_units(read_dataset(log), "none", (-2.0,), (2.0,), "")
    units.convert_dataset(read_dataset(log), log)  # refuses actions outside of their range, as training does


def test_the_environment_gets_the_clipped_actions():
    """The room refuses others."""
    with pytest.raises(UserError, match="AssertionError"):
        edp.record("Room-v0", lambda obs: [500.0, -3.0], episodes=1)
    with pytest.warns(UserWarning, match="15 of 15 actions were outside of the environment's range, and clipped"):
        log = edp.record("Room-v0", lambda obs: [500.0, -3.0], episodes=1, clip=True)
    assert next(iter(log.pieces())).actions.tolist() == [[75.0, 0.0]] * 15


def test_recording_is_the_same_for_the_same_seed():
    first, second, other = (read_dataset(edp.record("Room-v0", episodes=2, seed=seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.action, second.action)
    np.testing.assert_array_equal(first.obs, second.obs)
    assert (first.action != other.action).any()


def test_the_recorder_keeps_what_others_do():
    recorder = edp.Recorder(gymnasium.make("Room-v0"))
    with pytest.raises(UserError, match="nothing has been recorded"):
        recorder.log()
    recorder.reset(seed=0)
    for _ in range(4):
        recorder.step(np.float32([30.0, 50.0]))
    recorder.reset(seed=1)  # an episode that is abandoned counts as cut off
    recorder.step(np.float32([30.0, 50.0]))
    data = read_dataset(recorder.log())
    np.testing.assert_array_equal(data.episode, [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(data.next_obs[0], data.obs[1])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("nowhere:act", "--policy nowhere:act: ModuleNotFoundError"),
        ("math:pi", "--policy math:pi: not something that can be called"),
        ("math:none", "--policy math:none: AttributeError"),
        ("math", "--policy math: neither a run directory nor module:function"),
        ("builtins:len", "the policy returned 3 for"),
    ],
)
def test_policies_that_are_none(policy, message, fails, tmp_path):
    assert message in fails("data", "record", tmp_path / "a.npz", "--env", "Room-v0", "--policy", policy)
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "mine_a:broken"], "the policy, in episode 0: ZeroDivisionError: division by zero"),
        (["--policy", "mine_a:of_two"], "the policy, in episode 0: TypeError: of_two() missing 1 required"),
        (["--policy", "mine_a:Restless"], "the policy's reset, in episode 0: KeyError"),
        (["--policy", "mine_b:act"], "--policy mine_b:act: ZeroDivisionError: division by zero"),
        (["--env", "mine_b:X-v0"], "ZeroDivisionError: division by zero"),
        (["--env", "mine_c:X-v0"], "SyntaxError"),
        (["--env", "Breaking-v0"], "the environment, in episode 0: ZeroDivisionError: division by zero"),
        (["--env", "Wrong-v0"], "the environment, in episode 0: "),
    ],
)
def test_code_of_one_s_own_that_fails_is_told_in_one_line(words, message, tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    Path("mine_a.py").write_text(
        "def broken(obs):\n    return 1 / 0\n\ndef of_two(obs, time):\n    return obs\n\n"
        "class Restless:\n    def reset(self):\n        {}['none']\n\n"
        "    def __call__(self, obs):\n        return obs\n",
        encoding="utf-8",
    )
    Path("mine_b.py").write_text("1 / 0\n", encoding="utf-8")
    Path("mine_c.py").write_text("def (\n", encoding="utf-8")
    assert message in fails("data", "record", "a.npz", "--env", "Room-v0", *words)
    assert not Path("a.npz").exists()
