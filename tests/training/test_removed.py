"""Run directories that are removed or replaced during training, and Ctrl-C during compilation."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from edp.cli import main
from edp.cli.signals import GRACE
from edp.runs.claim import Claim
from edp.runs.directory import Run
from support.small_run import command, train
from support.small_run import digest as digest_of


@pytest.fixture
def at_epoch(monkeypatch):
    """Does something when the third row of metrics is about to be written."""

    def set_action(action):
        log, left = Run.log_metrics, [3]

        def logged(self, row):
            left[0] -= 1
            if left[0] == 0:
                action()
            log(self, row)

        monkeypatch.setattr(Run, "log_metrics", logged)

    return set_action


NO_CHECKPOINTS = ["--quiet", "--eval-every", 10_000, "--checkpoint-every", 10_000]  # none is being written meanwhile


def test_a_directory_that_was_removed_is_not_made_again(hopper_file, tmp_path, fails, at_epoch):
    out = tmp_path / "run"
    at_epoch(lambda: shutil.rmtree(out))
    assert "was removed or replaced during training; nothing more is written" in fails(
        *train(hopper_file, out, *NO_CHECKPOINTS)
    )
    assert not out.exists()


def test_what_a_late_write_of_a_checkpoint_makes_again_is_removed(tmp_path):
    out, claim = tmp_path / "run", Claim(tmp_path / "run")

    def write_late():
        time.sleep(0.2)
        (out / "checkpoints" / "20").mkdir(parents=True)

    with claim.held():
        shutil.rmtree(out)
        late = threading.Thread(target=write_late)
        late.start()
        claim.remove_remains()
        late.join()
        assert not out.exists()


@pytest.mark.parametrize("replaced", [False, True])
def test_other_directories_are_left_alone(tmp_path, replaced):
    """The run's own directory, and a new run in its place."""
    out, claim = tmp_path / "run", Claim(tmp_path / "run")
    with claim.held():
        if replaced:
            shutil.rmtree(out)
            out.mkdir()
            (out / ".lock").touch()
        (out / "checkpoints").mkdir()
        claim.remove_remains()
        assert (out / "checkpoints").exists()


def test_a_directory_that_was_replaced_stays_as_it_is(hopper_file, whole, tmp_path, fails, at_epoch):
    out = tmp_path / "run"

    def replace():
        shutil.rmtree(out)
        shutil.copytree(whole, out)

    at_epoch(replace)
    assert "was removed or replaced during training" in fails(*train(hopper_file, out, *NO_CHECKPOINTS))
    for path in whole.rglob("*"):
        assert (
            path.is_dir() or path.name == ".lock" or path.read_bytes() == (out / path.relative_to(whole)).read_bytes()
        )
    assert sorted(path.name for path in (out / "checkpoints").iterdir()) == sorted(
        path.name for path in (whole / "checkpoints").iterdir()
    )
    assert digest_of(out) == digest_of(whole)


def test_a_full_disk_is_in_the_status(hopper_file, tmp_path, fails, at_epoch, monkeypatch):
    """Nothing can be replaced, but the status file that is there can be written."""

    def refuse(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill():
        monkeypatch.setattr("edp.files.os.replace", refuse)
        monkeypatch.setattr("edp.runs.directory.as_line", refuse)

    at_epoch(fill)
    out = tmp_path / "run"
    said = fails(*train(hopper_file, out, "--quiet", "--checkpoint-every", 10_000))
    assert "No space left on device" in said
    status = Run.open(out).status
    assert status["state"] == "failed"
    assert "No space left on device" in status["reason"]
    monkeypatch.undo()
    assert main(["train", "--resume", str(out), "--quiet"]) == 0


SLOW = """
import sys, time
import numpy
from edp.cli.signals import Signals, ending_at_second_interrupt
with ending_at_second_interrupt(), Signals(tell=lambda text: None):
    print("ready", flush=True)
    numpy.linalg.svd(numpy.random.default_rng(0).standard_normal((6000, 6000)))  # one instruction of many seconds
    print("not ended", flush=True)
"""


def test_a_second_interrupt_ends_at_once_during_a_long_instruction():
    process = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (130, "", "edp: interrupted\n")
    assert time.monotonic() - start < GRACE + 1.5


def test_interrupts_while_a_run_compiles_leave_nothing_half_written(hopper_file, tmp_path):
    out = tmp_path / "run"
    words = train(hopper_file, out, "--hidden", "64,64,64", "--calls", 25, "--diffusion-steps", 30)
    cold = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    process = subprocess.Popen(command(*words), env=cold, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (out / "status.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    process.communicate(timeout=GRACE + 5)
    assert process.returncode == 130
    assert Run.open(out).status["state"] == "killed"
    assert not (out / "metrics.jsonl").exists()


SLOW_COMMAND = """
import signal, sys
import edp.cli, numpy
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore SIGINT
matrix = numpy.random.default_rng(0).standard_normal((6000, 6000))
def dispatch(argv):
    print("ready", flush=True)
    numpy.linalg.svd(matrix)  # one instruction of many seconds
edp.cli.dispatch = dispatch
sys.exit(edp.cli.main(["eval"]))
"""


def test_a_second_interrupt_ends_every_command():
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_COMMAND], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    for _ in range(2):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert process.communicate(timeout=60) == ("", "edp: interrupted\n")
    assert process.returncode == 130
    assert time.monotonic() - start < GRACE + 1.5


INTERRUPTED_COMMAND = """
import atexit, os, sys
import edp.cli
atexit.register(os.abort)  # as threads of libraries do that are still at work
def dispatch(argv):
    print("half a result")
    raise KeyboardInterrupt
edp.cli.dispatch = dispatch
sys.exit(edp.cli.entry())
"""


def test_what_libraries_do_at_the_end_does_not_change_the_exit_code_of_an_interrupt():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_COMMAND], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "half a result\n", "edp: interrupted\n")
