"""The run directory: what is refused, and what can be read after a crash."""

import errno
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import edp
from edp.cli import main
from edp.runs.directory import Run
from support.small_run import STEPS, train


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}', '{"schema": 3}', "\0" * 50, "[" * 100_000])
def test_a_damaged_config(text, copy, fails):
    (copy / "config.json").write_text(text, encoding="utf-8")
    for words in (["eval", copy], ["train", "--resume", copy]):
        assert str(copy / "config.json") in fails(*words)


def test_lines_that_a_crash_left_unfinished_are_passed_over(copy):
    run = Run.open(copy)
    rows = run.metrics()
    with open(copy / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 420, "metr')
    assert run.metrics() == rows
    run.log_metrics({"step": 440, "metrics": {"loss": [1.0]}})
    assert run.metrics() == [*rows, {"step": 440, "metrics": {"loss": [1.0]}}]


def test_a_running_run_is_evaluated_at_its_last_checkpoint(copy, capsys):
    with Run.open(copy).claimed():
        assert main(["eval", str(copy), "--episodes", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"step {STEPS}, still running" in shown
    assert Run.open(copy).evaluations()[-1]["kind"] == "eval"


class TestRefusals:
    def test_two_processes_in_one_directory(self, copy, fails):
        with Run.open(copy).claimed():
            assert "another process is training in it" in fails("train", "--resume", copy, "--steps", STEPS + 10)
            assert Run.open(copy).status["state"] == "running"
        assert Run.open(copy).status["state"] == "finished"

    def test_a_finished_run(self, copy, fails):
        assert "give more of them with --steps" in fails("train", "--resume", copy)

    def test_other_data(self, copy, fails, hopper_file, tmp_path):
        import h5py

        other = tmp_path / "other.hdf5"
        shutil.copy(hopper_file, other)
        with h5py.File(other, "a") as file:
            file["rewards"][0] = 123.0
        assert "not the data" in fails("train", "--resume", copy, "--data", other, "--steps", STEPS + 10)

    def test_fewer_steps_than_it_has(self, copy, fails):
        assert "give more of them" in fails("train", "--resume", copy, "--steps", 300)
        (copy / "status.json").unlink()
        assert "has already trained for 400 steps" in fails("train", "--resume", copy, "--steps", 300)

    def test_a_directory_that_cannot_be_written(self, hopper_file, tmp_path, fails, monkeypatch):
        def refuse(*args, **kwargs):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr("pathlib.Path.mkdir", refuse)
        assert "cannot write here (Permission denied)" in fails(*train(hopper_file, tmp_path / "out"))

    def test_resuming_where_nothing_can_be_written(self, copy, fails, monkeypatch):
        def refuse(*args, **kwargs):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr("edp.runs.directory.open", refuse, raising=False)
        assert "cannot write here (Read-only file system)" in fails("train", "--resume", copy, "--steps", STEPS + 10)

    @pytest.mark.parametrize("name", ["metrics.jsonl", "checkpoints", ".lock", "ablations"])
    def test_links_that_lead_out(self, name, copy, fails, tmp_path):
        """Writing through them would write outside of the run."""
        victim = tmp_path / "victim"
        if (copy / name).is_dir() or name == "ablations":
            victim.mkdir()
            shutil.rmtree(copy / name, ignore_errors=True)
        else:
            victim.write_text("precious", encoding="utf-8")
            (copy / name).unlink(missing_ok=True)
        (copy / name).symlink_to(victim)
        for words in (["eval", copy], ["train", "--resume", copy, "--steps", STEPS + 10], ["ablate", "eas", copy]):
            assert "a symbolic link" in fails(*words)
        assert victim.is_dir() or victim.read_text(encoding="utf-8") == "precious"

    def test_links_that_lead_out_of_a_new_run(self, hopper_file, tmp_path, fails):
        victim, out = tmp_path / "victim", tmp_path / "out"
        victim.write_text("precious", encoding="utf-8")
        out.mkdir()
        (out / ".lock").symlink_to(victim)
        assert str(out) in fails(*train(hopper_file, out))
        assert victim.read_text(encoding="utf-8") == "precious"

    def test_names_that_no_disk_has(self, fails):
        for words in (["eval", "x" * 300], ["train", "--resume", "x" * 300], ["runs", "x" * 300]):
            assert "too long" in fails(*words)


def test_a_hostile_config_is_refused(copy, fails):
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    for part, name, value in [
        ("training", "seeds", 10**9),
        ("training", "steps", 1e400),
        ("training", "steps", "many"),
        ("training", "epoch_steps", 0.5),
        ("policy", "hidden", [10**9, 10**9]),
        ("policy", "name", "../../etc/passwd"),
        ("algorithm", "name", "__class__"),
        ("evaluation", "episodes", 10**12),
        ("evaluation", "act_with", None),
        ("policy", "schedule", 5),
        ("policy", "hidden", 5),
        ("policy", "calls", [3]),
        ("training", "seed", True),
        ("units", "low", [float("nan")] * 3),
        ("units", "obs_scale", [0.0] * 11),
        ("units", "obs_shift", "many"),
        ("data", "normalise", "none-such"),
        ("data", "action_low", "x"),
    ]:
        changed = json.loads(json.dumps(config))
        changed[part][name] = value
        (copy / "config.json").write_text(json.dumps(changed), encoding="utf-8")
        fails("eval", copy)
    (copy / "config.json").write_text(json.dumps(config | {"task": "../../../tmp/x"}), encoding="utf-8")
    assert "unknown task" in fails("eval", copy)


def test_nothing_here_unpickles_or_evaluates():
    for path in (Path(edp.__file__).parent).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for word in ("pickle.load", "import pickle", "allow_pickle=True", "eval(", "exec(", "shell=True"):
            found = re.search(rf"(?<![\w.]){re.escape(word)}", text)
            assert not found, f"{path}: {word}"


def test_edp_runs_survives_anything_in_a_status(copy, capsys):
    for text in ('{"state": 5}', '{"failed_seeds": null}', "[]", "{", '{"reason": {}}'):
        (copy / "status.json").write_text(text, encoding="utf-8")
        assert main(["runs", str(copy)]) == 0
        assert str(copy)[:20] in capsys.readouterr().out.replace("\n", "")


def test_a_run_that_was_stopped_before_its_first_evaluation_is_not_damaged(copy, capsys):
    (copy / "evaluations.jsonl").unlink()
    assert main(["eval", str(copy), "--episodes", "1"]) == 0
    assert main(["runs", str(copy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["state"] == "finished"


@pytest.mark.parametrize("name", ["metrics.jsonl", "status.json", "look.json", f"checkpoints/{STEPS}/about/metadata"])
def test_pipes_in_a_run_are_not_waited_on(name, copy, fails, capsys):
    (copy / name).unlink(missing_ok=True)
    os.mkfifo(copy / name)
    for words in (["eval", copy], ["train", "--resume", copy, "--steps", STEPS + 10]):
        assert "a pipe, a device or a socket" in fails(*words)
    assert main(["runs", str(copy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "damaged"


def test_a_finished_run_whose_rows_cannot_be_made_again_says_so(copy, fails):
    path = copy / "metrics.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    said = fails("train", "--resume", copy)
    assert "metrics.jsonl: 1 of its" in said
    assert "are missing, and cannot be made again" in said
