"""One way to start a run: the command line and Python make the same run."""

import json

import numpy as np
import pytest

import edp
from edp.cli import main
from edp.config.choice import choose
from edp.data.tasks import get_task
from edp.errors import UserError
from edp.training import prepare

SMALL = {"steps": 20, "epoch_steps": 10, "hidden": (8,), "critic_hidden": (8,), "calls": 3, "eas": 2}
ENDS = np.arange(60) % 20 == 19


@pytest.fixture
def log(tmp_path, rng):
    rows = rng.standard_normal((60, 3)), rng.uniform(-2, 2, (60, 1)), rng.standard_normal(60)
    return edp.write(edp.from_arrays(*rows, np.zeros(60, bool), timeouts=ENDS), tmp_path / "log.npz")


def test_python_and_the_command_line_make_the_same_run(log, tmp_path):
    words = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value).strip("(),"))]
    assert main(["train", log, "--out", str(tmp_path / "cli"), "--quiet", *words]) == 0
    edp.fit(log, tmp_path / "python", **SMALL)
    first, second = (
        json.loads((tmp_path / name / "config.json").read_text(encoding="utf-8")) for name in ("cli", "python")
    )
    assert first.pop("command")[:2] == ["edp", "train"]
    assert second.pop("command") == []
    assert first == second
    for name in ("metrics.jsonl", "validations.jsonl"):
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "python" / name).read_bytes()


def test_python_names_parameters_and_the_command_line_flags(log, tmp_path, fails):
    with pytest.raises(UserError, match="`n_step` must be from 1 to 10000, not 0"):
        edp.fit(log, tmp_path / "run", n_step=0)
    assert "--n-step must be from 1 to 10000, not 0" in fails("train", log, "--n-step", 0)


def test_notes_about_the_data_reach_both(log, tmp_path, capsys, rng):
    rows = rng.standard_normal((60, 3)), rng.uniform(-2, 2, (60, 1)), np.ones(60)
    same = edp.from_arrays(*rows, np.zeros(60, bool), timeouts=ENDS)
    with pytest.warns(UserWarning, match="every reward is 1.*`algo=bc` learns to imitate") as said:
        edp.fit(same, tmp_path / "python", **SMALL)
    assert any("too few to learn from (a policy needs thousands" in str(each.message) for each in said)
    file = edp.write(same, tmp_path / "same.npz")
    words = ["--steps", "10", "--epoch-steps", "10", "--hidden", "8", "--critic-hidden", "8", "--calls", "3"]
    assert main(["train", file, "--out", str(tmp_path / "cli"), "--quiet", *words]) == 0
    told = capsys.readouterr().err
    assert "every reward is 1: nothing tells good actions from bad ones (--algo bc learns" in told
    assert "too few to learn from" in told


def test_error_values_are_told(tmp_path, rng):
    rows = 50 + rng.standard_normal((300, 2)), rng.uniform(-1, 1, (300, 1)), rng.random(300)
    rows[0][::60, 1] = -9999
    log = edp.from_arrays(*rows, np.zeros(300, bool), timeouts=np.arange(300) % 20 == 19)
    with pytest.warns(
        UserWarning, match=r"'observation_1' is -9999 in 5 rows, and at 4.* in others \(a sensor's error"
    ):
        edp.fit(log, tmp_path / "python", **SMALL)


def test_options_that_contradict_each_other_are_refused_before_data_is_read():
    with pytest.raises(UserError, match="use `eas=1`"):
        prepare.resolve_settings(choose("bc", options={"eas": 3}), get_task("hopper-medium-v2"))


def test_settings_follow_from_the_returns_of_the_user_s_data(log, tmp_path):
    """Decision Transformer asks for the best return in the data, unless the user gives another."""
    small = {"steps": 10, "epoch_steps": 10, "width": 8, "layers": 1, "validation": 0.0}
    edp.fit(log, tmp_path / "data", algo="dt", **small)
    edp.fit(log, tmp_path / "given", algo="dt", target_return=7.0, **small)
    data, given = (
        json.loads((tmp_path / name / "config.json").read_text(encoding="utf-8")) for name in ("data", "given")
    )
    best = np.load(log)["rewards"].reshape(3, 20).sum(axis=1).max()
    assert data["policy"]["target_return"] == pytest.approx(best, rel=1e-5)
    assert data["origins"]["target_return"] == "task"
    assert given["policy"]["target_return"] == 7.0
    assert given["origins"]["target_return"] == "user"


def test_a_directory_that_is_not_empty_is_refused_with_a_hint_on_the_command_line(log, tmp_path, fails):
    out = tmp_path / "run"
    out.mkdir()
    (out / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match=r"exists already; choose another `out`$"):
        edp.fit(log, out)
    assert f"choose another --out, or continue it: edp train --resume {out}" in fails("train", log, "--out", out)
