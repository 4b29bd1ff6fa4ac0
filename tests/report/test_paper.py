"""The paper's tables, with ours beside them."""

import json

import pytest
from fake import make

from edp.cli import main
from edp.report import collect, columns, paper, summary
from edp.report.published import TABLES


def row_of(table, name):
    (row,) = [row for row in table.rows if row[0].text == name]
    return dict(zip(table.columns, [cell.text for cell in row], strict=False))


def column_after(table, name, task):
    (row,) = [row for row in table.rows if row[0].text == task]
    return row[table.columns.index(name) + 1].text


@pytest.mark.parametrize("name", columns.COLUMNS)
def test_every_number_of_the_paper_is_in_its_table(name):
    table = paper.table(name, [])
    for task, numbers in TABLES[name]["rows"].items():
        shown = [row_of(table, task)[column] for column in TABLES[name]["columns"]]
        assert shown == ["" if number is None else f"{number:.1f}" for number in numbers]
    ours = [i for i, column in enumerate(table.columns) if column == "ours"]
    assert ours
    assert all(row[i].text == "" for row in table.rows for i in ours)  # honestly empty


def test_runs_are_found_for_their_columns(tmp_path):
    make(tmp_path / "edp", level=90)
    make(tmp_path / "iql", algorithm="iql", level=60)
    chain = make(tmp_path / "dql", level=20)
    config = json.loads((chain / "config.json").read_text())
    config["policy"] |= {"train_action": "chain", "sampler": "ddpm"}
    (chain / "config.json").write_text(json.dumps(config))
    make(tmp_path / "imitation", level=99, regenerated=True)
    entries = collect.read_all([tmp_path])
    task = "hopper-medium-v2"
    first = lambda name, column: float(column_after(paper.table(name, entries), column, task).split()[0])  # noqa: E731
    assert first("overall", "TD3+BC EDP") == pytest.approx(85, abs=8)
    assert first("overall", "IQL EDP") == pytest.approx(57, abs=6)
    assert first("reproduce", "EDP") > first("overall", "TD3+BC EDP")  # the best is not the average
    assert first("reproduce", "DQL (JAX)") == pytest.approx(20, abs=6)
    assert column_after(paper.table("overall", entries), "CRR EDP", task) == ""


def changed(folder, part, **options):
    config = json.loads((folder / "config.json").read_text())
    config[part] |= options
    (folder / "config.json").write_text(json.dumps(config))


def test_only_runs_like_the_paper_s_are_beside_it(tmp_path):
    """Diffusion-QL is not EDP, and neither is a run on another file that was called the task's."""
    chain, elsewhere = make(tmp_path / "chain"), make(tmp_path / "elsewhere", file="/data/mine.hdf5")
    changed(chain, "policy", train_action="chain", sampler="ddpm", diffusion_steps=5)
    found = {row[1].text: [cell.text for cell in row[4:6]] for row in summary.scores(collect.read_all([chain])).rows}
    assert list(found.values()) == [["", "95.3"]]  # of Diffusion-QL the paper has the best alone
    (row,) = summary.scores(collect.read_all([elsewhere])).rows
    assert [cell.text for cell in row[4:6]] == ["", ""]
    assert column_after(paper.table("overall", collect.read_all([elsewhere])), "TD3+BC EDP", "hopper-medium-v2") == ""


def test_action_approximation_is_compared_at_the_paper_s_k_by_the_best(tmp_path):
    folder = make(tmp_path / "a", task="walker2d-medium-v2", level=80)
    changed(folder, "policy", sampler="ddpm")
    cell = lambda: column_after(  # noqa: E731
        paper.table("action_approximation", collect.read_all([folder])), "action approximation", "walker2d-medium-v2"
    )
    assert cell() == ""  # K is 1000
    changed(folder, "policy", diffusion_steps=100)
    (row,) = summary.scores(collect.read_all([folder])).rows
    assert cell() == row[3].text != row[2].text


def test_domains_and_hyper_parameters(tmp_path):
    first, *_ = found = paper.tables(collect.read_all([make(tmp_path / "a").parent]))
    assert [cell.text for cell in first.rows[0]] == ["locomotion", "89.4", "89.4", "", "90.3", ""]
    (hyper,) = [table for table in found if "hyper" in table.title]
    for row in hyper.rows:
        assert [cell.text for cell in row[1::2]] == [cell.text for cell in row[2::2]]  # ours are the paper's
    assert [cell.text for cell in hyper.rows[2]][1:8:2] == ["3e-05", "5", "0.1", "1000"]


def test_averages_follow_their_tasks(tmp_path):
    names = [row[0].text for row in paper.table("overall", []).rows]
    assert names.index("locomotion, average") == 9 and names[-1] == "antmaze, average"


def test_averages_need_every_task_of_a_domain(tmp_path):
    for kind in ("complete", "partial"):
        make(tmp_path / kind, task=f"kitchen-{kind}-v0", algorithm="iql", level=40)
    entries = collect.read_all([tmp_path])
    assert column_after(paper.table("overall", entries), "IQL EDP", "kitchen, average") == ""
    make(tmp_path / "mixed", task="kitchen-mixed-v0", algorithm="iql", level=70)
    table = paper.table("overall", collect.read_all([tmp_path]))
    each = [column_after(table, "IQL EDP", f"kitchen-{kind}-v0") for kind in ("complete", "partial", "mixed")]
    average = column_after(table, "IQL EDP", "kitchen, average")
    assert float(average) == pytest.approx(sum(float(text.split()[0]) for text in each) / 3, abs=0.11)


def test_the_command_adds_them_and_the_speed(tmp_path, monkeypatch, fails, capsys):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "runs" / "a")
    rows = [{"name": "edp", "what": "training", "steps_per_second": 47.25}]
    (tmp_path / "bench.json").write_text(json.dumps({"variants": rows}))
    assert main(["report", "--paper", "--bench", "bench.json", "--out", "all.md"]) == 0
    text = (tmp_path / "all.md").read_text()
    assert "| EDP | 116.21 | 47.2 | 411.79 |  |" in text
    for number in range(1, 8):
        assert f"The paper's Table {number}: " in text
    assert "repeats that of CQL" in text
    assert main(["report", "--paper"]) == 0
    assert "Diffusion-QL" in (tmp_path / "report.html").read_text()
    assert "use it with --paper" in fails("report", "--bench", "bench.json")
    (tmp_path / "bench.json").write_text("[]")
    assert "not a result of edp bench" in fails("report", "--paper", "--bench", "bench.json")
