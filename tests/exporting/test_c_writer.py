"""C files: their names, their text, and their random numbers."""

import ctypes
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

from edp.acting.limits import Limits
from edp.data.signals import Signals
from edp.errors import UserError
from edp.exporting import c_writer
from edp.exporting.plan import make_plan
from support.tiny_policy import ACT, OBS, UNITS, observations, tiny_policy

STRICT = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
NAMES = ("a*/ int x;", 'quote"', "back\\slash", "??/", "Temperatur °C")
EULER = 0.5772156649


@pytest.fixture(scope="module")
def policy():
    return tiny_policy(sampler="dpm++", calls=6, eas=3)


@pytest.fixture(scope="module")
def plan(policy):
    return make_plan(policy)


def signals(observations=NAMES, ranged=True):
    low, high = tuple(range(OBS)), tuple(range(1, OBS + 1))
    return Signals(observations, ("a", "b", "c"), *((low, high) if ranged else ()))


def compiled(text, folder: Path, *more):
    (folder / "policy.c").write_text(text, encoding="ascii")
    subprocess.run([*STRICT, *more, "-o", str(folder / "out"), "-lm"], check=True, cwd=folder)
    return folder / "out"


def test_any_text_in_names_and_titles(plan, tmp_path):
    title = "*/ int broken; /* \\ ??/ \n°"
    text = c_writer.write_c(plan, "policy.c", signals(), title)
    library = ctypes.CDLL(str(compiled(text, tmp_path, "-shared", "-fPIC", "policy.c")))
    names = (ctypes.c_char_p * OBS).in_dll(library, "policy_observation_names")
    assert tuple(name.decode() for name in names) == NAMES
    assert list((ctypes.c_float * OBS).in_dll(library, "policy_observation_high")) == [1, 2, 3, 4, 5]
    assert list((ctypes.c_float * ACT).in_dll(library, "policy_action_high")) == [1, 100, 75]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("policy.c", "policy"),
        ("My policy-2.c", "my_policy_2"),
        ("2nd.c", "policy_2nd"),
        ("Öl.c", "l"),
        ("°.c", "policy"),
    ],
)
def test_names_of_files_become_names_of_c(file, name):
    assert c_writer.identifier(file) == name


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 0.1, 1e-30, 3.4e38, 16777216.0, 1 / 3])
def test_numbers_are_exact(value):
    text = c_writer.number(value)
    assert text.endswith("f")
    assert np.float32(text[:-1]) == np.float32(value)
    assert "." in text or "e" in text


def test_what_is_not_finite_gives_no_action(plan, policy):
    text = c_writer.write_c(plan, "policy.c", signals(ranged=False), "")
    with c_writer.Compiled(text, "policy.c", plan) as act:
        obs, gumbel = observations(3), np.zeros((3, 3), np.float32)
        inputs = {"observation": obs, "noise": np.ones((3, 3, 1, ACT), np.float32), "gumbel": gumbel}
        obs[0, 1], obs[2, 0] = np.nan, 3e38  # the second one overflows inside
        found = act(inputs)
        assert np.isnan(found[[0, 2]]).all()
        assert np.isfinite(found[1]).all()
        kept = np.full(ACT, 7.0, np.float32)
        pointers = [c_writer.pointer(array[0]) for array in (obs, inputs["noise"], gumbel)]
        assert act.act(*pointers, c_writer.pointer(kept)) == 1
        assert (kept == 7).all()


def test_the_control_loop_s_functions(plan, tmp_path):
    limits = Limits((0.25, 5.0, math.inf), 20.0, (0.5, 0.0, 18.0))
    text = c_writer.write_c(plan, "policy.c", signals(), "", "hold", limits)
    assert "POLICY_OUTSIDE = POLICY_HOLD }" in text
    library = ctypes.CDLL(str(compiled(text, tmp_path, "-shared", "-fPIC", "policy.c")))
    assert ctypes.c_float.in_dll(library, "policy_deadline_ms").value == 20
    row = lambda *numbers: np.array(numbers, np.float32)  # noqa: E731
    inside, edge = row(0.5, 1.5, 2.5, 3.5, 4.5), row(1.09, 0.91, 2.5, 3.5, 4.5)
    far, unknown = row(1.11, 0.89, 2.5, 3.5, 4.5), row(np.nan, 1.5, np.inf, 3.5, -np.inf)
    counts = [library.policy_outside(c_writer.pointer(each)) for each in (inside, edge, far, unknown)]
    assert counts == [0, 0, 2, 3]
    last, action = row(0, 50, 30), row(-0.1, 90, 75)
    library.policy_limit(c_writer.pointer(last), c_writer.pointer(action))
    np.testing.assert_allclose(action, [-0.1, 55, 75], rtol=1e-6)
    action = row(1, 40, 18)
    library.policy_limit(c_writer.pointer(last), c_writer.pointer(action))
    np.testing.assert_allclose(action, [0.25, 45, 18], rtol=1e-6)
    library.policy_fall_back(c_writer.pointer(last), c_writer.pointer(action))
    np.testing.assert_array_equal(action, row(0.5, 0, 18))


def test_a_loop_without_limits(plan, tmp_path):
    text = c_writer.write_c(plan, "policy.c", signals(ranged=False), "")
    library = ctypes.CDLL(str(compiled(text, tmp_path, "-shared", "-fPIC", "policy.c")))
    far, last, action = np.full(OBS, 1e30, np.float32), np.zeros(ACT, np.float32), np.full(ACT, 50, np.float32)
    assert library.policy_outside(c_writer.pointer(far)) == 0
    library.policy_limit(c_writer.pointer(last), c_writer.pointer(action))
    assert (action == 50).all()
    library.policy_fall_back(c_writer.pointer(last), c_writer.pointer(action))
    assert (action == 0).all()


MAIN = """
#include <stdio.h>
#include "policy.c"
int main(void)
{
    policy_random random;
    float numbers[5];
    int i, j;
    policy_seed(&random, 3u);
    for (i = 0; i < 20000; i++) {
        fill_normal(&random, numbers, 5);
        for (j = 0; j < 5; j++)
            printf("%.9g ", (double)numbers[j]);
        printf("%.9g\\n", (double)uniform(&random));
    }
    return 0;
}
"""


def test_its_own_random_numbers(plan, tmp_path):
    (tmp_path / "main.c").write_text(MAIN)
    text = c_writer.write_c(plan, "policy.c", signals(), "")
    program = compiled(text, tmp_path, "main.c")
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    table = np.array(lines.split(), float).reshape(-1, 6)
    normal, uniform = table[:, :5], table[:, 5]
    np.testing.assert_allclose(normal.mean(axis=0), np.zeros(5), atol=0.03)
    np.testing.assert_allclose(normal.std(axis=0), np.ones(5), atol=0.03)
    np.testing.assert_allclose((normal**4).mean(axis=0), np.full(5, 3.0), atol=0.25)
    assert np.abs(np.corrcoef(table.T) - np.eye(6)).max() < 0.03
    assert 0 < uniform.min() < uniform.max() < 1
    np.testing.assert_allclose(np.histogram(uniform, 10, (0, 1))[0], np.full(10, 2000), rtol=0.1)


def test_the_variant_with_its_own_random_numbers_acts_alike(plan, tmp_path):
    """The actions of one state have the same distribution as with random numbers from outside."""
    text = c_writer.write_c(plan, "policy.c", signals(), "")
    library = ctypes.CDLL(str(compiled(text, tmp_path, "-shared", "-fPIC", "policy.c")))
    state, obs, count = (ctypes.c_uint32 * 4)(), observations(1)[0], 4000
    library.policy_seed(state, 11)
    own = np.empty((count, ACT), np.float32)
    for row in own:
        assert library.policy_act_random(c_writer.pointer(obs), state, c_writer.pointer(row)) == 0
    rng = np.random.default_rng(0)
    inputs = {
        "observation": np.repeat(obs[None], count, axis=0),
        "noise": rng.standard_normal((count, 3, 1, ACT), np.float32),
        "gumbel": rng.gumbel(size=(count, 3)).astype(np.float32),
    }
    with c_writer.Compiled(text, "policy.c", plan) as act:
        given = act(inputs)
    half = UNITS.arrays[3]
    np.testing.assert_allclose(own.mean(axis=0) / half, given.mean(axis=0) / half, atol=0.06)
    np.testing.assert_allclose(own.std(axis=0) / half, given.std(axis=0) / half, atol=0.06)


def test_histories_have_no_c():
    policy = tiny_policy(algo="dt", policy="transformer", width=8, layers=1, context=2)
    with pytest.raises(UserError, match="reads histories has no exporter to C: use the format onnx"):
        c_writer.write_c(make_plan(policy), "policy.c", signals(), "")


def test_without_a_compiler(plan, monkeypatch):
    monkeypatch.setattr(c_writer.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="no C compiler"):
        c_writer.Compiled("", "policy.c", plan)
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"cannot be compiled: .*error"):
        c_writer.Compiled("this is not C", "policy.c", plan)
