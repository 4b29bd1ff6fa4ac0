"""edp train: what it leaves behind, what it prints, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from small import TINY

from edp.cli import main
from support.own_data import write_csv


def test_a_run_directory_holds_config_metrics_evaluations_and_checkpoint(run_folder, hopper_file):
    config = json.loads((run_folder / "config.json").read_text(encoding="utf-8"))
    assert config["task"] == "hopper-medium-v2"
    assert config["algorithm"]["name"] == "td3bc"
    assert config["policy"]["calls"] == 3
    assert config["file"] == str(hopper_file)
    assert (config["origins"]["calls"], config["origins"]["lr"]) == ("user", "preset quick")
    metrics = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["step"] for row in metrics] == [10, 20, 30]
    assert all(len(values) == 2 for row in metrics for values in row["metrics"].values())
    evaluations = [
        json.loads(line) for line in (run_folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [row["step"] for row in evaluations][:2] == [20, 30]
    assert np.shape(evaluations[0]["returns"]) == (2, 2)
    assert evaluations[0]["seeds"] == [7, 8]


def test_quiet_prints_the_result_only(hopper_file, tmp_path, capsys):
    words = [
        "train",
        "hopper-medium-v2",
        "--data",
        hopper_file,
        "--out",
        tmp_path / "q",
        "--quiet",
        "--policy",
        "deterministic",
    ]
    tiny = [
        word for pair in zip(TINY[::2], TINY[1::2], strict=True) if pair[0] not in ("--calls", "--eas") for word in pair
    ]
    assert main([str(word) for word in words] + tiny) == 0
    out = capsys.readouterr().out
    assert "td3bc + deterministic" in out and "1 seed × 2 episodes" in out
    assert "compiled" not in out


def test_wrong_values_say_what_is_wrong(capsys, hopper_file, tmp_path, fails):
    assert "--steps must be at least 1, not 0" in fails("train", "hopper-medium-v2", "--steps", "0")
    assert "--discount must be from 0.0 to 1.0, not 1.5" in fails("train", "hopper-medium-v2", "--discount", "1.5")
    assert "--lr must be at least 0.0, not nan" in fails("train", "hopper-medium-v2", "--lr", "nan")
    assert "argument --steps: 'many' is not a whole number" in fails("train", "hopper-medium-v2", "--steps", "many")
    assert "required: TASK" in fails("train")
    assert "at most one call a step" in fails(
        "train", "hopper-medium-v2", "--data", hopper_file, "--sampler", "ddpm", "--diffusion-steps", "5"
    )
    words = ["train", "hopper-medium-v2", "--data", hopper_file, "--out", tmp_path / "r"]
    assert "at most one call a step" in fails(*words, "--diffusion-steps", "5", "--act-sampler", "ddim")
    assert "diffusion and flow policies only" in fails(*words, "--policy", "deterministic", "--act-sampler", "ddim")
    assert "--seed must be from 0" in fails(*words, "--seed", "4294967296")
    assert not (tmp_path / "r").exists()


def test_a_data_set_that_does_not_fit_the_task_is_refused(fails, hopper_file, tmp_path):
    line = fails("train", "walker2d-medium-v2", "--data", hopper_file, "--out", tmp_path / "r")
    assert "11 observations and 3 actions" in line
    assert "17 and 6" in line
    assert not (tmp_path / "r").exists()


def test_an_existing_run_is_not_overwritten(run_folder, fails, hopper_file):
    before = (run_folder / "config.json").read_bytes()
    assert "exists already" in fails("train", "hopper-medium-v2", "--data", hopper_file, "--out", run_folder)
    assert (run_folder / "config.json").read_bytes() == before


def test_the_paper_s_scores_stand_beside_runs_like_its_own(hopper_file, capsys, tmp_path):
    data = tmp_path / "hopper_medium-v2.hdf5"  # the name of D4RL's file
    data.write_bytes(hopper_file.read_bytes())
    dql = ["--preset", "dql", "--diffusion-steps", "3", "--eas", "1"]
    for number, (options, paper) in enumerate(((["--preset", "edp"], "81.9; best 98.6"), (dql, "best 95.3"))):
        words = [
            "train",
            "hopper-medium-v2",
            "--data",
            str(data),
            "--out",
            str(tmp_path / str(number)),
            *TINY,
            *options,
        ]
        assert main(words) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "the paper" in line]
        assert f"│ {paper} " in line


def test_print_config_shows_what_few_rows_would_change(capsys):
    assert main(["train", "hopper-medium-v2", "--eas", "4", "--print-config"]) == 0
    shown = capsys.readouterr().out
    assert shown.split()[shown.split().index("--eas") + 1] == "4"
    after = shown.partition("for data with fewer than 20,000 rows, or smooth actions")[2].split()
    assert after == ["--loss-weight", "0.1", "preset", "quick"]
    assert main(["train", "hopper-medium-v2", "--preset", "edp", "--print-config"]) == 0
    assert "fewer than" not in capsys.readouterr().out


def test_print_config_lists_values_and_origins_and_does_nothing_else(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "hopper-medium-v2", "--algo", "iql", "--policy", "gaussian", "--tau", "0.01", "--print-config"]
    assert main([*words, "--preset", "edp"]) == 0
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    origins = {row[0]: (row[1], row[2].strip()) for row in rows if len(row) == 3}
    assert origins["--lr"] == ("0.0003", "domain locomotion")
    assert origins["--tau"] == ("0.01", "command line")
    assert origins["--bc-weight"] == ("0.0", "iql with gaussian")
    assert origins["--expectile"] == ("0.7", "default")
    assert origins["--steps"] == ("2000000", "domain locomotion")
    assert main([*words, "--steps", "5000"]) == 0
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    origins = {row[0]: (row[1], row[2].strip()) for row in rows if len(row) == 3}
    assert origins["--lr"] == ("0.001", "preset quick")
    assert origins["--lr-decay"] == ("5000", "preset quick")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--algo", "iql"], "a resumed run keeps its algorithm: leave --algo out, or start a new run"),
        (["--policy=gaussian"], "a resumed run keeps its policy: leave --policy out, or start a new run"),
        (["--seeds", "3"], "a resumed run keeps its seeds: leave --seeds out, or start a new run"),
        (["--expectile", "0.9"], "a resumed run keeps its options: leave --expectile out, or start a new run"),
        (["--no-fresh-starts"], "a resumed run keeps its options: leave --no-fresh-starts out, or start a new run"),
        (["--columns", "a.toml"], "a resumed run keeps its options: leave --columns out, or start a new run"),
        (["hopper-medium-v2"], "a resumed run keeps its data: leave 'hopper-medium-v2' out (--data says where"),
        (["--stps", "3"], "did you mean '--steps'"),
    ],
)
def test_a_resumed_run_says_what_it_keeps(words, why, tmp_path, fails):
    assert why in fails("train", "--resume", tmp_path, *words)


def test_print_config_names_the_file_of_columns(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(Path("room.csv"))
    lines = ['observation_columns = ["room_c"]', 'action_columns = ["flow_c"]', "action_low = 18", "action_high = 75"]
    Path("columns.toml").write_text("\n".join(lines), encoding="utf-8")
    words = [
        "train",
        "room.csv",
        "--columns",
        "columns.toml",
        "--action-high",
        "80",
        "--action-columns",
        "valve_percent",
    ]
    assert main([*words, "--print-config"]) == 0
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    origins = {row[0]: (row[1], row[2].strip()) for row in rows if len(row) == 3}
    assert origins["--action-low"] == ("18.0", "columns.toml")
    assert origins["--action-high"] == ("80.0", "command line")
    assert origins["--observation-columns"] == ("room_c", "columns.toml")
    assert origins["--action-columns"] == ("valve_percent", "command line")


@pytest.mark.parametrize(
    "name", ["log.txt", "log.xls", "log.zip", "log.hdf5", "log.npz", "nothing.hdf5", "nothing.csv"]
)
def test_a_wrong_file_has_the_same_message_with_columns(name, tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    Path("columns.toml").write_text('observation_columns = ["a"]', encoding="utf-8")
    if name.startswith("log"):
        Path(name).write_text("a,b\n1,2\n", encoding="utf-8")
    for command in (["train", name], ["data", "check", name]):
        assert fails(*command, "--columns", "columns.toml") == fails(*command)


def test_pairs_that_make_no_sense_are_refused_with_the_reason(fails):
    for words, reason in (
        (["--algo", "cql", "--policy", "deterministic", "--entropy", "0.1"], "a deterministic policy has none"),
        (["--algo", "dt", "--policy", "gaussian"], "use --policy transformer"),
        (["--policy", "transformer"], "only --algo dt trains"),
        (["--policy", "deterministic", "--max-q-backup", "10"], "use --policy diffusion or gaussian"),
        (["--preset", "dql", "--policy", "gaussian"], "preset dql sets --sampler"),
        (["--preset", "edp-without-ap", "--algo", "iql"], "does not learn from the policy's actions"),
        (["--likelihood", "elbo"], "does not learn from the policy's likelihoods"),
        (["--algo", "bc", "--eas", "5"], "this algorithm has none: use --eas 1"),
        (["--policy", "deterministic", "--eas", "5"], "this policy has one: use --eas 1"),
        (["--algo", "dt", "--rewards", "min-max"], "use --rewards raw"),
        (["--algo", "dt", "--heads", "3"], "--heads must divide --width"),
        (["--algo", "cql", "--policy", "gaussian", "--no-squash"], "grows without bound"),
        (["--schedule", "cosin", "--print-config"], "did you mean 'cosine'"),
    ):
        assert reason in fails("train", "local/hopper-medium-expert", *words)


@pytest.mark.parametrize(
    "words", [["--algo", "dt", "--context", "3", "--width", "8"], ["--algo", "awr", "--calls", "3"]]
)
def test_data_in_other_forms_trains_too(words, hopper_file, tmp_path):
    """Decision Transformer learns from windows of episodes and AWR from returns: from file to evaluation and back."""
    tiny = ["--steps", "10", "--epoch-steps", "10", "--episodes", "2", "--quiet", "--out", str(tmp_path / "r")]
    assert main(["train", "hopper-medium-v2", "--data", str(hopper_file), *words, *tiny]) == 0
    assert main(["eval", str(tmp_path / "r"), "--episodes", "1"]) == 0
