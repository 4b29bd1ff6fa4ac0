"""edp runs"""

import shutil

import pytest

from edp.cli import main

SMALL = [
    *["--steps", "20", "--epoch-steps", "10", "--eval-every", "20", "--episodes", "2", "--hidden", "16,16"],
    *["--policy-target-after", "0", "--seeds", "2", "--seed", "3", "--critic-hidden", "16,16"],
]


@pytest.fixture(scope="module")
def folder(hopper_file, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "r"
    words = ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(out), "--calls", "3", *SMALL]
    assert main([*words, "--checkpoint-every", "10", "--quiet"]) == 0
    return out


def test_edp_runs_lists_good_and_bad(folder, tmp_path, capsys, fails):
    (tmp_path / "runs" / "bad").mkdir(parents=True)
    (tmp_path / "runs" / "bad" / "config.json").write_text("{")
    (tmp_path / "runs" / "good").symlink_to(folder)
    assert main(["runs", str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr().out
    assert "20 of 20" in shown
    assert "finished" in shown
    assert "damaged" in shown
    assert "no such folder" in fails("runs", tmp_path / "nowhere")


def test_edp_runs_has_a_line_for_each_run_on_a_narrow_terminal(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rich.console.Console.width", 80)
    name = "a-run-with-a-long-name-\x1b[31m-that-would-not-fit"
    shutil.copytree(folder, tmp_path / name)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "status.json").write_text("{}")
    assert main(["runs", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b[31m" not in shown
    rows = [line for line in shown.splitlines() if line.startswith((" a-run", " begun"))]
    assert len(rows) == 2 and all(len(row) <= 80 for row in rows)
    assert "finished" in rows[0] and "100%" in rows[0]
    assert "damaged" in rows[1] and "begun: " in shown  # and why, below
