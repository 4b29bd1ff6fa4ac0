"""edp report: its files, and how it fails."""

import json
import os
import time
from pathlib import Path

import pytest
from fake import ablate, make, make_own

from edp.cli import main


def test_the_command_writes_each_format(tmp_path, monkeypatch, capsys, fails):
    monkeypatch.chdir(tmp_path)
    make(Path("runs/a"))
    assert main(["report"]) == 0
    assert capsys.readouterr().out == "report.html\n"
    assert main(["report", "runs", "--out", "t.tex"]) == 0
    assert r"\begin{table}" in Path("t.tex").read_text(encoding="utf-8")
    assert main(["report", "runs/a", "--format", "md"]) == 0
    assert Path("report.md").read_text(encoding="utf-8").startswith("<!-- made by edp -->\n### Scores")
    assert "a report is html, md or tex, not 'pdf'" in fails("report", "--out", "x.pdf")
    assert "no such folder" in fails("report", "nowhere")
    Path("empty").mkdir()
    assert "no runs in empty" in fails("report", "empty")


def test_files_of_the_user_are_not_replaced(tmp_path, monkeypatch, capsys, fails):
    monkeypatch.chdir(tmp_path)
    make(Path("runs/a"), evaluations=2)
    for kind in ("html", "md", "tex"):
        page = Path(f"report.{kind}")
        page.write_text("mine", encoding="utf-8")
        assert f"report.{kind}: already exists" in fails("report", "--format", kind)
        assert page.read_text(encoding="utf-8") == "mine"
        assert main(["report", "--format", kind, "--overwrite"]) == 0
        assert main(["report", "--format", kind]) == 0  # its own page, under its usual name
        assert f"report.{kind}: already exists" in fails("report", "--out", page)
    config = Path("runs/a/config.json").read_bytes()
    words = ["report", "--format", "md", "--overwrite", "--out", "runs/a/config.json"]
    assert "is being read" in fails(*words)
    assert Path("runs/a/config.json").read_bytes() == config


def test_figures_are_not_replaced(tmp_path, monkeypatch, capsys, fails):
    monkeypatch.chdir(tmp_path)
    make(Path("runs/a"), evaluations=2)
    Path("figures").mkdir()
    mine = Path("figures/curves-hopper-medium-v2.png")
    mine.write_text("mine", encoding="utf-8")
    monkeypatch.setattr("edp.cli.report.look_at_all", lambda *_: pytest.fail("policies play before the refusal"))
    words = ["report", "--figures", "figures"]
    assert "curves-hopper-medium-v2.png: already exists" in fails(*words, "--look")
    assert "curves-hopper-medium-v2.png: already exists" in fails(*words)
    assert mine.read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in Path().rglob("*.*") if path.suffix in (".svg", ".html")) == []
    assert main([*words, "--overwrite"]) == 0
    assert mine.read_bytes().startswith(b"\x89PNG")


def test_the_command_adds_them_and_the_speed(tmp_path, monkeypatch, fails, capsys):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "runs" / "a")
    rows = [{"name": "edp", "what": "training", "steps_per_second": 47.25}]
    (tmp_path / "bench.json").write_text(json.dumps({"variants": rows}), encoding="utf-8")
    assert main(["report", "--paper", "--bench", "bench.json", "--out", "all.md"]) == 0
    text = (tmp_path / "all.md").read_text(encoding="utf-8")
    assert "| EDP | 116.21 | 47.2 | 411.79 |\n" in text
    for number in (2, 4, 5, 6, 7):
        assert f"The paper's Table {number}: " in text
    assert "repeats that of CQL" in text
    assert main(["report", "--paper"]) == 0
    assert "Diffusion-QL" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "use it with --paper" in fails("report", "--bench", "bench.json")
    (tmp_path / "bench.json").write_text("[]", encoding="utf-8")
    assert "not a result of edp bench" in fails("report", "--paper", "--bench", "bench.json")
    os.mkfifo("pipe")
    assert "pipe: a pipe, not a file" in fails("report", "--paper", "--bench", "pipe")


def test_the_command_writes_them_again_and_again(tmp_path, monkeypatch, capsys, fails):
    monkeypatch.chdir(tmp_path)
    ablate(make(Path("runs/a"), evaluations=2), "eas")
    Path("runs/a/ablations/broken.json").write_text("{", encoding="utf-8")
    rows = [{"name": "dql", "what": "training", "steps_per_second": 2.0}]
    Path("bench.json").write_text(json.dumps({"variants": rows}), encoding="utf-8")
    assert main(["report", "--paper", "--bench", "bench.json", "--figures", "new/figures"]) == 0
    assert capsys.readouterr().out == "report.html\nnew/figures\n"
    names = ["ablation-eas", "curves-hopper-medium-v2", "domains", "speed"]
    assert sorted(path.name for path in Path("new/figures").glob("*.svg")) == [f"{name}.svg" for name in names]
    assert "ablations/broken.json could not be read" in Path("report.html").read_text(encoding="utf-8")
    assert "cannot write here" in fails("report", "--figures", "bench.json")

    def interrupt(seconds):
        if Path("f/curves-hopper-medium-v2.svg").exists() and not Path("f/ablation-eas.svg").exists():
            raise KeyboardInterrupt
        for path in Path("f").iterdir():
            path.unlink()
        Path("runs/a/ablations/eas.json").unlink(missing_ok=True)

    monkeypatch.setattr(time, "sleep", interrupt)
    main(["report", "--figures", "f", "--watch"])
    assert sorted(path.name for path in Path("f").iterdir()) == [f"curves-hopper-medium-v2.{k}" for k in ("png", "svg")]


def test_figures_of_runs_on_logs_are_none_and_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_own(Path("runs/a"))
    assert main(["report", "--figures", "figures", "--paper"]) == 0
    found = capsys.readouterr()
    assert found.out == "report.html\n" and "no figures" in found.err
    assert not Path("figures").exists()
    assert "None of these runs can be put beside the paper" in Path("report.html").read_text(encoding="utf-8")
