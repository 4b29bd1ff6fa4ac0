"""edp ablate: scores and pictures over values of an option."""

import json

import numpy as np
from small import LENGTH

from edp.cli import main
from edp.cli.ablate import ACTING
from support.own_data import COLUMNS, flags, write_csv


def test_ablate_writes_scores_and_a_picture_for_every_value(run_folder, fails, monkeypatch):
    monkeypatch.setattr(
        "edp.cli.ablate.ACTING",
        {name: entry._replace(values=entry.values[:2]) for name, entry in ACTING.items()},
    )
    assert "did you mean 'noise'" in fails("ablate", "nois", run_folder)
    assert "varies that option" in fails("ablate", "noise", run_folder, "--initial-noise", "0.5")
    trained = [row for row in evaluations(run_folder) if row["kind"] == "training"]
    for name, entry in ACTING.items():
        assert main(["ablate", name, str(run_folder), "--episodes", "1"]) == 0
        result = json.loads((run_folder / "ablations" / f"{name}.json").read_text(encoding="utf-8"))
        assert result["values"] == list(entry.values[:2])
        assert np.array(result["scores"]).shape == (2, 2, 1)
        assert (run_folder / "ablations" / f"{name}.png").stat().st_size > 5000
    assert evaluations(run_folder)[-1]["options"]["initial_noise"] == 0.2
    assert "noise.json: already exists" in fails("ablate", "noise", run_folder)
    assert [row for row in evaluations(run_folder) if row["kind"] == "training"] == trained


def evaluations(folder):
    return [json.loads(line) for line in (folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()]


def test_own_data_needs_an_environment(tmp_path, fails):
    words = [str(write_csv(tmp_path / "room.csv")), *flags(COLUMNS), "--out", str(tmp_path / "a")]
    assert "room.csv: has no environment to evaluate in: give one with --env" in fails("ablate", "network", *words)
    assert "--env is for your own data" in fails("ablate", "network", "hopper-medium-v2", "--env", "Room-v0")


def test_ablations_that_train_compare_their_variants(hopper_file, tmp_path, capsys, fails):
    words = ["ablate", "network", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(tmp_path / "a"), *LENGTH]
    words += ["--critic-hidden", "16", "--batch-size", "32"]
    assert main([*words, "--seeds", "2"]) == 0
    result = json.loads((tmp_path / "a" / "network.json").read_text(encoding="utf-8"))
    assert result["values"] == ["feed-forward", "twice as wide"]
    assert np.array(result["scores"]).shape == (2, 2, 2)
    assert len(result["steps_per_second"]) == 2
    assert (tmp_path / "a" / "network.png").stat().st_size > 5000
    before = (tmp_path / "a" / "feed-forward" / "metrics.jsonl").stat().st_mtime_ns
    assert "network.json: already exists" in fails(*words, "--seeds", "2")
    assert main([*words, "--seeds", "2", "--overwrite"]) == 0  # nothing is trained again
    assert (tmp_path / "a" / "feed-forward" / "metrics.jsonl").stat().st_mtime_ns == before
    assert "another command" in fails(*words, "--seeds", "3", "--overwrite")
    assert "sets --policy itself" in fails(*words, "--policy", "gaussian")
