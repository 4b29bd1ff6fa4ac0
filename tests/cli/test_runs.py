"""edp runs: one line for each run, good or bad."""

import json
import shutil

import pytest
from fake import make, make_own, verdict, write

from edp.cli import main


def test_it_lists_good_and_bad(tmp_path, capsys, fails):
    (tmp_path / "runs" / "bad").mkdir(parents=True)
    (tmp_path / "runs" / "bad" / "config.json").write_text("{", encoding="utf-8")
    (tmp_path / "runs" / "good").symlink_to(make(tmp_path / "good"))
    assert main(["runs", str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr().out
    assert "12,000 of 12,000" in shown
    assert "finished" in shown
    assert "damaged" in shown
    assert "no such folder" in fails("runs", tmp_path / "nowhere")


def test_it_has_a_line_for_each_run_on_a_narrow_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rich.console.Console.width", 80)
    name = "a-run-with-a-long-name-\x1b[31m-that-would-not-fit"
    make(tmp_path / name)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "status.json").write_text("{}", encoding="utf-8")
    assert main(["runs", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b[31m" not in shown
    rows = [line for line in shown.splitlines() if line.startswith((" a-run", " begun"))]
    assert len(rows) == 2 and all(len(row) <= 80 for row in rows)
    assert "finished" in rows[0] and "100%" in rows[0]
    assert "damaged" in rows[1] and "begun: " in shown  # and why, below


def test_columns_without_content_are_not_shown(tmp_path, capsys):
    make_own(tmp_path / "a")
    assert main(["runs", str(tmp_path)]) == 0
    head = capsys.readouterr().out.splitlines()[1]
    assert head.replace("┃", " ").split() == ["run", "task", "method", "seeds", "steps", "state"]
    write(tmp_path / "a" / "offline.jsonl", [{"step": 12000, "values": [1.0], "verdict": verdict()}])
    make(tmp_path / "b")
    assert main(["runs", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[1] for name in ("score", "evaluations", "verdict"))
    assert "better" in lines[3] and "better" not in lines[4]


def test_json_has_the_score_and_the_curve_of_a_report(tmp_path, capsys):
    from edp.report.collect import read_run

    folder = make(tmp_path / "a")
    status = json.loads((folder / "status.json").read_text(encoding="utf-8")) | {
        "failed_seeds": {"2": "the loss is NaN"}
    }
    (folder / "status.json").write_text(json.dumps(status), encoding="utf-8")
    assert main(["runs", str(folder), "--json"]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    curve = read_run(folder).curve
    assert curve is not None
    assert row.pop("rat") == pytest.approx(curve.rat.mean())
    assert row.pop("curve") == pytest.approx(curve.scores.mean(axis=1), abs=0.006)
    assert row == {
        "run": str(folder),
        "task": "hopper-medium-v2",
        "algorithm": "td3bc",
        "policy": "diffusion",
        "seeds": 3,
        "steps": 12000,
        "of": 12000,
        "verdict": None,
        "state": "finished",
        "reason": "",
        "failed_seeds": {"2": "the loss is NaN"},
    }
    shutil.rmtree(folder)
    assert main(["runs", str(tmp_path)]) == 0
    assert "no runs in" in capsys.readouterr().out
