"""What a sweep's file may say, and what it may not."""

import datetime
import math
import os
import socket
import sys

import numpy as np
import pytest

from edp.cli import main
from edp.errors import UserError
from edp.sweeps.engines import LOOPBACK
from edp.sweeps.plan import as_request, read_plan
from edp.sweeps.search import planned_points, trial_name
from edp.sweeps.space import Choices, Range


def test_a_grid_has_all_points(small):
    space = {"lr": [1e-3, 1e-4], "loss_weight": {"low": 0.0, "high": 1.0, "points": 3}, "hidden": [[16], [8, 8]]}
    points = planned_points(read_plan(small(space=space)))
    assert len(points) == 12
    assert points[0] == {"lr": 1e-3, "loss_weight": 0.0, "hidden": (16,)}
    assert {point["loss_weight"] for point in points} == {0.0, 0.5, 1.0}
    assert points[-1]["hidden"] == (8, 8)


def test_several_spaces_are_tried_one_after_another(small):
    spaces = [{"algo": "td3bc", "loss_weight": [0.1, 1.0]}, {"algo": "iql", "expectile": [0.7, 0.8, 0.9]}]
    plan = read_plan(small(space=spaces))
    assert plan.size == 5
    assert [point["algo"] for point in planned_points(plan)] == ["td3bc"] * 2 + ["iql"] * 3
    assert plan.varied == ["algo", "loss_weight", "expectile"]


def test_an_option_with_a_list_of_numbers_as_its_value_is_no_choice(small):
    plan = read_plan(small(space={"hidden": [16, 16], "lr": [1e-3]}))
    assert planned_points(plan) == [{"hidden": (16, 16), "lr": 1e-3}]


def test_numbers_of_numpy_and_paths_are_taken(small, hopper_file):
    plan = read_plan(small(train={"data": hopper_file, "seeds": np.int64(2)}, space={"lr": np.array([1e-3, 1e-4])}))
    assert planned_points(plan) == [{"lr": 1e-3}, {"lr": 1e-4}]
    assert plan.train["data"] == str(hopper_file) and type(plan.train["seeds"]) is int


def test_random_points_depend_on_the_seed_and_the_number_alone(small):
    space = {"lr": {"low": 1e-4, "high": 1e-2, "log": True}, "calls": {"low": 2, "high": 9}, "algo": ["td3bc", "iql"]}
    plans = [
        read_plan(small(space=space, search={"method": "random", "trials": count, "seed": seed}))
        for count, seed in ((20, 0), (30, 0), (20, 1))
    ]
    short, long, other = (planned_points(plan) for plan in plans)
    assert short == long[:20] != other
    assert len({point["lr"] for point in short}) == 20
    assert all(1e-4 <= point["lr"] <= 1e-2 and 2 <= point["calls"] <= 9 for point in short)
    assert all(type(point["calls"]) is int for point in short)


def test_a_logarithmic_range_is_even_on_a_logarithmic_scale():
    dimension, rng = Range(1e-4, 1.0, log=True), np.random.default_rng(0)
    exponents = np.log10([dimension.draw(rng) for _ in range(2000)])
    np.testing.assert_allclose(np.histogram(exponents, 4, (-4, 0))[0], 500, atol=80)
    assert Range(1e-4, 1.0, log=True, number=5).points() == [1e-4, 1e-3, 1e-2, 1e-1, 1.0]


def test_few_random_choices_are_all_tried(small):
    plan = read_plan(small(space={"lr": [1e-3, 2e-3, 3e-3]}, search={"method": "random", "trials": 3}))
    assert len({point["lr"] for point in planned_points(plan)}) == 3


def test_names_of_trials_are_names_of_folders():
    values = {"task": "local/hopper-medium", "lr": 1e-3, "hidden": (16, 16)}
    assert trial_name(7, values, ["task", "lr", "hidden"]) == "0007_task=local-hopper-medium_lr=0.001_hidden=16,16"
    assert len(trial_name(7, {"task": "x" * 500}, ["task"])) <= 100


WRONG = {
    "unknown option 'lrr': did you mean 'lr'?": {"space": {"lrr": [1e-3]}},
    "lr has no values to choose from": {"space": {"lr": []}},
    "lr has a value twice": {"space": {"lr": [1e-3, 1e-3]}},
    "low (0.01) must be below high (0.001)": {"space": {"lr": {"low": 1e-2, "high": 1e-3}}},
    "a logarithmic range begins above 0": {"space": {"lr": {"low": 0.0, "high": 1e-3, "log": True}}},
    "lr: high must be a number, not None": {"space": {"lr": {"low": 1e-3}}},
    "unknown entry 'hi'": {"space": {"lr": {"low": 1e-3, "hi": 1e-2}}},
    "calls: low must be a whole number": {"space": {"calls": {"low": 1.5, "high": 4}}},
    "a range is for numbers": {"space": {"guidance": {"low": 1, "high": 4}}},
    "lr is a range, which a grid needs": {"space": {"lr": {"low": 1e-4, "high": 1e-3}}},
    "the grid has 1,000,000,000 points": {
        "space": {name: {"low": 0.1, "high": 1.0, "points": 1000} for name in ("lr", "tau", "clip")}
    },
    "unknown algo 'iqq': did you mean 'iql'?": {"space": {"algo": ["iqq"]}},
    "algo must be a name": {"space": {"algo": [1]}},
    "unknown table 'spaces': did you mean 'space'?": {"spaces": {}},
    "unknown entry 'trails': did you mean 'trials'?": {"search": {"trails": 3}},
    "unknown choice of method 'rnadom'": {"search": {"method": "rnadom"}},
    "how many trials?": {"search": {"method": "random"}},
    "a grid has 3 trials": {"search": {"trials": 4}},
    "factor must be at least 2": {"stopping": {"first": 20, "factor": 1}},
    "steps must have one value here": {"train": {"steps": [100, 200]}},
    "has a factor and no first": {"stopping": {"factor": 3}},
    "the space has 3 different trials: ask for fewer": {"search": {"method": "random", "trials": 4}},
    "hidden: a range is for numbers; give a list of values": {"space": {"hidden": {"low": 16, "high": 64}}},
    "cpus must be 0 or at least 0.01": {"resources": {"cpus": 0.00001}},
    "cpus must be from 0.0 to 10000.0": {"resources": {"cpus": math.inf}},
    "space must be a table": {"space": []},
    "low must be between -1e+30 and 1e+30, not -1e+308": {"space": {"lr": {"low": -1e308, "high": 1e308, "points": 3}}},
    "high must be between -1e+30 and 1e+30, not nan": {"space": {"lr": {"low": 0.0, "high": float("nan")}}},
    "space: calls: high is too large": {"space": {"calls": {"low": 1, "high": 10**30, "points": 3}}},
    "space: lr is too large": {"space": {"lr": 16**5000}},  # Python does not print such a number
    "space: lr must be text, a number, or true or false, not 1979": {"space": {"lr": [datetime.date(1979, 5, 27)]}},
    "unknown choice of method True": {"search": {"method": True}},
    "epoch_steps is there twice": {"space": {"epoch-steps": [10, 20], "epoch_steps": 10}},
    "unknown option '3'": {"space": {3: 4}},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_plans_are_refused(small, message):
    with pytest.raises(UserError) as error:
        read_plan(small(**WRONG[message]))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


IMPOSSIBLE = {
    "lr -1: --lr must be at least 0": {"space": {"lr": [-1.0, 1e-3]}},
    "unknown option of this algorithm": {"space": {"expectile": [0.7]}},
    "unknown task": {"train": {"task": "hoper-medium-v2"}},
    "first = 500 must be below steps": {"stopping": {"first": 500}},
    "eval_every (20) must be at most": {"stopping": {"first": 10}},
    "unknown choice of --guidance 5": {"space": {"guidance": [5]}},
    'metric = "bc_loss" needs held-out episodes': {"search": {"metric": "bc_loss"}},
    'metric = "offline" needs held-out episodes': {"search": {"metric": "offline"}},
    "none.hdf5: no such file": {"train": {"data": "none.hdf5"}},
}


@pytest.mark.parametrize("message", IMPOSSIBLE)
@pytest.mark.parametrize("words", [["--dry-run"], ["--engine", "serial"]], ids=["dry-run", "run"])
def test_options_are_checked_before_anything_runs(small, as_file, fails, tmp_path, message, words):
    out = tmp_path / "out"
    words = [*words, "--out", out] if words[0] == "--engine" else words
    assert message in fails("sweep", as_file(small(**IMPOSSIBLE[message])), *words)
    assert not out.exists()


def test_files_that_are_none(fails, tmp_path):
    assert "no such file" in fails("sweep", tmp_path / "none.toml", "--dry-run")
    assert "Is a directory" in fails("sweep", tmp_path, "--dry-run")
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe, not a file" in fails("sweep", tmp_path / "pipe", "--dry-run")
    (tmp_path / "bad.toml").write_text("[space\nlr = 1")
    assert "not a TOML file" in fails("sweep", tmp_path / "bad.toml", "--dry-run")
    assert "not the directory of a sweep" in fails("sweep", "--resume", tmp_path)
    assert "give the file of a new sweep" in fails("sweep")
    assert "unknown choice of --engine 'cereal'" in fails(
        "sweep", write_plan(tmp_path / "good.toml"), "--engine", "cereal"
    )
    assert "--parallel must be at least 0" in fails("sweep", tmp_path / "good.toml", "--parallel", "-1")


def write_plan(path):
    path.write_text('[train]\ntask = "hopper-medium-v2"\n[space]\nlr = [0.1]')
    return path


def test_dry_run_prints_the_trials(small, as_file, capsys):
    assert main(["sweep", str(as_file(small())), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == ["   0  lr 0.001", "   1  lr 0.0003", "   2  lr 0.0001"]


def test_tasks_without_data_are_named_before_anything_runs(small, as_file, fails, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("EDP_DATA", str(tmp_path))
    monkeypatch.setenv("EDP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    plan = small(space={"task": ["walker2d-medium-v2", "pen-human-v1"]})
    del plan["train"]["data"]
    assert "walker2d-medium-v2: walker2d_medium-v2.hdf5 is not in" in fails(
        "sweep", as_file(plan), "--engine", "serial", "--out", tmp_path / "out"
    )
    assert not (tmp_path / "out").exists()
    assert main(["sweep", str(tmp_path / "plan.toml"), "--dry-run"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert [line.split(":")[1].strip() for line in said.err.splitlines()] == ["walker2d-medium-v2", "pen-human-v1"]


@pytest.mark.parametrize("missing", ["ray", "optuna"])
def test_without_the_extra_one_line_says_what_to_install(small, as_file, fails, monkeypatch, tmp_path, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    search = {"method": "optuna", "trials": 3} if missing == "optuna" else {}
    line = fails("sweep", as_file(small(search=search)), "--out", tmp_path / "out")
    assert f"{missing.capitalize()} is not installed" in line
    assert 'pip install "edp-rl[sweep]"' in line
    assert not (tmp_path / "out").exists()


def test_choices_are_drawn_evenly():
    rng = np.random.default_rng(0)
    drawn = [Choices(("a", "b")).draw(rng) for _ in range(1000)]
    assert 450 < drawn.count("a") < 550


def test_ray_is_started_here_whatever_the_environment_says(small, as_file, fails, monkeypatch, tmp_path):
    ray, asked = pytest.importorskip("ray"), {}

    def init(**options):
        asked.update(options)
        raise ConnectionError("no")

    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv(LOOPBACK, "0")
    monkeypatch.setattr(ray, "init", init)
    assert "Ray cannot be reached (no)" in fails("sweep", as_file(small()), "--out", tmp_path / "out")
    assert asked["address"] == "local"
    assert not (tmp_path / "out").exists()


def test_a_grid_of_few_whole_numbers_has_as_many_trials_as_numbers(small):
    plan = read_plan(small(space={"calls": {"low": 2, "high": 3, "points": 4}}))
    assert plan.size == len(planned_points(plan)) == 2


def test_columns_of_a_table_by_name_or_as_a_mapping(small):
    named = {"task": "logs.csv", "reward_column": "profit", "observation_columns": ["a", "b"]}
    plan = read_plan(small(train=named, space={"every": ["1min", "5min"]}))
    request = as_request(plan.train | planned_points(plan)[1])
    assert request.columns == {"reward_column": "profit", "observation_columns": ("a", "b"), "every": "5min"}
    assert "every" not in request.options
    mapping = read_plan({"train": {"task": "logs.csv", "columns": {"reward_column": "profit"}}})
    assert as_request(mapping.train).columns == {"reward_column": "profit"}


def test_a_file_with_a_mark_of_its_encoding(tmp_path):
    (tmp_path / "plan.toml").write_text('\ufeff[train]\ntask = "hopper-medium-v2"\n[space]\nlr = [0.1]')
    assert read_plan(tmp_path / "plan.toml").size == 1


def test_options_of_engines_are_checked_before_anything_else(small, as_file, fails):
    file = as_file(small())
    for words in (["--engine", "cereal"], ["--parallel", "-3"], ["--engine", "serial", "--dashboard"]):
        fails("sweep", file, "--dry-run", *words)


def test_ray_that_was_imported_before_is_not_started_for_other_machines(small, as_file, fails, monkeypatch, tmp_path):
    pytest.importorskip("ray")
    monkeypatch.delenv(LOOPBACK, raising=False)
    assert "would listen to other machines" in fails("sweep", as_file(small()), "--out", tmp_path / "out")


def test_an_address_where_nothing_answers(small, as_file, fails, tmp_path):
    pytest.importorskip("ray")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        line = fails("sweep", as_file(small()), "--address", address, "--out", tmp_path / "out")
    assert f"Ray cannot be reached at {address}" in line
