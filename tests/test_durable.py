"""Runs that are killed, stopped, damaged or starved of disk, and what becomes of them."""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import edp
from edp.cli import main
from edp.runs import load
from edp.runs.checkpoints import Checkpoints, arrays_digest, leaves_by_name
from edp.runs.directory import SCHEMA, Run

DAMAGES = int(os.environ.get("EDP_DAMAGES", "3"))
KILLS = int(os.environ.get("EDP_KILLS", "3"))
EPOCH, STEPS = 20, 400
SMALL = [
    *["--steps", STEPS, "--epoch-steps", EPOCH, "--eval-every", 100, "--checkpoint-every", EPOCH, "--episodes", 2],
    *["--hidden", "16,16", "--critic-hidden", "16,16", "--calls", 3, "--eas", 2, "--policy-target-after", 0],
]
WRITES = 27  # of JSON and logs in a run of 200 steps
LOGS = ("metrics.jsonl", "evaluations.jsonl")


def command(*words):
    return [sys.executable, "-m", "edp", *map(str, words)]


def train(hopper_file, out, *more):
    return ["train", "hopper-medium-v2", "--data", hopper_file, "--out", out, "--seeds", 2, *SMALL, *more]


@pytest.fixture(scope="module")
def whole(hopper_file, tmp_path_factory):
    """A run that nothing happened to."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    subprocess.run(command(*train(hopper_file, out)), check=True, capture_output=True)
    return out


@pytest.fixture
def copy(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def arrays(folder, step=None):
    _, found = load.load(Run.open(folder), step)
    return {name: np.asarray(leaf) for name, leaf in leaves_by_name(found.tree).items()}


def assert_same(folder, whole):
    assert arrays_digest(arrays(folder)) == arrays_digest(arrays(whole))
    for name in LOGS:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert Run.open(folder).status["state"] == "finished"


def is_writing(folder):
    return any("tmp" in entry.name for entry in (folder / "checkpoints").glob("*"))


def steps_done(folder):
    return len((folder / "metrics.jsonl").read_text().splitlines()) if (folder / "metrics.jsonl").exists() else 0


def test_killed_at_random_moments_and_resumed_equals_an_uninterrupted_run(hopper_file, whole, tmp_path):
    out, rng = tmp_path / "killed", random.Random(0)
    moments = []
    for kill in range(KILLS):
        resume = ["train", "--resume", out] if (out / "config.json").exists() else train(hopper_file, out)
        done = steps_done(out) if (out / "config.json").exists() else 0
        if done * EPOCH >= STEPS - 2 * EPOCH:
            shutil.rmtree(out)
            resume, done = train(hopper_file, out), 0
        process = subprocess.Popen(command(*resume), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if kill % 3 == 0:  # while a checkpoint is being written
            while process.poll() is None and not (steps_done(out) > done + 2 and is_writing(out)):
                time.sleep(0.0005)
        elif kill % 3 == 1:  # some time after it has begun to work
            while process.poll() is None and steps_done(out) <= done:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.3))
        else:  # at any time, also while it starts
            time.sleep(rng.uniform(0, 8))
        moments.append((kill % 3, is_writing(out), steps_done(out)))
        process.kill()
        process.wait()
        if (out / "config.json").exists():
            assert Run.open(out).status["state"] in ("killed", "finished")
    if Run.open(out).status["state"] != "finished":
        subprocess.run(command("train", "--resume", out), check=True, capture_output=True)
    assert any(writing for _, writing, _ in moments), moments
    assert_same(out, whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_with_a_checkpoint_and_resume_goes_on(number, hopper_file, whole, tmp_path):
    out = tmp_path / "stopped"
    process = subprocess.Popen(
        command(*train(hopper_file, out, "--checkpoint-every", 10_000, "--eval-every", 300)),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
    )
    while process.poll() is None and not steps_done(out):
        time.sleep(0.001)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 128 + number, said
    assert f"edp train --resume {out}" in said
    run = Run.open(out)
    assert run.status["state"] == "stopped"
    steps = Checkpoints(run.checkpoints).steps()
    assert steps == [run.status["step"]]
    assert 0 < steps[0] < STEPS
    assert subprocess.run(command("train", "--resume", out, "--quiet")).returncode == 0
    assert arrays_digest(arrays(out)) == arrays_digest(arrays(whole))
    assert (out / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_a_larger_budget_goes_on_where_the_run_ended(hopper_file, whole, tmp_path):
    """Also in the middle of an epoch: 250 is no multiple of 20."""
    out = tmp_path / "longer"
    subprocess.run(command(*train(hopper_file, out, "--steps", 250)), check=True, capture_output=True)
    assert Run.open(out).status["step"] == 250
    done = command("train", "--resume", out, "--steps", STEPS)
    subprocess.run(done, check=True, capture_output=True)
    for (name, a), b in zip(arrays(out).items(), arrays(whole).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=name)


class TestDamage:
    """Of checkpoints: reported, and the one before is used."""

    def damage(self, folder, how, rng):
        """Something in the last checkpoint, one file at a time."""
        last = max((folder / "checkpoints").iterdir(), key=lambda entry: int(entry.name))
        file = rng.choice(sorted(path for path in last.rglob("*") if path.is_file() and path.stat().st_size > 8))
        content = bytearray(file.read_bytes())
        if how == "truncated":
            file.write_bytes(content[: rng.randrange(len(content))])
        elif how == "missing":
            file.unlink()
        elif how == "folder":
            shutil.rmtree(last / "state")
        else:
            for _ in range(8):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(content)

    @pytest.mark.parametrize("seed", range(DAMAGES))
    @pytest.mark.parametrize("how", ["truncated", "missing", "flipped", "folder"])
    def test_the_checkpoint_before_is_used(self, how, seed, whole, copy):
        good = {step: arrays_digest(arrays(whole, step)) for step in (STEPS - EPOCH, STEPS)}
        self.damage(copy, how, random.Random(seed))
        _, found = load.load(Run.open(copy))
        # What is damaged may not matter (an index that is there twice), but it is never used if it does.
        assert (
            arrays_digest({name: np.asarray(leaf) for name, leaf in leaves_by_name(found.tree).items()})
            == good[found.step]
        )
        if how in ("folder",):
            assert found.step == STEPS - EPOCH

    def test_resuming_says_so_and_trains_it_again(self, whole, copy):
        shutil.rmtree(copy / "checkpoints" / str(STEPS) / "state")
        (copy / "status.json").unlink()  # as if it had been killed
        done = subprocess.run(command("train", "--resume", copy), capture_output=True, text=True)
        assert f"{STEPS}: damaged" in done.stderr
        assert "the one before it is used" in done.stderr
        assert_same(copy, whole)

    def test_all_of_them_damaged(self, copy, fails):
        for state in (copy / "checkpoints").glob("*/state"):
            shutil.rmtree(state)
        assert "damaged" in fails("eval", copy)

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}', '{"schema": 3}', "\0" * 50, "[" * 100_000])
    def test_of_the_config(self, text, copy, fails):
        (copy / "config.json").write_text(text)
        for words in (["eval", copy], ["train", "--resume", copy]):
            assert str(copy / "config.json") in fails(*words)

    def test_lines_that_a_crash_left_unfinished_are_passed_over(self, copy):
        run = Run.open(copy)
        rows = run.metrics()
        with open(copy / "metrics.jsonl", "a") as file:
            file.write('{"step": 420, "metr')
        assert run.metrics() == rows
        run.log_metrics({"step": 440})
        assert run.metrics() == [*rows, {"step": 440}]

    def test_a_config_that_does_not_fit_its_checkpoints_removes_nothing(self, copy, fails):
        config = json.loads((copy / "config.json").read_text())
        config["policy"]["hidden"] = [17, 17]
        (copy / "config.json").write_text(json.dumps(config))
        before = sorted((copy / "checkpoints").iterdir()), (copy / "metrics.jsonl").read_bytes()
        assert "of another run" in fails("train", "--resume", copy, "--steps", STEPS + 10)
        assert before == (sorted((copy / "checkpoints").iterdir()), (copy / "metrics.jsonl").read_bytes())

    def test_is_told_when_evaluating(self, copy, capsys):
        shutil.rmtree(copy / "checkpoints" / str(STEPS) / "state")
        assert main(["eval", str(copy), "--episodes", "1"]) == 0
        assert f"{STEPS}: damaged" in capsys.readouterr().err
        with pytest.warns(UserWarning, match="damaged"):
            edp.load_policy(copy)
        assert main(["eval", str(copy), "--offline", "--fqe-steps", "4", "--fqe-rows", "100"]) == 0
        assert "damaged" in capsys.readouterr().err


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
        assert "has 400 steps already" in fails("train", "--resume", copy, "--steps", 300)

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
            victim.write_text("precious")
            (copy / name).unlink(missing_ok=True)
        (copy / name).symlink_to(victim)
        for words in (["eval", copy], ["train", "--resume", copy, "--steps", STEPS + 10], ["ablate", "eas", copy]):
            assert "a link" in fails(*words)
        assert victim.is_dir() or victim.read_text() == "precious"

    def test_links_that_lead_out_of_a_new_run(self, hopper_file, tmp_path, fails):
        victim, out = tmp_path / "victim", tmp_path / "out"
        victim.write_text("precious")
        out.mkdir()
        (out / ".lock").symlink_to(victim)
        assert str(out) in fails(*train(hopper_file, out))
        assert victim.read_text() == "precious"

    def test_names_that_no_disk_has(self, fails):
        for words in (["eval", "x" * 300], ["train", "--resume", "x" * 300], ["runs", "x" * 300]):
            assert "too long" in fails(*words)


class TestNaN:
    """A loss that is no longer a number, from some step on, in the seeds whose batch begins with certain rows."""

    @pytest.fixture
    def spoil(self, monkeypatch):
        """Makes the critic's loss NaN in one seed, from some step on."""
        from edp.algorithms.td3bc import TD3BC

        update = TD3BC.update

        def spoilt(self, state, batch, key, *, rows, at):
            state, metrics = update(self, state, batch, key)
            bad = (state.step >= at) & jax.numpy.isin(batch.reward[0], rows)
            return state, metrics | {"critic_loss": jax.numpy.where(bad, jax.numpy.nan, metrics["critic_loss"])}

        return lambda rows, at: monkeypatch.setattr(
            TD3BC, "update", lambda self, state, batch, key: spoilt(self, state, batch, key, rows=rows, at=at)
        )

    def test_of_all_seeds_stops_the_run_with_its_last_good_checkpoint(
        self, spoil, hopper_file, whole, tmp_path, capsys
    ):
        spoil(read_rewards(hopper_file), at=150)
        out = tmp_path / "nan"
        assert main([str(word) for word in train(hopper_file, out)]) == 1
        said = capsys.readouterr().err
        assert "seed 0: critic_loss became NaN or Inf at step 150" in said
        status = Run.open(out).status
        assert (status["state"], status["step"]) == ("failed", 160)
        assert "critic_loss" in status["reason"]
        assert Checkpoints(Run.open(out).checkpoints).steps()[-1] == 140
        assert all(np.isfinite(leaf).all() for leaf in arrays(out).values())

    def test_of_one_seed_lets_the_others_go_on(self, spoil, hopper_file, tmp_path, capsys):
        """Which of the two it hits is up to the batches: some row that only one of them draws first, after step 150."""
        spoil(read_rewards(hopper_file)[:1], at=150)
        out = tmp_path / "nan"
        words = [*train(hopper_file, out), "--steps", 260, "--seeds", 3]
        code = main([str(word) for word in words])
        failed = Run.open(out).status["failed_seeds"]
        assert 0 < len(failed) < 3, "other batches than when this was written: choose another row"
        assert code == 1
        assert "failed: critic_loss became NaN or Inf at step" in capsys.readouterr().out
        run = Run.open(out)
        assert run.status["state"] == "finished"
        rows = [int(seed) for seed in failed]
        last = run.evaluations()[-1]
        assert last["step"] == 260
        for seed in range(3):
            assert all((score is None) == (seed in rows) for score in last["scores"][seed])
            assert (run.metrics()[-1]["metrics"]["critic_loss"][seed] is None) == (seed in rows)
        first_bad = min(int(why.split()[-1].replace(",", "")) for why in failed.values())
        kept = Checkpoints(run.checkpoints).steps()
        assert (first_bad - 1) // EPOCH * EPOCH in kept  # the last good one of that seed


def read_rewards(path):
    import h5py

    with h5py.File(path) as file:
        return jax.numpy.asarray(file["rewards"][:], jax.numpy.float32)


class TestFullDisk:
    """ENOSPC at every write of a run: one line, exit code 2, and what was there before is still good."""

    @pytest.mark.parametrize("at", range(1, WRITES + 2) if DAMAGES > 10 else [1, 3, 5, 8, 12])
    def test_of_logs_and_json(self, at, hopper_file, tmp_path, fails, monkeypatch):
        left = at

        def full(original):
            def call(*args, **kwargs):
                nonlocal left
                left -= 1
                if left <= 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return original(*args, **kwargs)

            return call

        monkeypatch.setattr("edp.runs.directory.Run._append", with_errors(full(Run._append)))
        monkeypatch.setattr("edp.files.os.replace", full(os.replace))
        out = tmp_path / "full"
        if at > WRITES:
            assert main([str(word) for word in train(hopper_file, out, "--steps", 200)]) == 0
            assert left > 0
            return
        said = fails(*train(hopper_file, out, "--steps", 200))
        assert "No space left on device" in said
        left = 10_000
        if (out / "config.json").exists():
            assert main(["train", "--resume", str(out), "--quiet"]) == 0
            assert Run.open(out).status["state"] == "finished"

    def test_of_a_checkpoint(self, hopper_file, whole, tmp_path):
        """A real one: a file size limit makes large writes fail."""
        out = tmp_path / "full"
        subprocess.run(command(*train(hopper_file, out, "--steps", 100)), check=True, capture_output=True)
        limited = ["bash", "-c", 'ulimit -f 16; trap "" XFSZ; exec "$@"', "-", *command("train", "--resume", out)]
        done = subprocess.run([*limited, "--steps", str(STEPS)], capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert "cannot write" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
        assert Run.open(out).status["state"] in ("failed", "killed")
        assert arrays_digest(arrays(out)) == arrays_digest(arrays(out, 100))
        subprocess.run(command("train", "--resume", out), check=True, capture_output=True)
        assert_same(out, whole)


def with_errors(function):
    """As Run's own methods turn errors of writing into one line."""
    from edp.files import write_errors

    def call(self, name, row):
        with write_errors(self.folder / name):
            return function(self, name, row)

    return call


def test_a_clock_that_goes_backwards_changes_nothing(hopper_file, whole, tmp_path, monkeypatch):
    now = iter(range(10**9, 0, -1000))
    monkeypatch.setattr("time.time", lambda: float(next(now)))
    monkeypatch.setattr("time.strftime", lambda *args: f"{next(now)}")
    out = tmp_path / "clock"
    assert main([str(word) for word in train(hopper_file, out, "--quiet", "--steps", 100)]) == 0
    assert main(["train", "--resume", str(out), "--steps", "200", "--quiet"]) == 0
    assert [row["step"] for row in Run.open(out).metrics()] == list(range(EPOCH, 201, EPOCH))


class TestOldRuns:
    def test_schema_2_is_read_evaluated_and_resumed(self, whole, copy, capsys):
        """It had one checkpoint, no checkpoint_every, and times beside the metrics."""
        import orbax.checkpoint as ocp

        config = json.loads((copy / "config.json").read_text())
        for name in ("commit", "data_sha256", "units", "own_task", "columns"):
            del config[name]
        config["data"] = {name: config["data"][name] for name in ("rewards", "best", "block")}
        del config["training"]["checkpoint_every"]
        (copy / "config.json").write_text(json.dumps(config | {"schema": 2}))
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(copy / "checkpoint", arrays(whole))
        shutil.rmtree(copy / "checkpoints")
        assert arrays_digest(arrays(copy)) == arrays_digest(arrays(whole))
        assert main(["eval", str(copy)]) == 0
        assert main(["train", "--resume", str(copy), "--steps", str(STEPS + EPOCH), "--quiet"]) == 0
        assert json.loads((copy / "config.json").read_text())["schema"] == SCHEMA

    def test_schema_3_is_resumed_to_the_same_bytes(self, whole, copy):
        """It knew nothing of units and of data of one's own."""
        config = json.loads((copy / "config.json").read_text())
        for name in ("units", "own_task", "columns"):
            del config[name]
        config["data"] = {name: config["data"][name] for name in ("rewards", "best", "block")}
        (copy / "config.json").write_text(json.dumps(config | {"schema": 3}))
        shutil.rmtree(copy / "checkpoints" / str(STEPS))
        Run(copy).set_status("stopped", STEPS - EPOCH)
        assert main(["train", "--resume", str(copy), "--quiet"]) == 0
        assert arrays_digest(arrays(copy)) == arrays_digest(arrays(whole))
        assert (copy / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_a_hostile_config_is_refused(copy, fails):
    config = json.loads((copy / "config.json").read_text())
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
        (copy / "config.json").write_text(json.dumps(changed))
        fails("eval", copy)
    (copy / "config.json").write_text(json.dumps(config | {"task": "../../../tmp/x"}))
    assert "unknown task" in fails("eval", copy)


def test_nothing_here_unpickles_or_evaluates():
    for path in (Path(edp.__file__).parent).rglob("*.py"):
        text = path.read_text()
        for word in ("pickle.load", "import pickle", "allow_pickle=True", "eval(", "exec(", "shell=True"):
            found = re.search(rf"(?<![\w.]){re.escape(word)}", text)
            assert not found, f"{path}: {word}"


def test_edp_runs_survives_anything_in_a_status(copy, capsys):
    for text in ('{"state": 5}', '{"failed_seeds": null}', "[]", "{", '{"reason": {}}'):
        (copy / "status.json").write_text(text)
        assert main(["runs", str(copy)]) == 0
        assert str(copy)[:20] in capsys.readouterr().out.replace("\n", "")


def test_a_run_that_was_stopped_before_its_first_evaluation_is_not_damaged(copy, capsys):
    (copy / "evaluations.jsonl").unlink()
    assert main(["eval", str(copy), "--episodes", "1"]) == 0
    assert main(["runs", str(copy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["state"] == "finished"
