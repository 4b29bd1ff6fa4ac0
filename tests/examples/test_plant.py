"""The plant of examples/plant: what `edp data check` says about its log and about ten damaged versions of it."""

import json
import sys
from pathlib import Path

import pytest

from edp.cli import main

PLANT = Path(__file__).parents[2] / "examples" / "plant"
sys.path.insert(0, str(PLANT))

import plant_logs  # noqa: E402

DAMAGES = {
    "newest_first.csv": ("error", "newest_first.csv: the rows are newest first: turn them with"),
    "gaps.csv": ("warning", "gaps in time within episodes: about 360 rows are missing at one each 1 min"),
    "unit_change.csv": ("warning", "observation 'temp_C' is at 33"),
    "stuck_flag.csv": ("warning", "an end stays marked over several rows, which makes 87 episodes of one step"),
    "decimal_comma.csv": ("note", "numbers have decimal commas"),
    "missing_cells.csv": ("error", "38 NaN, Inf or too large numbers in 1 observation column, most in 'level_%'"),
    "two_rows.csv": ("warning", "2 steps in 1 episode: too few to learn from"),
    "packed.csv.gz": ("note", "it is packed with gzip"),
    "file_twice": ("warning", "week.csv has the same content as week (copy).csv"),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plant")
    rows = plant_logs.simulate(days=13)
    (folder / "clean.csv").write_text(plant_logs.text_of(rows), encoding="utf-8")
    plant_logs.write_damaged(rows, folder)
    return folder


def findings(path, capsys, *options):
    code = main(
        ["data", "check", str(path), "--columns", str(PLANT / "columns.toml"), "--no-picture", "--json", *options]
    )
    found = json.loads(capsys.readouterr().out)
    return code, [(finding["level"], finding["what"]) for finding in found["findings"]], found


def test_nothing_is_overwritten_unasked(tmp_path, capsys):
    out, damaged = tmp_path / "mine.csv", tmp_path / "damaged"
    out.write_text("mine", encoding="utf-8")
    words = ["--out", str(out), "--days", "1", "--damaged", str(damaged)]
    with pytest.raises(SystemExit) as stopped:
        plant_logs.main(words)
    assert stopped.value.code == 2
    assert "mine.csv: already exists; choose another name, or replace it with --overwrite" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == "mine" and not damaged.exists()
    for _ in range(2):
        plant_logs.main([*words, "--overwrite"])
    assert out.stat().st_size > 1000 and (damaged / "gaps.csv").exists()


def test_nothing_is_wrong_with_the_sound_log(logs, capsys):
    code, found, about = findings(logs / "clean.csv", capsys)
    assert (code, found) == (0, [])
    names = [column["name"] for column in about["columns"] if column["kind"] == "observation"]
    assert names == ["mode=day", "mode=night", "level_%", "temp_C", "draw_l_min"]


@pytest.mark.parametrize("name", DAMAGES)
def test_every_damage_is_named(logs, name, capsys):
    code, found, _ = findings(logs / name, capsys)
    level, what = DAMAGES[name]
    named = [text for each, text in found if each == level and what in text]
    assert named, found
    assert code == (level != "note")


def test_texts_among_numbers_are_named(logs, fails, capsys):
    message = fails("data", "check", logs / "text_column.csv", "--columns", PLANT / "columns.toml", "--no-picture")
    assert "'Bad Input' in column 'draw_l_min', row 3 (line 5), is not a number: name it in --missing-texts" in message
    options = ["--missing-texts", "Bad Input", "--missing", "ffill"]
    code, found, _ = findings(logs / "text_column.csv", capsys, *options)
    assert (code, found) == (0, [("note", "cells of 'draw_l_min' filled: 27")])


def test_what_is_damaged_can_be_mended_by_options(logs, capsys):
    sound = findings(logs / "clean.csv", capsys)[2]
    turned = findings(logs / "newest_first.csv", capsys, "--newest-first")
    assert turned[:2] == (0, [])
    assert turned[2] | {"name": ""} == sound | {"name": ""}
    code, found, about = findings(logs / "gaps.csv", capsys, "--max-gap", "5min")
    assert code == 0
    assert {level for level, _ in found} <= {"note"}
    assert about["episodes"] > sound["episodes"]
    code, found, about = findings(logs / "missing_cells.csv", capsys, "--missing", "drop")
    assert (code, found[0]) == (0, ("note", "rows left out: 38"))
    assert about["transitions"] == sound["transitions"] - 38
