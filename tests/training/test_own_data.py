"""The user's own data, from the file to the policy in use."""

import json
import re
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import edp
from edp.cli import main
from edp.data import formats, tasks
from edp.data.dataset import read_dataset
from edp.errors import UserError
from edp.runs.directory import Run
from support.own_data import COLUMNS, HIGH, LOW, SMALL, flags, write_csv


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A policy of a CSV in physical units, trained without an environment."""
    folder = tmp_path_factory.mktemp("own")
    file = write_csv(folder / "heating.csv")
    mapping = folder / "columns.toml"
    mapping.write_text(
        'observation_columns = ["room_c", "outside_c"]\naction_columns = ["flow_c", "valve_percent"]\n'
        'reward_column = "comfort"\nepisode_column = "day"\naction_low = [18, 0]\naction_high = [75, 100]\n',
        encoding="utf-8",
    )
    out = folder / "run"
    assert main(["train", str(file), "--columns", str(mapping), "--out", str(out), "--seeds", "2", *SMALL]) == 0
    return file, out


def test_the_policy_acts_in_the_units_of_the_data(trained):
    file, out = trained
    data = read_dataset(formats.open_log(str(file), COLUMNS))
    policy = edp.load_policy(out)
    actions = policy.act(data.obs)
    assert actions.shape == (len(data.obs), 2)
    assert (actions >= LOW).all()
    assert (actions <= HIGH).all()
    assert actions[:, 1].max() > 1.5  # not the numbers between -1 and 1 of the network
    assert policy.act(data.obs[0]).shape == (2,)
    assert policy.units.low == tuple(LOW)


def test_training_and_acting_use_the_same_normalisation(trained):
    file, out = trained
    data, policy = read_dataset(formats.open_log(str(file), COLUMNS)), edp.load_policy(out)
    seen = policy.units.observations_to_network(data.obs)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(seen.std(axis=0), 1, atol=1e-5)


def test_without_an_environment_held_out_episodes_tell_how_it_goes(trained, capsys):
    _, out = trained
    first, last = Run.open(out).validations()
    assert (first["step"], last["step"]) == (20, 40)
    assert set(last["metrics"]) >= {"bc_loss", "critic_loss"}
    assert last["metrics"]["bc_loss"][0] < first["metrics"]["bc_loss"][0] * 1.05
    data, policies = last["actions"]["data"], last["actions"]["policy"]
    assert LOW[0] <= data["low"][0] <= data["q05"][0] <= data["mean"][0] <= data["high"][0] <= HIGH[0]
    assert len(policies) == 2
    assert not Run.open(out).evaluations()
    assert main(["runs", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"


def test_it_resumes_as_if_it_had_never_stopped(trained, tmp_path):
    file, out = trained
    again = tmp_path / "again"
    words = ["train", str(file), *flags(COLUMNS), "--action-low", "18,0", "--action-high", "75,100"]
    assert main([*words, "--out", str(again), "--seeds", "2", *SMALL, "--steps", "20"]) == 0
    assert main(["train", "--resume", str(again), "--steps", "40"]) == 0
    for name in ("metrics.jsonl", "validations.jsonl"):
        assert (again / name).read_bytes() == (out / name).read_bytes()


def test_a_run_without_an_environment_says_so(trained, fails):
    _, out = trained
    assert "has no environment to evaluate in: give one with --env" in fails("eval", out)
    assert "no evaluated checkpoint in it yet" in fails("eval", out, "--checkpoint", "best")


def test_it_can_be_valued_offline(trained, capsys):
    _, out = trained
    words = ["--model-steps", "10", "--q-rows", "100", "--replays", "4", "--eas", "1"]
    assert main(["eval", str(out), "--offline", *words]) == 0
    assert "than the log" in capsys.readouterr().out


def test_data_that_moved_or_changed_is_not_taken_for_the_run_s(trained, tmp_path, fails):
    file, out = trained
    other = write_csv(tmp_path / "other.csv", days=11)
    assert "not the data that" in fails("train", "--resume", out, "--steps", "60", "--data", other)
    parquet = tmp_path / "same.parquet"
    assert main(["data", "convert", str(file), str(parquet), *flags(COLUMNS)]) == 0
    assert "--action-columns" in fails("train", parquet, "--action-columns", "none")


def test_an_environment_of_one_s_own_needs_the_user_s_word(trained, fails, tmp_path):
    """A run directory names its environment; the code behind a name is not imported for that."""
    _, out = trained
    copy = tmp_path / "copy"
    copy.mkdir()
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    config["own_task"]["env"] = "antigravity_of_somebody:Env-v0"
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (out / "checkpoints").rename(copy / "checkpoints")
    try:
        assert "was trained with --env antigravity_of_somebody:Env-v0" in fails("eval", copy)
        assert "No module named 'antigravity_of_somebody'" in fails(
            "eval", copy, "--env", "antigravity_of_somebody:Env-v0"
        )
    finally:
        (copy / "checkpoints").rename(out / "checkpoints")


@pytest.fixture
def minari_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def test_a_minari_set_trains_and_is_evaluated_with_its_reference_scores(minari_folder, tmp_path, capsys):
    """Collected with Minari's own collector."""
    import minari

    env = minari.DataCollector(gymnasium.make("Room-v0"))
    returns = []
    for seed in range(4):
        env.reset(seed=seed)
        over, total = False, 0.0
        while not over:
            _, reward, terminal, timeout, _ = env.step(env.action_space.sample())
            over, total = terminal or timeout, total + reward
        returns.append(total)
    env.create_dataset("mine/room-v0", ref_min_score=-60.0, ref_max_score=0.0)
    out = tmp_path / "run"
    assert main(["train", "minari:mine/room-v0", "--out", str(out), *SMALL]) == 0
    said = capsys.readouterr().out
    assert "normalised score" in said
    row = Run.open(out).training_evaluations()[-1]
    np.testing.assert_allclose(np.array(row["scores"]), 100 * (np.array(row["returns"]) + 60) / 60)
    assert row["lengths"] == [[15, 15]]
    assert f"{100 * (np.mean(returns) + 60) / 60:.1f}" in said
    policy = edp.load_policy(out)
    assert policy.dims == (3, 2)  # goal before room: in the order of their names
    assert policy.units.low == tuple(LOW)
    assert main(["eval", str(out), "--episodes", "1"]) == 0


@pytest.mark.parametrize("options", [{"env_id": 1}, {"disable_env_checker": 1}, {"nothing": 3}])
def test_options_of_an_environment_that_it_does_not_have(options, tmp_path, fails):
    log = edp.record("Room-v0", episodes=2)
    file = edp.write(replace(log, env_options=options), tmp_path / "a.hdf5")
    assert "environment 'Room-v0': TypeError" in fails("train", file, "--steps", "10", "--out", tmp_path / "run")


def test_environments_are_not_shown_while_they_are_evaluated():
    log = replace(edp.record("Room-v0", episodes=1), env_options={"render_mode": "human", "goal": 19.0})
    assert json.loads(tasks.own_task("a.hdf5", log, "").env_options) == {"goal": 19.0}


def test_wrong_words_in_python_are_the_user_s_errors_too(trained, tmp_path):
    file, run = trained
    rows = np.zeros((5, 2)), np.zeros((5, 1)), np.zeros(5), np.zeros(5, bool)
    for call, message in (
        (lambda: edp.open_log(file, {"observation_columnz": ["a"]}), "did you mean 'observation_columns'?"),
        (lambda: edp.fit(file, tmp_path / "run", columns=COLUMNS, step=3), "'step': did you mean 'steps'?"),
        (lambda: edp.fit(file, tmp_path / "run", columns=COLUMNS, steps="abc"), "`steps` must be a whole number"),
        (lambda: edp.load_policy(run, easy=3), "'easy': did you mean 'eas'?"),
        (lambda: edp.from_arrays(*rows[:3], None), "arrays: has no terminals"),
        (lambda: edp.from_arrays(*rows[:2], None, rows[3]), "arrays: has no rewards"),
        (lambda: edp.from_arrays(np.zeros(5), *rows[1:]), "observations has shape (5,): give a row for each step"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            call()
    assert not (tmp_path / "run").exists()


def test_data_and_options_that_do_not_go_together(tmp_path, fails):
    file = write_csv(tmp_path / "a.csv")
    assert "which columns are the observations? Say it with --observation-columns" in fails("train", file)
    assert "did you mean 'room_c'?" in fails("train", file, *flags(COLUMNS | {"observation_columns": ("room",)}))
    assert "is already data" in fails("train", file, "--data", file, *flags(COLUMNS))
    assert "--env is for your own data" in fails("train", "hopper-medium-v2", "--env", "Room-v0")
    assert "the data has 2 observations and 2 actions, but Room-v0 has 3 and 2" in fails(
        "train", file, "--env", "Room-v0", *flags(COLUMNS)
    )
    assert "its actions are Discrete" in fails("train", file, "--env", "CartPole-v1", *flags(COLUMNS))
    assert "unknown task 'hoper-medium-v2'" in fails("train", "hoper-medium-v2")
    assert "no such file" in fails("train", tmp_path / "none.csv")
    assert "--n-step has no effect" in fails("train", file, *flags(COLUMNS), "--algo", "bc", "--n-step", "3")
    names = ("observations", "actions", "rewards", "terminals")
    np.savez(tmp_path / "a.npz", **{name: np.zeros((2, 1) if name[0] in "oa" else 2) for name in names})
    assert "--observation-columns is for tables" in fails("train", tmp_path / "a.npz", "--observation-columns", "x")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", [("data", "check"), ("train",)])
def test_places_that_are_no_data(command, tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv.zip", "notes.docx"):
        Path(name).write_text("a\tb\n1\t2\n", encoding="utf-8")
    for name, message in (
        ("nodir/", "nodir/: no such file or folder"),
        ("none.tsv", "none.tsv: no such file"),
        ("a.csv.zip", "a.csv.zip: unpack it first"),
        ("notes.docx", "notes.docx: data is .hdf5, .h5, .npz, .csv, .parquet, .tsv, "),
    ):
        assert message in fails(*command, name)


def test_rewards_that_say_nothing_are_noted(tmp_path, capsys):
    file = write_csv(tmp_path / "a.csv")
    words = flags({name: value for name, value in COLUMNS.items() if name != "reward_column"})
    assert main(["train", str(file), *words, "--out", str(tmp_path / "run"), *SMALL, "--quiet"]) == 0
    assert "every reward is 0: nothing tells good actions from bad ones" in capsys.readouterr().err
