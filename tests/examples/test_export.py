"""The examples of examples/export, with the files that they are for."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edp
from support.tiny_policy import ACT, tiny_policy

EXAMPLES = Path(__file__).parents[2] / "examples" / "export"
WITHOUT = (
    "import sys; sys.modules['jax'] = sys.modules['jaxlib'] = sys.modules['edp'] = None; sys.argv = sys.argv[1:]; "
)


@pytest.fixture(scope="module")
def policy():
    return tiny_policy(sampler="dpm++", calls=6, eas=3)


@pytest.mark.parametrize("random", ["input", "inside"])
def test_python_without_jax(policy, tmp_path, random):
    edp.export(policy, tmp_path / "policy.onnx", random=random)
    run = WITHOUT + "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    words = [sys.executable, "-c", run, EXAMPLES / "act_onnx.py", tmp_path / "policy.onnx", "--actions", "3"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    if random == "input":
        first = said.pop(0)
        assert first.startswith("the contract's example: differs by ")
        assert float(first.split()[5]) < 1e-6
    assert [line.split(":")[0] for line in said[:ACT]] == ["action_0", "action_1", "action_2"]
    assert said[ACT].startswith("an action takes ")


def test_c(policy, tmp_path):
    done = edp.export(policy, tmp_path / "policy.c")
    shutil.copy(EXAMPLES / "act.c", tmp_path)
    words = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "act.c", "policy.c", "-lm", "-o", "act"]
    subprocess.run(words, cwd=tmp_path, check=True)
    line = " ".join(map(str, done.contract["example"]["observation"]))
    act = lambda seed, text: subprocess.run([tmp_path / "act", seed], input=text, capture_output=True, text=True)  # noqa: E731
    first, again, other = (act(seed, f"{line}\n{line}\n") for seed in ("1", "1", "2"))
    assert first.returncode == 0
    assert first.stdout == again.stdout != other.stdout
    numbers = [[float(word.split("=")[1]) for word in row.split()] for row in first.stdout.splitlines()]
    assert numbers[0] != numbers[1]
    *_, low, high = policy.units.arrays
    assert ((np.array(numbers) >= low) & (np.array(numbers) <= high)).all()
    assert "NaN" in act("1", line.replace(line.split()[0], "nan", 1)).stderr
