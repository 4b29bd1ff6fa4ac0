"""What may be resumed: the run, or the sweep, that is asked for. Anything else is refused."""

import json

import pytest
from fake import change_config, make

import edp
from edp.errors import UserError
from edp.runs.sweep import Sweep, Trial
from edp.runs.trial_results import Result
from edp.sweeps.plan import read_plan
from edp.sweeps.run import start_sweep
from edp.sweeps.search import Search, fresh_seeds
from edp.training.request import Request

TASK = "hopper-medium-v2"


@pytest.fixture
def run(tmp_path):
    return make(tmp_path / "run", TASK, origins={"lr": "preset quick", "tau": "preset quick, for smooth actions"})


def test_lists_are_as_good_as_tuples(run):
    hidden = json.loads((run / "config.json").read_text())["policy"]["hidden"]
    for kind in (list, tuple):
        assert Request(TASK, options={"hidden": kind(hidden), "steps": 99_999}).open_same(run).task.name == TASK


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("walker2d-medium-v2"), f"was started with `task={TASK}`, not walker2d-medium-v2"),
        (Request(TASK, preset="edp"), "was not started with `preset=edp`"),
        (Request(TASK, options={"tau": 0.5}), "was started with `tau="),
        (Request(TASK, options={"steps": "many"}), "`steps` must be a whole number, not 'many'"),
        (Request(TASK, options={"tow": 0.5}), "unknown option"),
    ],
    ids=["task", "preset", "option", "steps", "unknown"],
)
def test_a_finished_run_is_not_taken_for_another(run, request_, message):
    with pytest.raises(UserError) as error:
        request_.is_done(run)
    assert message in str(error.value)


def test_a_run_without_a_preset_is_not_one_of_the_recipe(tmp_path):
    run = make(tmp_path / "run", TASK, origins={"lr": "default"})
    with pytest.raises(UserError, match="was not started with `preset=quick`"):
        Request(TASK).is_done(run)
    assert Request(TASK, preset="edp").is_done(run)


def test_a_sweep_goes_on_with_the_same_plan_only(small, tmp_path):
    plan = small()
    start_sweep(read_plan(plan), tmp_path / "sweep")
    with pytest.raises(UserError, match="was started with another plan"):
        edp.sweep(small(space={"lr": [1e-3]}), tmp_path / "sweep", engine="serial", resume=True)
    with pytest.raises(UserError, match="a TOML file or a mapping, not NoneType"):
        edp.sweep(None, tmp_path / "sweep", engine="serial", resume=True)  # pyright: ignore


def test_fresh_seeds_are_those_that_no_trial_has_used(small, tmp_path):
    """Also if seeds are part of the space."""
    sweep = start_sweep(read_plan(small(space={"seed": [0, 1, 7]})), tmp_path / "sweep")
    for number, seed in enumerate([0, 1, 7]):
        trial = sweep.add_trial(Trial(number, f"{number:04d}", {"seed": seed}))
        change_config(make(sweep.run_folder(trial), seeds=2), "training", seed=seed)
    assert fresh_seeds(sweep, sweep.trials()[0]) == {"seed": 9}


def test_the_best_trial_of_each_data_set_is_trained_again(small, tmp_path):
    space = {"task": ["hopper-medium-v2", "walker2d-medium-v2"], "lr": [1e-3, 1e-4]}
    plan = read_plan(small(space=space, search={"confirm": 1}))
    sweep = Sweep.create(tmp_path / "sweep", plan.to_json())
    search, scores = Search(plan, sweep), [50.0, 60.0, 9.0, 8.0]
    results = [Result(search.next([]), "finished", 10, 10, (score,)) for score in scores]
    assert [each.trial.number for each in search.best(results)] == [1, 2]


def test_a_sweep_is_not_made_inside_of_a_run_or_another_sweep(small, run, tmp_path):
    start_sweep(read_plan(small()), tmp_path / "sweep")
    for folder in (run, tmp_path / "sweep"):
        with pytest.raises(UserError, match="is inside of"):
            start_sweep(read_plan(small()), folder / "inner" / "sweep")
        assert not (folder / "inner").exists()


def test_of_several_processes_one_makes_the_sweep(small, tmp_path, monkeypatch):
    """The others see the plan of the first when they have waited for it, and refuse."""
    plan, waits = read_plan(small()), Sweep.check_free.__func__

    def slow(cls, folder):
        waits(cls, folder)
        monkeypatch.setattr(Sweep, "check_free", classmethod(waits))
        start_sweep(plan, folder)

    monkeypatch.setattr(Sweep, "check_free", classmethod(slow))
    with pytest.raises(UserError, match="exists already"):
        Sweep.create(tmp_path / "sweep", plan.to_json())
