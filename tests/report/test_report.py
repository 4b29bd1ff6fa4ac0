"""Tables and the page, without a browser."""

import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from fake import make, write

from edp.cli import main
from edp.report import collect, summary
from edp.report.page import build, contents
from edp.runs.scores import mean_interval

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


def entries(*folders):
    return collect.read_all(list(folders))


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_scores_are_those_of_all_seeds_beside_the_paper_s(tmp_path):
    make(tmp_path / "a", level=80), make(tmp_path / "b", level=90)
    (row,) = summary.scores(entries(tmp_path)).rows
    curves = [entry.curve for entry in entries(tmp_path)]
    rat = mean_interval(np.concatenate([curve.rat for curve in curves]))
    oms = mean_interval(np.concatenate([curve.oms for curve in curves]))
    assert [cell.text for cell in row] == [
        *("hopper-medium-v2", "td3bc + diffusion", str(rat), str(oms)),
        *("81.9", "98.6", "12,000", "6", "12"),
    ]


def test_runs_with_other_options_are_not_thrown_together(tmp_path):
    first, second = make(tmp_path / "a"), make(tmp_path / "b")
    config = json.loads((second / "config.json").read_text())
    config["algorithm"]["lr"] = 0.01
    (second / "config.json").write_text(json.dumps(config))
    methods = [row[1].text for row in summary.scores(entries(first, second)).rows]
    assert methods == ["td3bc + diffusion (lr 0.0003)", "td3bc + diffusion (lr 0.01)"]
    differing = summary.differences(entries(first, second))
    assert differing.columns == ["run", "algorithm.lr"]
    assert texts(differing) == [["a", "0.0003"], ["b", "0.01"]]


def test_ten_percent_bc_is_not_compared_with_bc(tmp_path):
    folder = make(tmp_path / "a", algorithm="bc", policy="gaussian")
    assert summary.scores(entries(folder)).rows[0][4].text == "52.9"
    config = json.loads((folder / "config.json").read_text())
    config["data"]["best"] = 0.1
    (folder / "config.json").write_text(json.dumps(config))
    assert summary.scores(entries(folder)).rows[0][4].text == ""


def test_methods_stand_side_by_side(tmp_path):
    found = entries(
        make(tmp_path / "a", level=90),
        make(tmp_path / "b", algorithm="iql"),
        make(tmp_path / "c", task="walker2d-medium-v2"),
    )
    table = summary.side_by_side(found)
    assert table.columns == ["RAT", "iql + diffusion", "td3bc + diffusion"]
    assert [row[0].text for row in table.rows] == ["hopper-medium-v2", "walker2d-medium-v2"]
    scores = {(row[0].text, row[1].text): row[2] for row in summary.scores(found).rows}
    assert table.rows[0][2] == scores["hopper-medium-v2", "td3bc + diffusion"]
    assert table.rows[1][1].text == ""
    assert summary.side_by_side(found[:1]).rows == []  # one method is compared with nothing


def test_names_tell_runs_apart(tmp_path):
    make(tmp_path / "x" / "run"), make(tmp_path / "y" / "run"), make(tmp_path / "y" / "other")
    names = [entry.name for entry in collect.read_all([tmp_path / "x", tmp_path / "y", tmp_path / "x" / "run"])]
    assert names == ["x/run", "other", "y/run"]


def damage_config(folder):
    (folder / "config.json").write_text('{"schema": 4, "algo')


def damage_schema(folder):
    (folder / "config.json").write_text('{"schema": 99}')


def damage_types(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"algorithm": 3}))


def remove_config(folder):
    (folder / "config.json").unlink()


@pytest.mark.parametrize("harm", [damage_config, damage_schema, damage_types, remove_config])
def test_a_damaged_run_is_shown_as_such_and_breaks_nothing(tmp_path, harm):
    harm(make(tmp_path / "bad"))
    make(tmp_path / "good")
    found = entries(tmp_path)
    assert [row[-2].text for row in summary.runs(found).rows] == ["damaged", "finished"]
    assert len(summary.scores(found).rows) == 1
    page = build(found, "title")
    assert "2 runs, 1 of them damaged" in page


def test_half_written_and_foreign_lines_are_passed_over(tmp_path):
    folder = make(tmp_path / "a")
    with open(folder / "evaluations.jsonl", "a") as file:
        file.write(
            '{"step": 5, "kind": "training", "scores": "none"}\n{"step": 6, "scores": [[1]]}\n{"step": 13000, "sco'
        )
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 5, "metrics": {"bc_loss": "x", "new": [null, 1, "no"]}}\n{"step": 7, "metrics": 4}\n')
    (entry,) = entries(folder)
    assert not entry.damage
    assert entry.notes == ["1 of 15 lines of evaluations.jsonl cannot be read", "2 evaluation(s) could not be read"]
    assert len(entry.curve.steps) == 12
    build([entry], "title")


def test_a_run_that_has_only_begun(tmp_path):
    folder = make(tmp_path / "a", evaluations=0, state="running")
    assert "<td>killed</td>" in build(entries(folder), "t").replace(' class="killed"', "")  # nobody holds it
    assert texts(summary.scores(entries(folder)))[0][2:4] == ["", ""]


def test_an_older_schema_is_read(tmp_path):
    folder = make(tmp_path / "a")
    config = json.loads((folder / "config.json").read_text())
    config["schema"] = 3
    for name in ("units", "own_task"):
        del config[name]
    (folder / "config.json").write_text(json.dumps(config))
    assert not entries(folder)[0].damage


def test_text_of_a_run_is_text_everywhere(tmp_path):
    folder = make(tmp_path / "a", device=HOSTILE, command=["edp", HOSTILE])
    make(tmp_path / "<b>x")
    config = json.loads((folder / "config.json").read_text())
    config["algorithm"]["name"] = HOSTILE
    (folder / "config.json").write_text(json.dumps(config))
    page = build(entries(tmp_path), HOSTILE)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "<b>" not in page
    assert "<img" not in summary.markdown(summary.scores(entries(tmp_path)))


def test_evaluations_that_are_damaged_show_as_damaged(tmp_path):
    """Lines that are no JSON, or have no step, are none of a crash's doing if they are many."""
    noise, stepless, fine = (make(tmp_path / name) for name in ("a", "b", "c"))
    (noise / "evaluations.jsonl").write_bytes(bytes(range(128, 256)) + b"\n\x00\xff\n")
    rows = [json.loads(line) for line in (stepless / "evaluations.jsonl").read_text().splitlines()]
    write(stepless / "evaluations.jsonl", [row | {"step": str(row["step"])} for row in rows])
    notes = [row[-1].text for row in summary.runs(entries(tmp_path)).rows]
    assert "lines of evaluations.jsonl cannot be read" in notes[0]
    assert notes[1:] == ["12 of 12 lines of evaluations.jsonl cannot be read", ""]
    assert len([row for row in summary.scores(entries(tmp_path)).rows if row[2].text]) == 1 and fine


@pytest.mark.parametrize(
    "part, value",
    [("data", None), ("data", [1]), ("evaluation", None), ("evaluation", "x"), ("training", {"seeds": float("inf")})],
)
def test_an_odd_config_is_damage_of_its_own_run_alone(tmp_path, part, value):
    make(tmp_path / "good")
    odd = make(tmp_path / "odd", algorithm="bc", policy="gaussian")
    config = json.loads((odd / "config.json").read_text())
    config[part] = config[part] | value if isinstance(value, dict) else value
    (odd / "config.json").write_text(json.dumps(config))
    good, bad = entries(tmp_path)
    assert bad.damage and not good.damage
    assert main(["report", str(tmp_path), "--paper", "--out", str(tmp_path / "r.html")]) == 0


def test_numbers_beyond_all_bounds_are_damage(tmp_path, capsys):
    folder = make(tmp_path / "a")
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 13000, "metrics": {"bc_loss": [' + "9" * 400 + "]}}\n")
    config = json.loads((make(tmp_path / "b") / "config.json").read_text())
    config["training"]["steps"] = 0
    (tmp_path / "b" / "config.json").write_text(json.dumps(config))
    found = entries(tmp_path)
    assert "Overflow" in found[0].damage
    assert main(["runs", str(tmp_path)]) == 0


def test_notes_hold_no_marks_of_markdown_and_latex(tmp_path):
    evil = "x\n\\input{secret}<img onerror=1>"
    ends = {"min_return": 0.0, "max_return": 1.0}
    folder = make(tmp_path / "a", task="hopper-medium-v2", own_task=ends)
    config = json.loads((folder / "config.json").read_text()) | {"task": evil}
    (folder / "config.json").write_text(json.dumps(config))
    table = summary.scores(entries(folder))
    table.notes.append(evil)
    assert "\n\\input" not in summary.latex(table) and "<img" not in summary.markdown(table)


def test_columns_of_the_paper_that_would_be_empty_are_left_out(tmp_path):
    known, own = make(tmp_path / "a"), make(tmp_path / "b", file="/data/mine.hdf5")
    assert "paper: best" in summary.tables(entries(known))[0].columns
    table = summary.tables(entries(own))[0]
    assert not [name for name in table.columns if name.startswith("paper")]
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_versions_that_are_the_same_are_told(tmp_path):
    make(tmp_path / "a"), make(tmp_path / "b", device="8 × gpu")
    text = summary.versions(entries(tmp_path))
    assert "jax 0" in text and "python 3" in text and "device" not in text
    assert "With edp " in build(entries(tmp_path), "t")


def test_huge_scores_are_no_scores(tmp_path, recwarn):
    folder = make(tmp_path / "a", evaluations=3, seeds=2)
    rows = [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]
    rows[1]["scores"][0] = [1e300] * 10
    write(folder / "evaluations.jsonl", rows)
    cells = texts(summary.scores(entries(folder)))[0]
    assert all(len(cell) < 30 and "inf" not in cell for cell in cells)
    assert not recwarn.list


def test_oms_is_drawn_where_the_table_has_it(tmp_path):
    found = entries(make(tmp_path / "a"))
    (run,) = contents(found)["tasks"][0]["runs"]
    assert run["oms"][-1] == pytest.approx(summary.scores(found).rows[0][3].value, abs=1e-3)
    assert run["rat"][-1] == pytest.approx(summary.scores(found).rows[0][2].value, abs=1e-3)


def test_markdown_and_latex_hold_the_same_numbers(tmp_path):
    make(tmp_path / "a_b")
    found = entries(tmp_path)
    rat = summary.scores(found).rows[0][2].text
    assert f"| {rat} |" in summary.markdown(summary.scores(found))
    tex = summary.latex(summary.runs(found))
    assert r"a\_b" in tex
    assert tex.count(r"\\") == 2
    for special, escaped in (
        ("50 %", r"50 \%"),
        ("a&b", r"a\&b"),
        ("\\x", r"\textbackslash{}x"),
        ("~", r"\textasciitilde{}"),
        ("[1] <a|b>", r"{[}1] \textless{}a\textbar{}b\textgreater{}"),
        ("*x", "{*}x"),
        ("\x1b[0m", "{[}0m"),
    ):
        assert summary.escaped(special) == escaped
    assert summary.row_text(["<b>&lt;", "*a* `b` [c](d)"]) == r"| &lt;b>&amp;lt; | \*a\* \`b\` [c]\(d) |"


def test_the_command_writes_each_format(tmp_path, monkeypatch, capsys, fails):
    monkeypatch.chdir(tmp_path)
    make(Path("runs/a"))
    assert main(["report"]) == 0
    assert capsys.readouterr().out == "report.html\n"
    assert main(["report", "runs", "--out", "t.tex"]) == 0
    assert r"\begin{table}" in Path("t.tex").read_text()
    assert main(["report", "runs/a", "--format", "md"]) == 0
    assert Path("report.md").read_text().startswith("### Scores")
    assert "a report is html, md or tex, not 'pdf'" in fails("report", "--out", "x.pdf")
    assert "no such folder" in fails("report", "nowhere")
    Path("empty").mkdir()
    assert "no runs in empty" in fails("report", "empty")


def test_the_page_asks_for_nothing_from_elsewhere(tmp_path):
    make(tmp_path / "a")
    page = build(entries(tmp_path), "t")
    for word in ("http://", "https://", "src=", "href=", "@import", "url("):
        assert word not in page.replace("http://www.w3.org/2000/svg", "")  # a name, not a place


def test_two_hundred_runs_are_quick_and_small(tmp_path):
    """Each with 500 evaluations of five seeds."""
    first = make(tmp_path / "0", evaluations=500, seeds=5)
    for number in range(1, 200):
        shutil.copytree(first, tmp_path / str(number))
    start = time.perf_counter()
    page = build(entries(tmp_path), "many")
    seconds = time.perf_counter() - start
    assert len(page) < 10e6
    assert seconds < 10 * slowness(), seconds


def slowness() -> float:
    """How much slower this machine is just now than one that is at rest: it may have other work to do."""
    start = time.perf_counter()
    for _ in range(20):
        json.loads(json.dumps(list(range(100_000))))
    return max(1.0, (time.perf_counter() - start) / 0.25)


def test_scores_that_are_no_numbers_and_foreign_configs_break_nothing(tmp_path):
    run = make(tmp_path / "a", evaluations=2)
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    rows[1]["scores"][0][0] = float("inf")
    (run / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    make(tmp_path / "b", own_task=5)
    found = entries(tmp_path / "a", tmp_path / "b")
    assert "own_task" in found[1].damage and not found[0].damage
    assert "Infinity" not in build(found, "title").split('id="data">')[1].split("</script>")[0]
