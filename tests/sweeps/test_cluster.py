"""A sweep on a Ray cluster, whose driver and one of whose workers are killed."""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from edp.cli import main
from edp.runs.directory import Run
from edp.runs.sweep import Sweep
from edp.runs.trial_results import read_result
from support.small_run import command, digest

pytest.importorskip("ray")
SUPPORT = Path(__file__).parents[1] / "support" / "ray_cluster.py"
pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds processes in /proc")
LIMIT = 600.0  # seconds to wait for anything


@pytest.fixture
def cluster(monkeypatch):
    """The address of a cluster of two nodes."""
    for name, value in {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }.items():
        monkeypatch.setenv(name, value)
    process = subprocess.Popen(
        [sys.executable, str(SUPPORT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout and process.stdin
    address = process.stdout.readline().strip()
    assert re.fullmatch(r"127\.0\.0\.1:\d+", address)
    yield address
    process.stdin.close()
    process.wait(60)


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def results(folder):
    sweep = Sweep.open(folder)
    return [read_result(sweep, trial) for trial in sweep.trials()]


def count_begun(folder):
    return sum(each.step > 0 for each in results(folder))


def workers():
    """The processes of Ray that run trials."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and (path / "cmdline").read_bytes().startswith(b"ray::run_trial"):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def kill_worker(pid):
    """Kill a process that runs a trial, after a look at where it listens; false if it has ended before."""
    try:
        addresses = listening(pid)
        os.kill(pid, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return False
    assert addresses
    assert addresses <= LOOPBACK
    return True


def listening(pid):
    """The addresses at which a process listens."""
    links = [str(handle.readlink()) for handle in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def test_kills_leave_every_trial_sound_and_none_is_trained_twice(small, as_file, cluster, tmp_path):
    rates = [round(1e-4 * 1.5**number, 6) for number in range(12)]
    plan = small(space={"lr": rates}, search={"confirm": 1}, stopping={"first": 20, "factor": 2})
    file, out = as_file(plan), tmp_path / "sweep"
    begin = partial(subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    driver = begin(command("sweep", file, "--out", out, "--address", cluster))
    wait_for(lambda: Sweep.is_in(out) and any(each.step > 0 for each in results(out)), "the first step")
    driver.kill()
    driver.wait()

    driver = begin(command("sweep", "--resume", out, "--address", cluster))
    wait_for(lambda: sum(each.is_done for each in results(out)) >= 3, "three trials")
    wait_for(lambda: any(map(kill_worker, workers())), "a worker")
    wait_for(lambda: sum(each.is_done for each in results(out)) >= 6, "six trials")
    driver.kill()
    driver.wait()

    last = subprocess.run(command("sweep", "--resume", out, "--address", cluster), capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    found = results(out)
    assert len(found) == 13
    assert {each.state for each in found} <= {"finished", "stopped early"}
    assert {path.name for path in out.iterdir() if path.is_dir()} == {each.trial.name for each in found}

    # Without early stopping, in one process: every trial has the same numbers, as far as it went.
    whole = tmp_path / "whole"
    plan = small(space={"lr": rates}, search={"confirm": 0})
    assert main(["sweep", str(as_file(plan)), "--engine", "serial", "--out", str(whole), "--quiet"]) == 0
    for each, other in zip(found, results(whole), strict=False):
        here, there = Sweep.open(out).run_folder(each.trial), Sweep.open(whole).run_folder(other.trial)
        for name in ("metrics.jsonl", "evaluations.jsonl"):
            assert (there / name).read_bytes().startswith((here / name).read_bytes())
        trained = [row["step"] for row in Run.open(here).metrics()]
        assert trained == list(range(10, each.step + 1, 10))
        if each.state == "finished":
            assert digest(here) == digest(there)


def test_a_sweep_with_ray_on_this_machine(small, as_file, tmp_path, monkeypatch):
    """Without an address, Ray is started for the sweep alone, and ends with it."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    file, out = as_file(small(search={"confirm": 0})), tmp_path / "sweep"
    process = subprocess.Popen(
        command("sweep", file, "--out", out, "--parallel", 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: Sweep.is_in(out) and any(each.step > 0 for each in results(out)), "the first step")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, said
    assert f"edp sweep --resume {out}" in said
    stopped = results(out)
    assert not any(each.state in ("running", "killed") for each in stopped)
    done = subprocess.run(command("sweep", "--resume", out), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [each.state for each in results(out)] == ["finished"] * 3
    assert json.loads((out / "sweep.json").read_text())["search"]["method"] == "grid"
    wait_for(lambda: not workers(), "the end of all workers")


@pytest.mark.parametrize("cpus", [2, 64])
def test_too_few_resources(small, as_file, fails, tmp_path, cluster, cpus):
    """The cores of several machines together do not help."""
    plan = small(resources={"cpus": cpus})
    done = subprocess.run(
        command("sweep", as_file(plan), "--out", tmp_path / "out", "--address", cluster), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"edp: a trial needs {cpus} cores and 0 GPUs, and the largest machine of the cluster has 1 cores and 0 GPUs"
    ]
    assert not (tmp_path / "out").exists()


def test_trials_that_wait_for_room_are_taken_back(small, as_file, tmp_path, cluster):
    """Ctrl-C ends a sweep, also while other programs use the whole cluster."""
    begin = partial(subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    file = as_file(small(train={"steps": 100_000}, space={"lr": [1e-3, 1e-4]}))
    first = begin(command("sweep", file, "--out", tmp_path / "first", "--address", cluster))
    wait_for(lambda: Sweep.is_in(tmp_path / "first") and count_begun(tmp_path / "first") == 2, "steps")
    second = begin(command("sweep", file, "--out", tmp_path / "second", "--address", cluster))
    wait_for(lambda: Sweep.is_in(tmp_path / "second") and len(results(tmp_path / "second")) == 2, "trials")
    second.send_signal(signal.SIGINT)
    _, said = second.communicate(timeout=LIMIT)
    assert second.returncode == 130, said
    assert {each.state for each in results(tmp_path / "second")} == {"waiting"}
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=LIMIT)
    assert first.returncode == 130, said
    assert {each.state for each in results(tmp_path / "first")} == {"stopped"}
