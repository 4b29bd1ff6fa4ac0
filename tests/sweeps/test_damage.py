"""Sweeps whose files were edited, cut or replaced. One line says what is wrong, and nothing is trained."""

import json
import os

import pytest
from fake import make

from edp.errors import UserError
from edp.runs.sweep import Sweep, Trial
from edp.runs.trial_results import read_result
from edp.sweeps.plan import read_plan
from edp.sweeps.run import start_sweep


@pytest.fixture
def sweep(small, tmp_path):
    """A sweep of three trials, none of which has run; the third repeats the first."""
    sweep = start_sweep(read_plan(small(space={"lr": [1e-3, 1e-4]}, search={"confirm": 1})), tmp_path / "sweep")
    sweep.add_trial(Trial(0, "0000", {"lr": 1e-3}))
    sweep.add_trial(Trial(1, "0001", {"lr": 1e-4}))
    sweep.add_trial(Trial(2, "again_0000", {"lr": 1e-3, "seed": 2}, 0))
    return sweep


@pytest.fixture
def refused(sweep, fails):
    """Resumes the sweep. Returns the one line that it prints."""

    def resume():
        before = sorted(sweep.folder.rglob("[!.]*"))
        line = fails("sweep", "--resume", sweep.folder, "--engine", "serial", "--quiet")
        assert sorted(sweep.folder.rglob("[!.]*")) == before
        return line

    return resume


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../elsewhere"},
        {"name": "a\0b"},
        {"number": "1"},
        {"number": 0},
        {"values": [1]},
        {"again": [1]},
        {"again": 99},
        {"again": 1},
    ],
    ids=str,
)
def test_a_wrong_line_of_trials_is_refused(sweep, refused, change):
    path = sweep.folder / "trials.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1] |= change
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "trials.jsonl: damaged: the line of trial 1 is missing or wrong" in refused()


@pytest.mark.parametrize("part", ["train", "content", "search", "stopping"])
@pytest.mark.parametrize("value", [None, 5, "x", []], ids=repr)
def test_a_plan_without_its_parts_is_damaged(sweep, refused, part, value):
    path = sweep.folder / "sweep.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {part: value}))
    assert "sweep.json: damaged" in refused()


def test_pipes_are_not_read(sweep, refused):
    (sweep.folder / "trials.jsonl").unlink()
    os.mkfifo(sweep.folder / "trials.jsonl")
    assert "trials.jsonl: not a file" in refused()


def test_a_link_in_the_place_of_a_run_is_refused(sweep, refused, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (sweep.folder / "0001").symlink_to(tmp_path / "elsewhere")
    assert "0001: a symbolic link" in refused()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("status", [{"failed_seeds": 3}, {"failed_seeds": None}], ids=str)
def test_a_damaged_run_is_named_with_what_to_do(sweep, refused, status):
    make(sweep.folder / "0001")
    path = sweep.folder / "0001" / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | status))
    line = refused()
    assert "0001: damaged" in line and "trial 1 is trained again" in line
    path.write_text(json.dumps({"state": ["x"], "failed_seeds": {}}))
    assert isinstance(read_result(sweep, sweep.trials()[1]).state, str)


def test_rows_of_decisions_that_are_none_are_left_out(sweep):
    good = {"number": 0, "rung": 20, "step": 20, "value": 1.0, "stops": False}
    for row in (good, good | {"value": "x"}, good | {"stops": "no"}, good | {"rung": "20"}, {"number": 0, "rung": 20}):
        sweep.add_rung(row)
    assert sweep.rungs() == [good]


def test_a_plan_of_another_version_is_refused(sweep):
    path = sweep.folder / "sweep.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 99}))
    with pytest.raises(UserError, match="of another version"):
        Sweep.open(sweep.folder)
