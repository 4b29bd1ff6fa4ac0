"""Loggers in addition to the run directory."""

import sys
from types import ModuleType

import pytest

from edp.cli import main
from edp.runs.loggers import Loggers

SMALL = [
    *["--steps", "20", "--epoch-steps", "10", "--eval-every", "20", "--episodes", "2", "--hidden", "16"],
    *["--policy-target-after", "0", "--seeds", "2", "--seed", "3", "--critic-hidden", "16"],
]


class Broken:
    def __init__(self, folder, config):
        pass

    def log(self, step, values):
        raise OSError("the server is gone")

    def close(self):
        raise AssertionError("not asked any more")


def test_a_logger_that_fails_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("edp.runs.loggers.LOGGERS", {"broken": Broken})
    said = []
    loggers = Loggers(["broken"], tmp_path, {}, said.append)
    for step in range(3):
        loggers.log(step, {"loss": 1.0})
    loggers.close()
    assert len(said) == 1
    assert "the server is gone" in said[0]


def test_training_goes_on_without_a_broken_logger(hopper_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("edp.runs.loggers.LOGGERS", {"tensorboard": Broken})
    monkeypatch.setitem(sys.modules, "tensorboardX", ModuleType("tensorboardX"))
    monkeypatch.setattr("edp.runs.loggers.check_loggers", lambda names: None)
    words = ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(tmp_path / "r"), "--calls", "3"]
    assert main([*words, *SMALL, "--log", "tensorboard", "--quiet"]) == 0
    assert "logging to tensorboard failed" in capsys.readouterr().err


def test_tensorboard(hopper_file, tmp_path):
    pytest.importorskip("tensorboardX")
    words = ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(tmp_path / "r"), "--calls", "3"]
    assert main([*words, *SMALL, "--log", "tensorboard", "--quiet"]) == 0
    events = b"".join(file.read_bytes() for file in (tmp_path / "r" / "tensorboard").iterdir())
    for name in (b"train/critic_loss", b"evaluation/score", b"speed/steps_per_second"):
        assert name in events


def test_tensorboard_that_has_stopped_is_left(tmp_path):
    """Its thread ends on an error, and a later write would block forever."""
    pytest.importorskip("tensorboardX")
    said = []
    loggers = Loggers(["tensorboard"], tmp_path, {}, said.append)
    writer = loggers.open["tensorboard"].writer._get_file_writer().event_writer
    writer._worker.stop()
    writer._worker.join()
    for step in range(50):
        loggers.log(step, {"loss": 1.0})
    loggers.close()
    assert said == ["logging to tensorboard failed; training continues without it (its writer has stopped)"]


def test_unknown_and_missing_loggers(hopper_file, tmp_path, fails, monkeypatch):
    words = ["train", "hopper-medium-v2", "--data", hopper_file, "--out", tmp_path / "r"]
    assert "did you mean 'wandb'" in fails(*words, "--log", "wandbb")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install wandb" in fails(*words, "--log", "wandb")
    assert not (tmp_path / "r").exists()
