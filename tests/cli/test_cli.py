"""The command line as a whole: names, help and start-up time."""

import resource
import subprocess
import sys

import pytest

from edp.cli import main


def test_wrong_names_get_the_nearest_one(capsys, hopper_file, fails):
    assert "did you mean 'train'" in fails("trian")
    assert "did you mean 'hopper-medium-v2'" in fails("train", "hopper-medum-v2")
    assert "did you mean 'td3bc'" in fails("train", "hopper-medium-v2", "--algo", "td3bs")
    assert "did you mean 'diffusion'" in fails("train", "hopper-medium-v2", "--policy", "difusion")
    assert "did you mean '--steps'" in fails("train", "hopper-medium-v2", "--stps", "3")
    assert "did you mean 'cosine'" in fails("train", "hopper-medium-v2", "--data", hopper_file, "--schedule", "cosin")
    assert "did you mean 'data make'" in fails("data", "mak")
    assert "did you mean 'average'" in fails("train", "hopper-medium-v2", "--data", hopper_file, "--act-with", "averge")


def test_help_and_import_are_quick():
    for words in (["-c", "import edp"], ["-m", "edp", "--help"]):
        program = [sys.executable, "-X", "importtime", *words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(program, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
        assert done.returncode == 0
        loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
        assert not loaded & {"jax", "numpy", "mujoco", "gymnasium", "h5py", "rich"}


@pytest.mark.parametrize("command", [["train"], ["eval"], ["data"], ["data", "make"], ["data", "list"]])
def test_every_command_has_help(command, capsys):
    try:
        assert main([*command, "--help"]) == 0
    except SystemExit as stop:
        assert stop.code == 0
    assert "usage: edp " + " ".join(command) in capsys.readouterr().out
