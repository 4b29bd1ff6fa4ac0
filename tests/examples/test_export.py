"""The examples of examples/export, with the files that they are for."""

import json
import math
import re
import runpy
import shutil
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import edp
from edp.acting.limits import Limits
from support.tiny_policy import ACT, OBS, observations, tiny_policy

EXAMPLES = Path(__file__).parents[2] / "examples" / "export"
WITHOUT = (
    "import sys; sys.modules['jax'] = sys.modules['jaxlib'] = sys.modules['edp'] = None; sys.argv = sys.argv[1:]; "
)


LIMITS = Limits((0.1, 5.0, math.inf), 1e-6, (0.5, 20.0, 30.0))  # so that every action of the C program is late


@pytest.fixture(scope="module")
def policy():
    return tiny_policy(sampler="dpm++", calls=6, eas=3)


@pytest.fixture(scope="module")
def example():
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / "act_onnx.py")))


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


@pytest.fixture(scope="module")
def contract_text(policy, tmp_path_factory):
    return edp.export(policy, tmp_path_factory.mktemp("onnx") / "policy.onnx").contract_path.read_text()


@pytest.fixture
def contract(contract_text):
    """Of a policy whose observations are between 0 and 1 in its training data."""
    found = json.loads(contract_text)
    for entry in found["observations"]:
        entry.update(low=0.0, high=1.0)
    return found


class Given:
    """In the place of a policy: gives actions of a list, and waits at a gate."""

    def __init__(self, *actions):
        self.actions, self.gate, self.begun = list(actions), threading.Event(), 0
        self.gate.set()

    def act(self, observation):
        self.begun += 1
        self.gate.wait()
        return np.float32(self.actions.pop(0))


class TestLoop:
    def test_changes_are_limited(self, example, contract):
        contract["control"]["max_change"] = [0.1, 5, None]
        loop = example.Loop(Given([0, 50, 50], [0.5, 40, 20], [0.5, 47, 75]), contract)
        given = [loop.act(np.full(OBS, 0.5)) for _ in range(3)]
        np.testing.assert_allclose(given, [[0, 50, 50], [0.1, 45, 20], [0.2, 47, 75]], rtol=1e-5)

    @pytest.mark.parametrize("bad", [1.2, -0.2, np.nan, np.inf])
    def test_observations_outside(self, example, contract, bad):
        good, row = np.full(OBS, 1.05), np.full(OBS, 0.5)
        row[2] = bad
        actions = [0.1, 1, 20], [0.2, 2, 21]

        def loop(outside):
            contract["control"]["outside"] = outside
            return example.Loop(Given(*actions), contract)

        with pytest.raises(ValueError, match="outside of the training data: observation_2 is"):
            loop("refuse").act(row)
        with pytest.raises(ValueError, match="outside of the training data"):
            loop("hold").act(row)
        for choice, second in (("hold", 0), ("warn", 1), ("ignore", 1)):
            acting = loop(choice)
            np.testing.assert_array_equal(acting.act(good), np.float32(actions[0]))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                np.testing.assert_array_equal(acting.act(row), np.float32(actions[second]))
            assert len(caught) == (choice != "ignore")

    def test_the_deadline(self, example, contract):
        contract["control"].update(deadline_ms=200, fallback="hold")
        given = Given([0, 50, 50], [0.5, 40, 20], [0.7, 10, 30])
        loop, obs = example.Loop(given, contract), np.full(OBS, 0.5)
        first = loop.act(obs)
        given.gate.clear()
        for misses in (1, 2):
            np.testing.assert_array_equal(loop.act(obs), first)
            assert loop.misses == misses
        assert given.begun == 2  # nothing queues up
        given.gate.set()
        np.testing.assert_array_equal(loop.act(obs), np.float32([0.7, 10, 30]))
        assert (loop.calls, loop.misses) == (4, 2)
        contract["control"].update(fallback=[0.5, 0, 20])
        given.gate.clear()
        np.testing.assert_array_equal(example.Loop(given, contract).act(obs), np.float32([0.5, 0, 20]))
        given.gate.set()


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


def test_c_in_time(tmp_path):
    policy = tiny_policy(sampler="dpm++", calls=6, eas=3, limits=LIMITS)
    policy.outside, policy.signals = "hold", replace(policy.signals, low=(-1e3,) * OBS, high=(1e3,) * OBS)
    edp.export(policy, tmp_path / "policy.c")
    rows = [" ".join(map(str, row)) + "\n" for row in observations(30)]
    shutil.copy(EXAMPLES / "act.c", tmp_path)

    def act(lines):
        words = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "act.c", "policy.c", "-lm", "-o", "act"]
        subprocess.run(words, cwd=tmp_path, check=True)
        said = subprocess.run([tmp_path / "act"], input=lines, capture_output=True, text=True)
        actions = [[float(word.split("=")[1]) for word in row.split()] for row in said.stdout.splitlines()]
        return said.returncode, said.stderr.splitlines(), np.array(actions)

    code, said, actions = act("".join(rows))
    assert (code, said) == (0, ["30 of 30 actions were late"])
    np.testing.assert_allclose(actions, np.tile(np.array(LIMITS.fallback), (30, 1)), rtol=1e-5)

    source = tmp_path / "policy.c"
    text, count = re.subn(r"(_deadline_ms = )[^;]+", r"\g<1>0.0f", source.read_text())
    assert count == 1
    source.write_text(text)
    rows[3] = far = rows[3].replace(rows[3].split()[0], "5e3", 1)
    code, said, actions = act("".join(rows))
    assert (code, said) == (0, ["outside of the training data: 1 of the observation's numbers"])
    changes = np.abs(np.diff(actions, axis=0))
    assert (changes[2] == 0).all()  # held
    assert (changes[:, :2] <= 1.001 * np.array(LIMITS.max_change)[:2]).all()
    assert changes[:, 2].max() > 5 and (changes[:, :2] > 0.99 * np.array(LIMITS.max_change)[:2]).any()
    assert act(far)[:2] == (1, [*said, "there is no earlier action to hold"])
