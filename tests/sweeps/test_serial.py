"""Sweeps in this process."""

import json
import shutil

import jax
import pytest

import edp
from edp.cli import main
from edp.runs.directory import Run
from edp.runs.sweep import Sweep
from edp.runs.trial_results import ranked, read_result
from edp.sweeps import trial as trials
from edp.training import epoch
from support.own_data import COLUMNS, write_csv
from support.plans import to_toml
from support.small_run import digest


@pytest.fixture
def run(as_file, tmp_path):
    """Runs a plan with the serial engine."""

    def sweep(plan, *words, out=None):
        out = out or tmp_path / "sweep"
        code = main(["sweep", str(as_file(plan)), "--engine", "serial", "--out", str(out), *words])
        return code, Sweep.open(out)

    return sweep


def results(sweep):
    return [read_result(sweep, trial) for trial in sweep.trials()]


def test_trials_are_runs_and_the_best_is_trained_again(small, run, capsys):
    code, sweep = run(small(search={"confirm": 1}))
    assert code == 0
    found = results(sweep)
    assert [each.state for each in found] == ["finished"] * 4
    best = ranked(found[:3], 1)[0].trial
    assert found[3].trial.again == best.number
    assert found[3].trial.values == best.values | {"seed": 2}
    assert Run.open(sweep.run_folder(found[3].trial)).config["training"]["seed"] == 2
    said = capsys.readouterr().out
    assert "trained again with fresh seeds" in " ".join(said.split())
    assert main(["runs", str(sweep.folder)]) == 0
    assert main(["eval", str(sweep.run_folder(best)), "--episodes", "1"]) == 0


def test_a_trial_equals_a_run_of_edp_train(small, run, hopper_file, tmp_path):
    _, sweep = run(small(space={"lr": [1e-3]}))
    train = small()["train"]
    words = [word for name, value in train.items() if name != "task" for word in as_words(name, value)]
    assert main(["train", train["task"], *words, "--lr", "1e-3", "--out", str(tmp_path / "run")]) == 0
    assert digest(tmp_path / "run") == digest(sweep.run_folder(sweep.trials()[0]))


def as_words(name, value):
    return [f"--{name.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, list) else str(value)]


def test_another_learning_rate_is_not_compiled_again(small, tmp_path):
    """JAX counts the programs that it compiles, or loads from the cache on disk."""
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **more: compiled.append(name) if "backend_compile" in name else None
    )
    edp.sweep(small(space={"lr": [1e-3], "clip": 3.0}), tmp_path / "first", engine="serial")
    assert compiled or len(epoch.PROGRAMS)  # other tests may have compiled the same
    compiled.clear()
    space = {"lr": [2e-3, 3e-4], "tau": 0.01, "discount": 0.95, "loss_weight": 0.5, "policy_target_every": 7}
    edp.sweep(small(space=space), tmp_path / "second", engine="serial")
    assert compiled == []
    edp.sweep(small(space={"lr": [1e-3], "critic_hidden": [[8]]}), tmp_path / "third", engine="serial")
    assert compiled


def test_early_stopped_trials_keep_their_checkpoint_and_say_so(small, run, capsys):
    _, sweep = run(small(space={"lr": [1e-3, 1e-8, 1e-7, 1e-2]}, stopping={"first": 20, "factor": 2}))
    found = results(sweep)
    early = [each for each in found if each.state == "stopped early"]
    assert early and len(early) == sum(row["stops"] for row in sweep.rungs())
    for each in early:
        folder = sweep.run_folder(each.trial)
        assert each.step in {int(path.name) for path in (folder / "checkpoints").iterdir() if path.name.isdigit()}
        assert main(["train", "--resume", str(folder)]) == 0  # it can be trained to the end all the same
        assert Run.open(folder).status["state"] == "finished"
    capsys.readouterr()
    main(["runs", str(sweep.folder), "--json"])
    assert {json.loads(line)["state"] for line in capsys.readouterr().out.splitlines()} == {"finished"}


def test_a_killed_sweep_goes_on(small, run, monkeypatch, tmp_path):
    """After an error in the middle of the second trial, the third is not begun; --resume ends all three."""
    plan = small(stopping={"first": 40, "factor": 2})
    _, whole = run(plan, out=tmp_path / "whole")
    seen = []

    def crash(event):
        seen.append(event)
        if len(seen) == 20:
            raise KeyboardInterrupt

    real = trials.train
    monkeypatch.setattr(trials, "train", lambda a, b, c, d, on_event, e: real(a, b, c, d, crash, e))
    code, sweep = run(plan, out=tmp_path / "killed")
    assert code == 130
    assert sum(each.state == "finished" for each in results(sweep)) < 3
    monkeypatch.undo()
    assert main(["sweep", "--resume", str(sweep.folder), "--engine", "serial"]) == 0
    for each, other in zip(results(sweep), results(whole), strict=True):
        assert (each.state, each.step, each.curve) == (other.state, other.step, other.curve)
        assert digest(sweep.run_folder(each.trial)) == digest(whole.run_folder(other.trial))
    assert main(["sweep", "--resume", str(sweep.folder), "--engine", "serial"]) == 0  # nothing is left to do


def test_a_decision_that_a_crash_kept_from_its_run_is_carried_out(small, run):
    """The rung is on disk, and the status is not."""
    _, sweep = run(small(space={"lr": [1e-3, 1e-8, 1e-7]}, stopping={"first": 20, "factor": 2}))
    early = next(each for each in results(sweep) if each.state == "stopped early")
    folder = sweep.run_folder(early.trial)
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps(status | {"state": "running"}))
    assert read_result(sweep, early.trial).state == "killed"
    assert trials.run_trial(sweep.folder, early.trial.number).state == "stopped early"
    assert read_result(sweep, early.trial).step == early.step


def test_failed_trials_do_not_end_the_sweep(small, run, capsys):
    """The second trial asks for more memory than there is, which only shows when it runs."""
    plan = small()
    code, sweep = run(plan)
    assert code == 0
    shutil.rmtree(sweep.run_folder(sweep.trials()[1]))
    (sweep.run_folder(sweep.trials()[1])).mkdir()
    (sweep.run_folder(sweep.trials()[1]) / "something").touch()
    assert main(["sweep", "--resume", str(sweep.folder), "--engine", "serial"]) == 1
    captured = capsys.readouterr()
    assert "trial 1: " in captured.err and "is not a run; move it away" in captured.err
    assert [each.state for each in results(sweep)] == ["finished", "waiting", "finished"]


def test_without_an_environment_trials_are_compared_by_losses_or_by_the_log(
    small, run, fails, as_file, tmp_path, monkeypatch
):
    """Paths of data and columns are relative to where the sweep is started."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "room.csv")
    (tmp_path / "columns.toml").write_text(to_toml({"x": COLUMNS}).removeprefix("[x]\n"))
    train = {key: value for key, value in small()["train"].items() if key not in ("task", "data")}
    train |= {"task": "room.csv", "columns": "columns.toml", "validation": 0.3, "seeds": 1}
    assert "has no environment" in fails(
        "sweep", as_file({"train": train, "space": {"lr": [1e-3]}}), "--engine", "serial", "--out", tmp_path / "no"
    )
    for metric in ("bc_loss", "offline"):
        plan = {"train": train, "space": {"lr": [1e-3, 1e-6]}, "search": {"metric": metric, "confirm": 0}}
        _, sweep = run(plan | {"stopping": {"first": 40, "factor": 2}}, out=tmp_path / metric)
        found = results(sweep)
        assert all(each.value == each.value for each in found)
        assert len(sweep.rungs()) >= 2


def test_optuna_suggests_from_what_came_before(small, run):
    pytest.importorskip("optuna")
    space = [
        {"algo": "td3bc", "lr": {"low": 1e-5, "high": 1e-2, "log": True}, "calls": {"low": 2, "high": 3}},
        {"algo": "bc", "lr": [1e-3, 1e-4], "hidden": [[16], [8, 8]]},
    ]
    plan = small(space=space, search={"method": "optuna", "trials": 4, "confirm": 0})
    plan["train"] |= {"steps": 20, "seeds": 1}
    for name in ("critic_hidden", "eas"):
        del plan["train"][name]
    code, sweep = run(plan)
    assert code == 0
    assert len({json.dumps(trial.values) for trial in sweep.trials()}) == 4
    from edp.sweeps.plan import read_plan
    from edp.sweeps.search import suggest

    known = results(sweep)
    read = read_plan(plan)
    assert suggest(read, 4, known) == suggest(read, 4, known)
    assert suggest(read, 4, known) != suggest(read, 5, known)


def test_optuna_with_spaces_that_have_the_same_options(small, run):
    """A trial is of the space that its values lie in, and none is suggested twice."""
    pytest.importorskip("optuna")
    plan = small(space=[{"lr": [1e-3, 1e-4]}, {"lr": [1e-5, 1e-6]}], search={"method": "optuna", "trials": 4})
    plan["train"] |= {"steps": 20, "seeds": 1}
    code, sweep = run(plan | {"search": plan["search"] | {"confirm": 0}})
    assert code == 0
    assert sorted(trial.values["lr"] for trial in sweep.trials()) == [1e-6, 1e-5, 1e-4, 1e-3]


def test_data_that_changed_since_the_first_trial_is_refused(small, run, tmp_path, capsys):
    write_csv(tmp_path / "room.csv")
    train = {key: value for key, value in small()["train"].items() if key not in ("task", "data")}
    train |= {"task": str(tmp_path / "room.csv"), "columns": COLUMNS, "seeds": 1, "validation": 0.3, "steps": 20}
    _, sweep = run({"train": train, "space": {"lr": [1e-3, 1e-4]}, "search": {"metric": "bc_loss", "confirm": 0}})
    shutil.rmtree(sweep.run_folder(sweep.trials()[1]))
    lines = (tmp_path / "room.csv").read_text().splitlines()
    (tmp_path / "room.csv").write_text("\n".join(lines[:-5]) + "\n")
    assert main(["sweep", "--resume", str(sweep.folder), "--engine", "serial"]) == 1
    assert "room.csv: has changed since the other trials were trained on it" in capsys.readouterr().err
    assert not sweep.run_folder(sweep.trials()[1]).exists()


def test_trials_may_scale_the_same_data_in_different_ways(small, run):
    _, sweep = run(small(train={"steps": 20}, space={"normalise": ["none", "standard"], "rewards": ["raw", "unit"]}))
    assert [each.state for each in results(sweep)] == ["finished"] * 4


def test_an_evaluation_without_any_score_is_told(small, run, monkeypatch, capsys):
    def broken(self, action):
        raise RuntimeError("no power")

    monkeypatch.setattr("gymnasium.envs.mujoco.hopper_v4.HopperEnv.step", broken)
    code, sweep = run(small(space={"lr": [1e-3]}))
    assert "an evaluation has no score" in capsys.readouterr().err
    assert code == 0 and results(sweep)[0].state == "finished"


def test_a_directory_that_is_used_is_refused(small, run, as_file, fails, tmp_path):
    _, sweep = run(small(space={"lr": [1e-3]}))
    line = fails("sweep", as_file(small()), "--engine", "serial", "--out", sweep.folder)
    assert "exists already" in line and f"--resume {sweep.folder}" in line
    with sweep.claimed():
        assert "another process is running this sweep" in fails("sweep", "--resume", sweep.folder, "--engine", "serial")
    (sweep.folder / "sweep.json").write_text("{")
    assert "damaged" in fails("sweep", "--resume", sweep.folder, "--engine", "serial")
