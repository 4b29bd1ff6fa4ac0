"""Evaluation in the user's own environments."""

import json
import sys
from pathlib import Path

import pytest

import edp
from edp.cli import main
from edp.cli.ablate import ACTING
from edp.errors import UserError
from edp.runs.directory import Run
from support.own_data import SMALL, Room


@pytest.fixture
def short(monkeypatch):
    """Lower the limit of 10,000 steps, to be quick."""
    for module in ("edp.envs.make", "edp.data.synthesis.record", "edp.acting.evaluator", "edp.cli.display"):
        monkeypatch.setattr(f"{module}.MOST_STEPS", 30)


def test_evaluating_in_an_environment_without_an_end(short, tmp_path, capsys):
    out, file = tmp_path / "run", edp.write(edp.record("Room-v0", episodes=4), tmp_path / "a.npz")
    assert main(["train", file, "--env", "EndlessRoom-v0", "--out", str(out), *SMALL]) == 0
    said = "cut off after 30 steps, because the environment has no time limit (max_episode_steps): 2 episodes"
    assert said in capsys.readouterr().out
    assert Run.open(out).training_evaluations()[-1]["lengths"] == [[30, 30]]
    assert main(["eval", str(out)]) == 0
    assert said in capsys.readouterr().out


def test_environments_are_looked_for_in_the_current_folder(tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    register = f"import gymnasium\ngymnasium.register('Here-v0', '{Room.__module__}:Room', max_episode_steps=4)\n"
    Path("room_of_mine.py").write_text(register, encoding="utf-8")
    words = ["a.npz", "--env", "room_of_mine:Here-v0", "--episodes", "3"]
    assert main(["data", "record", *words]) == 0
    monkeypatch.delitem(sys.modules, "room_of_mine")
    assert main(["train", "a.npz", "--env", "room_of_mine:Here-v0", "--out", "run", *SMALL]) == 0
    monkeypatch.delitem(sys.modules, "room_of_mine")
    assert main(["eval", "run", "--env", "room_of_mine:Here-v0"]) == 0
    assert "run: was trained with --env room_of_mine:Here-v0, which is your own code" in fails("ablate", "eas", "run")
    assert str(tmp_path) not in sys.path
    monkeypatch.delitem(sys.modules, "room_of_mine")
    with pytest.raises(UserError, match="No module named 'room_of_mine'"):
        edp.record("room_of_mine:Here-v0")  # a program can extend sys.path


def test_an_evaluation_of_nothing_but_failures_is_one(tmp_path, capsys, fails, monkeypatch):
    out, file = tmp_path / "run", edp.write(edp.record("Room-v0", episodes=4), tmp_path / "a.npz")
    assert main(["train", file, "--out", str(out), *SMALL]) == 0
    assert main(["eval", str(out), "--env", "Breaking-v0"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert main(["eval", str(out), "--env", "Room-v0"]) == 0
    head = capsys.readouterr().out
    assert "return" in head
    assert "score" not in head
    monkeypatch.setitem(ACTING, "noise", ACTING["noise"]._replace(values=(0.0, 1.0)))
    assert "run: has no environment to evaluate in: give one with --env" in fails("ablate", "noise", out)
    assert main(["ablate", "noise", str(out), "--env", "Room-v0", "--episodes", "1"]) == 0
    assert json.loads((out / "ablations" / "noise.json").read_text(encoding="utf-8"))["values"] == [0.0, 1.0]
