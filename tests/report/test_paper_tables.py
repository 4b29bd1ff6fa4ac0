"""The paper's tables, with ours beside them."""

import pytest
from fake import change_config, column_after, make

from edp.report.collect import read_runs
from edp.report.markup import latex, markdown
from edp.report.paper_tables import paper_table, paper_tables
from edp.report.published import COLUMNS, PUBLISHED_TABLES


def row_of(table, name):
    (row,) = [row for row in table.rows if row[0].text == name]
    return dict(zip(table.columns, [cell.text for cell in row], strict=False))


@pytest.mark.parametrize("name", COLUMNS)
def test_every_number_of_the_paper_is_in_its_table(name):
    table = paper_table(name, [])
    for task, numbers in PUBLISHED_TABLES[name]["rows"].items():
        shown = [row_of(table, task)[column] for column in PUBLISHED_TABLES[name]["columns"]]
        assert shown == ["" if number is None else f"{number:.1f}" for number in numbers]
    ours = [i for i, column in enumerate(table.columns) if column == "ours"]
    assert ours
    assert all(row[i].text == "" for row in table.rows for i in ours)  # empty, because there is no run


def test_runs_are_found_for_their_columns(tmp_path):
    make(tmp_path / "edp", level=90)
    make(tmp_path / "iql", algorithm="iql", level=60)
    chain = make(tmp_path / "dql", level=20)
    change_config(chain, "policy", train_action="chain", sampler="ddpm")
    make(tmp_path / "imitation", level=99, regenerated=True)
    entries = read_runs([tmp_path])
    task = "hopper-medium-v2"
    first = lambda name, column: float(column_after(paper_table(name, entries), column, task).split()[0])  # noqa: E731
    assert first("overall", "TD3+BC EDP") == pytest.approx(85, abs=8)
    assert first("overall", "IQL EDP") == pytest.approx(57, abs=6)
    assert first("reproduce", "EDP") > first("overall", "TD3+BC EDP")  # the best is not the average
    assert first("reproduce", "DQL (JAX)") == pytest.approx(20, abs=6)
    assert column_after(paper_table("overall", entries), "CRR EDP", task) == ""


def test_tables_show_tasks_and_columns_with_runs_alone(tmp_path):
    found = {table.title.partition(":")[0]: table for table in paper_tables(read_runs([make(tmp_path / "a").parent]))}
    assert list(found) == [f"The paper's Table {number}" for number in (2, 4, 5, 6, 7)]  # 3 has other tasks
    overall = found["The paper's Table 2"]
    assert [row[0].text for row in overall.rows] == ["hopper-medium-v2"]
    assert overall.columns.count("ours") == 1 and overall.columns[overall.columns.index("ours") - 1] == "TD3+BC EDP"
    assert all(cell.text for row in overall.rows for cell in row)


def test_one_sentence_if_there_is_no_run_to_compare(tmp_path):
    for folders in ([], [make(tmp_path / "a", regenerated=True)]):
        (table,) = paper_tables(read_runs(folders))
        assert table.rows == [] and "None of these runs can be put beside the paper's numbers" in table.notes[0]
        assert markdown(table).count("\n") < 6 and "|" not in markdown(table)
        assert "tabular" not in latex(table)


def test_domains_and_hyper_parameters(tmp_path):
    for kind in ("complete", "partial", "mixed"):
        make(tmp_path / kind, task=f"kitchen-{kind}-v0", level=40)
    first, *_ = found = paper_tables(read_runs([tmp_path]))
    assert first.columns == ["domain", "Diffusion-QL", "DQL (JAX)", "EDP", "ours"]
    ((domain, *numbers, ours),) = ([cell.text for cell in row] for row in first.rows)
    assert domain == "kitchen" and len(numbers) == 3 and 35 < float(ours) < 50
    (hyper,) = [table for table in found if "hyper" in table.title]
    for row in hyper.rows:
        assert [cell.text for cell in row[1::2]] == [cell.text for cell in row[2::2]]  # ours are the paper's
    assert [cell.text for cell in hyper.rows[2]][1:8:2] == ["3e-05", "5", "0.1", "1000"]


def test_averages_follow_their_tasks(tmp_path):
    names = [row[0].text for row in paper_table("overall", []).rows]
    assert names.index("locomotion, average") == 9 and names[-1] == "antmaze, average"


def test_averages_need_every_task_of_a_domain(tmp_path):
    for kind in ("complete", "partial"):
        make(tmp_path / kind, task=f"kitchen-{kind}-v0", algorithm="iql", level=40)
    entries = read_runs([tmp_path])
    assert column_after(paper_table("overall", entries), "IQL EDP", "kitchen, average") == ""
    make(tmp_path / "mixed", task="kitchen-mixed-v0", algorithm="iql", level=70)
    table = paper_table("overall", read_runs([tmp_path]))
    each = [column_after(table, "IQL EDP", f"kitchen-{kind}-v0") for kind in ("complete", "partial", "mixed")]
    average = column_after(table, "IQL EDP", "kitchen, average")
    assert float(average) == pytest.approx(sum(float(text.split()[0]) for text in each) / 3, abs=0.11)
