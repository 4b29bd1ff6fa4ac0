"""A run that is trained by two processes, which communicate over the loopback interface."""

import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from edp.devices import processes as connected
from edp.devices.seeds import local_rows
from edp.errors import UserError
from edp.runs import load
from edp.runs.checkpoints import arrays_digest, leaves_by_name
from edp.runs.directory import Run

EPOCH, STEPS, LONG = 10, 200, 1000
SMALL = [
    *["--algo", "bc", "--policy", "gaussian", "--eas", 1, "--hidden", "8,8", "--batch-size", 16, "--seeds", 4],
    *["--epoch-steps", EPOCH, "--eval-every", 100, "--checkpoint-every", 50, "--episodes", 2],
]
EDP = [sys.executable, "-m", "edp"]
END = 100  # seconds in which a process has to end, whatever happens to the others


def words(hopper_file, out, *more):
    return ["train", "hopper-medium-v2", "--data", hopper_file, "--out", out, *SMALL, *more]


def start(argv, processes=1, devices=4, programs=()):
    """The command in as many processes, which have so many virtual devices in all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices // processes}"
    env = os.environ | {"XLA_FLAGS": flags}
    if processes > 1:
        env |= {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": str(processes)}
    return [
        subprocess.Popen(
            [*(programs[number] if programs else EDP), *map(str, argv)],
            env=env | ({"JAX_PROCESS_ID": str(number)} if processes > 1 else {}),
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
        )
        for number in range(processes)
    ]


def finish(started):
    """Exit codes, and what was printed."""
    try:
        said = [process.communicate(timeout=END) for process in started]
    finally:
        for process in started:
            process.kill()
    return [process.returncode for process in started], said


def run(argv, processes=1, **more):
    codes, said = finish(start(argv, processes, **more))
    assert codes == [0] * processes, said
    assert all(words == ("", "") for words in said[1:])
    return said[0]


def arrays(folder):
    return {
        name: np.asarray(leaf) for name, leaf in leaves_by_name(load.load_checkpoint(Run.open(folder))[1].tree).items()
    }


def assert_same(folder, whole):
    assert arrays_digest(arrays(folder)) == arrays_digest(arrays(whole))
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert Run.open(folder).status["state"] == "finished"


def wait_for(started, path):
    while all(process.poll() is None for process in started) and not path.exists():
        time.sleep(0.002)


@pytest.fixture(scope="module")
def whole(hopper_file, tmp_path_factory):
    """A run of one process, with four devices."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    run(words(hopper_file, out, "--steps", STEPS))
    return out


def test_two_processes_make_the_run_that_one_makes(hopper_file, whole, tmp_path):
    shown, _ = run(words(hopper_file, tmp_path / "two", "--steps", STEPS), processes=2)
    assert_same(tmp_path / "two", whole)
    assert "Gloo" not in shown
    assert Run.open(tmp_path / "two").config["device"].endswith("in 2 processes")


def test_a_signal_to_one_stops_both_and_one_process_goes_on(hopper_file, whole, tmp_path):
    out = tmp_path / "stopped"
    started = start(words(hopper_file, out, "--steps", STEPS, "--checkpoint-every", LONG), 2)
    wait_for(started, out / "metrics.jsonl")
    started[1].send_signal(signal.SIGTERM)
    codes, said = finish(started)
    assert codes == [128 + signal.SIGTERM] * 2, said
    assert f"edp train --resume {out}" in said[0][1]
    assert Run.open(out).status["state"] == "stopped"
    run(["train", "--resume", out])
    assert_same(out, whole)


@pytest.mark.parametrize("victim", [0, 1])
def test_one_that_is_killed_takes_the_other_along(victim, hopper_file, whole, tmp_path):
    out = tmp_path / "killed"
    started = start(words(hopper_file, out, "--steps", STEPS, "--checkpoint-every", EPOCH), 2)
    wait_for(started, out / "checkpoints" / str(EPOCH))
    started[victim].kill()
    codes, said = finish(started)
    assert codes[victim] == -signal.SIGKILL, said
    assert codes[1 - victim] not in (0, None), said
    if victim == 0:
        run(["train", "--resume", out], processes=2)
        assert_same(out, whole)
    else:
        assert codes[0] == 2
        assert "edp: another process is lost" in said[0][1]
        assert Run.open(out).status["state"] == "failed"


def test_an_error_of_any_process_is_told_once_before_anything_is_written(hopper_file, tmp_path):
    broken = "import sys, edp.cli, edp.data.formats as formats; from edp.errors import UserError\n"
    broken += "def open_log(place, *more): raise UserError(f'{place}: not here')\n"
    broken += "formats.open_log = open_log; sys.exit(edp.cli.main())"
    codes, said = finish(start(words(hopper_file, tmp_path / "out"), 2, programs=[EDP, [sys.executable, "-c", broken]]))
    assert (codes, said) == ([2, 2], [("", f"edp: process 1 of 2: {hopper_file}: not here\n"), ("", "")])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("seeds", "text", "others"), [(5, "5 seeds", "4 or 6"), (1, "1 seed", "2")])
def test_seeds_that_cannot_be_shared(seeds, text, others, monkeypatch):
    monkeypatch.setattr("jax.process_count", lambda: 2)
    with pytest.raises(UserError, match=f"2 processes cannot share {text} equally: use `seeds={others}`$"):
        local_rows(seeds)


def test_one_that_waits_in_vain():
    env = {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:9", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}
    script = "from edp.devices import processes; processes.WAIT = 2; processes.connect()"
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "edp: process 1 of 2: not all processes have started within 2 s\n")


class TestSettings:
    def test_on_its_own(self):
        for env in ({}, {"SLURM_NTASKS": "4"}, {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}):
            assert connected.launch_settings(env) is None
        alone = {"JAX_NUM_PROCESSES": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}
        assert connected.launch_settings(alone) is None

    @pytest.mark.parametrize(("count", "number"), connected.LAUNCHERS)
    def test_of_a_launcher(self, count, number):
        env = {count: "4", number: "3", "JAX_COORDINATOR_ADDRESS": "node1:1234"}
        assert connected.launch_settings(env) == {
            "coordinator_address": "node1:1234",
            "num_processes": 4,
            "process_id": 3,
        }

    def test_slurm_knows_the_address(self):
        found = connected.launch_settings({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"})
        assert found and found["coordinator_address"] is None

    @pytest.mark.parametrize(
        ("env", "why"),
        [
            ({"JAX_COORDINATOR_ADDRESS": "a:1"}, "JAX_NUM_PROCESSES must be a number"),
            ({"JAX_NUM_PROCESSES": "2"}, "JAX_PROCESS_ID must be a number"),
            ({"JAX_NUM_PROCESSES": "two", "JAX_PROCESS_ID": "0"}, "must be a number"),
            ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "-1"}, "must be a number"),
            ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "2"}, "must be less than"),
            ({"JAX_NUM_PROCESSES": "0", "JAX_PROCESS_ID": "0"}, "must be less than"),
            ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, "must be the first process's HOST:PORT"),
            ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1", "JAX_COORDINATOR_ADDRESS": "here"}, "HOST:PORT"),
        ],
    )
    def test_that_are_wrong(self, env, why, monkeypatch, fails):
        with pytest.raises(UserError, match=why):
            connected.launch_settings(env)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        assert why in fails("train", "hopper-medium-v2")
