"""Runs that are killed, stopped or extended, and resumed to the same bytes."""

import os
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from edp.cli import main
from edp.runs.checkpoints import Checkpoints
from edp.runs.directory import Run
from support.small_run import EPOCH, STEPS, arrays, assert_same, command, digest, train

KILLS = int(os.environ.get("EDP_KILLS", "3"))


def is_writing(folder):
    return any("tmp" in entry.name for entry in (folder / "checkpoints").glob("*"))


def steps_done(folder):
    return (
        len((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        if (folder / "metrics.jsonl").exists()
        else 0
    )


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
    assert digest(out) == digest(whole)
    assert (out / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_a_larger_budget_goes_on_where_the_run_ended(hopper_file, whole, tmp_path):
    """Also in the middle of an epoch: 250 is no multiple of 20."""
    out = tmp_path / "longer"
    assert main([str(word) for word in train(hopper_file, out, "--steps", 250)]) == 0
    assert Run.open(out).status["step"] == 250
    assert main(["train", "--resume", str(out), "--steps", str(STEPS)]) == 0
    for (name, a), b in zip(arrays(out).items(), arrays(whole).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=name)


def test_a_clock_that_goes_backwards_changes_nothing(hopper_file, whole, tmp_path, monkeypatch):
    now = iter(range(10**9, 0, -1000))
    monkeypatch.setattr("time.time", lambda: float(next(now)))
    monkeypatch.setattr("time.strftime", lambda *args: f"{next(now)}")
    out = tmp_path / "clock"
    assert main([str(word) for word in train(hopper_file, out, "--quiet", "--steps", 100)]) == 0
    assert main(["train", "--resume", str(out), "--steps", "200", "--quiet"]) == 0
    assert [row["step"] for row in Run.open(out).metrics()] == list(range(EPOCH, 201, EPOCH))
