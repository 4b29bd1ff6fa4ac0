"""Runs that older versions wrote."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from edp.acting.load import load_policy
from edp.cli import main
from edp.errors import UserError
from edp.runs.directory import Run
from edp.runs.schema import SCHEMA
from support.small_run import EPOCH, STEPS, arrays, digest


def test_schema_2_is_read_evaluated_and_resumed(whole, copy, capsys):
    """It had one checkpoint, no checkpoint_every, and times beside the metrics."""
    import orbax.checkpoint as ocp

    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    for name in ("commit", "data_sha256", "units", "own_task", "columns"):
        del config[name]
    config["data"] = {name: config["data"][name] for name in ("rewards", "best", "block")}
    del config["training"]["checkpoint_every"]
    (copy / "config.json").write_text(json.dumps(config | {"schema": 2}), encoding="utf-8")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(copy / "checkpoint", arrays(whole))
    shutil.rmtree(copy / "checkpoints")
    assert digest(copy) == digest(whole)
    assert main(["eval", str(copy)]) == 0
    assert main(["train", "--resume", str(copy), "--steps", str(STEPS + EPOCH), "--quiet"]) == 0
    assert json.loads((copy / "config.json").read_text(encoding="utf-8"))["schema"] == SCHEMA


def test_schema_3_is_resumed_to_the_same_bytes(whole, copy):
    """It had no units, and registered tasks only."""
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    for name in ("units", "own_task", "columns"):
        del config[name]
    config["data"] = {name: config["data"][name] for name in ("rewards", "best", "block")}
    (copy / "config.json").write_text(json.dumps(config | {"schema": 3}), encoding="utf-8")
    shutil.rmtree(copy / "checkpoints" / str(STEPS))
    Run(copy).set_status("stopped", STEPS - EPOCH)
    assert main(["train", "--resume", str(copy), "--quiet"]) == 0
    assert digest(copy) == digest(whole)
    assert (copy / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


class TestSchema4:
    """A run that the last version before the packages were reorganised has written, and what that version made of it.

    Numbers are compared closely, not bit for bit: they depend on the processor. (On the machine that wrote them, the
    logs were the same bytes.)
    """

    FOLDER = Path(__file__).with_name("schema4")

    @pytest.fixture
    def old_run(self, tmp_path):
        return Path(shutil.copytree(self.FOLDER / "run", tmp_path / "run"))

    def rows(self, path):
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def test_is_resumed_to_the_same_numbers(self, old_run):
        data = str(self.FOLDER / "log.npz")
        assert main(["train", "--resume", str(old_run), "--steps", "40", "--data", data, "--quiet"]) == 0
        for name in ("metrics.jsonl", "evaluations.jsonl", "validations.jsonl"):
            assert_close(self.rows(old_run / name), self.rows(self.FOLDER / "resumed" / name))

    def test_is_evaluated_to_the_same_scores(self, old_run):
        assert main(["eval", str(old_run), "--episodes", "3"]) == 0
        assert_close(
            self.rows(old_run / "evaluations.jsonl")[-1],
            json.loads((self.FOLDER / "evaluated.json").read_text(encoding="utf-8")),
        )

    def test_is_loaded_and_shown(self, old_run, tmp_path, capsys):
        with pytest.warns(UserWarning, match="does not know the ranges of its training data"):
            policy = load_policy(old_run)
        assert np.isfinite(policy.act(np.zeros(3))).all()
        assert "not checked" in repr(policy)
        assert policy.act({"observation_0": 0.0, "observation_1": 0.0, "observation_2": 0.0}).keys() == {"action_0"}
        with pytest.raises(UserError, match="train it again"):
            load_policy(old_run, outside="refuse")
        assert main(["runs", str(old_run)]) == 0
        assert "finished" in capsys.readouterr().out
        assert main(["report", str(old_run), "--out", str(tmp_path / "report.html")]) == 0
        assert "td3bc" in (tmp_path / "report.html").read_text(encoding="utf-8")


def assert_close(new, old):
    """The same structure and texts, and about the same numbers. Options that are newer than the run may be added."""
    if isinstance(old, dict):
        assert new.keys() >= old.keys()
        for name in old:
            assert_close(new[name], old[name])
    elif isinstance(old, list):
        assert len(new) == len(old)
        for one, other in zip(new, old, strict=True):
            assert_close(one, other)
    elif isinstance(old, float):
        assert new == pytest.approx(old, rel=1e-2, abs=1e-2)
    else:
        assert new == old
