"""Reading run directories, good and damaged."""

import json

import pytest
from fake import entries, make, write

from edp.cli import main
from edp.report.collect import read_runs
from edp.report.page import build_page
from edp.report.tables import run_table, score_table


def test_names_tell_runs_apart(tmp_path):
    make(tmp_path / "x" / "run"), make(tmp_path / "y" / "run"), make(tmp_path / "y" / "other")
    names = [entry.name for entry in read_runs([tmp_path / "x", tmp_path / "y", tmp_path / "x" / "run"])]
    assert names == ["x/run", "other", "y/run"]


def damage_config(folder):
    (folder / "config.json").write_text('{"schema": 4, "algo', encoding="utf-8")


def damage_schema(folder):
    (folder / "config.json").write_text('{"schema": 99}', encoding="utf-8")


def damage_types(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"algorithm": 3}), encoding="utf-8")


def remove_config(folder):
    (folder / "config.json").unlink()


@pytest.mark.parametrize("harm", [damage_config, damage_schema, damage_types, remove_config])
def test_a_damaged_run_is_shown_as_such_and_breaks_nothing(tmp_path, harm):
    harm(make(tmp_path / "bad"))
    make(tmp_path / "good")
    found = entries(tmp_path)
    assert [row[-2].text for row in run_table(found).rows] == ["damaged", "finished"]
    assert len(score_table(found).rows) == 1
    page = build_page(found, "title")
    assert "2 runs, 1 of them damaged" in page


def test_half_written_and_foreign_lines_are_passed_over(tmp_path):
    folder = make(tmp_path / "a")
    with open(folder / "evaluations.jsonl", "a", encoding="utf-8") as file:
        file.write(
            '{"step": 5, "kind": "training", "scores": "none"}\n{"step": 6, "scores": [[1]]}\n{"step": 13000, "sco'
        )
    with open(folder / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 5, "metrics": {"bc_loss": "x", "new": [null, 1, "no"]}}\n{"step": 7, "metrics": 4}\n')
    (entry,) = entries(folder)
    assert not entry.damage
    assert entry.notes == [
        "2 of 14 lines of metrics.jsonl cannot be read",
        "2 of 15 lines of evaluations.jsonl cannot be read",
        "1 evaluation could not be read",
    ]
    assert len(entry.curve.steps) == 12
    build_page([entry], "title")


def test_a_run_that_has_only_begun(tmp_path):
    folder = make(tmp_path / "a", evaluations=0, state="running")
    assert "<td>killed</td>" in build_page(entries(folder), "t").replace(' class="killed"', "")  # no lock
    assert score_table(entries(folder)).rows == []
    table = score_table(entries(folder, make(tmp_path / "b")))
    assert len(table.rows) == 1 and "Without a score so far: a." in table.notes


def test_an_older_schema_is_read(tmp_path):
    folder = make(tmp_path / "a")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["schema"] = 3
    for name in ("units", "own_task"):
        del config[name]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert not entries(folder)[0].damage


def test_evaluations_that_are_damaged_show_as_damaged(tmp_path):
    """Many lines that are not JSON, or have no step, are not the result of a crash."""
    noise, stepless, fine = (make(tmp_path / name) for name in ("a", "b", "c"))
    (noise / "evaluations.jsonl").write_bytes(bytes(range(128, 256)) + b"\n\x00\xff\n")
    rows = [json.loads(line) for line in (stepless / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()]
    write(stepless / "evaluations.jsonl", [row | {"step": str(row["step"])} for row in rows])
    notes = [row[-1].text for row in run_table(entries(tmp_path)).rows]
    assert "lines of evaluations.jsonl cannot be read" in notes[0]
    assert notes[1:] == ["12 of 12 lines of evaluations.jsonl cannot be read", ""]
    assert len([row for row in score_table(entries(tmp_path)).rows if row[2].text]) == 1 and fine


@pytest.mark.parametrize(
    "part, value",
    [("data", None), ("data", [1]), ("evaluation", None), ("evaluation", "x"), ("training", {"seeds": float("inf")})],
)
def test_an_odd_config_is_damage_of_its_own_run_alone(tmp_path, part, value):
    make(tmp_path / "good")
    odd = make(tmp_path / "odd", algorithm="bc", policy="gaussian")
    config = json.loads((odd / "config.json").read_text(encoding="utf-8"))
    config[part] = config[part] | value if isinstance(value, dict) else value
    (odd / "config.json").write_text(json.dumps(config), encoding="utf-8")
    good, bad = entries(tmp_path)
    assert bad.damage and not good.damage
    assert main(["report", str(tmp_path), "--paper", "--out", str(tmp_path / "r.html")]) == 0


def test_numbers_beyond_all_bounds_are_left_out(tmp_path, capsys):
    folder = make(tmp_path / "a")
    with open(folder / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 13000, "metrics": {"bc_loss": [' + "9" * 400 + "]}}\n")
    config = json.loads((make(tmp_path / "b") / "config.json").read_text(encoding="utf-8"))
    config["training"]["steps"] = 0
    (tmp_path / "b" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = entries(tmp_path)
    assert not found[0].damage
    assert found[0].notes == ["1 of 13 lines of metrics.jsonl cannot be read"]
    assert main(["runs", str(tmp_path)]) == 0


def test_scores_that_are_no_numbers_and_foreign_configs_break_nothing(tmp_path):
    run = make(tmp_path / "a", evaluations=2)
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[1]["scores"][0][0] = float("inf")
    (run / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    make(tmp_path / "b", own_task=5)
    found = entries(tmp_path / "a", tmp_path / "b")
    assert "own_task" in found[1].damage and not found[0].damage
    assert "Infinity" not in build_page(found, "title").split('id="data">')[1].split("</script>")[0]
