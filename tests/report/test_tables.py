"""Tables of runs."""

import json

import numpy as np
from fake import change_config, entries, make, texts, write

from edp.report.page import build_page
from edp.report.statistics import mean_interval
from edp.report.tables import common_versions, difference_table, method_table, result_tables, score_table


def test_scores_are_those_of_all_seeds_beside_the_paper_s(tmp_path):
    make(tmp_path / "a", level=80), make(tmp_path / "b", level=90)
    (row,) = score_table(entries(tmp_path)).rows
    curves = [entry.curve for entry in entries(tmp_path)]
    rat = mean_interval(np.concatenate([curve.rat for curve in curves]))
    oms = mean_interval(np.concatenate([curve.oms for curve in curves]))
    assert [cell.text for cell in row] == [
        *("hopper-medium-v2", "td3bc + diffusion", str(rat), str(oms)),
        *("81.9", "98.6", "12,000", "6", "12"),
    ]


def test_runs_with_other_options_are_not_thrown_together(tmp_path):
    first, second = make(tmp_path / "a"), make(tmp_path / "b")
    change_config(second, "algorithm", lr=0.01)
    methods = [row[1].text for row in score_table(entries(first, second)).rows]
    assert methods == ["td3bc + diffusion (lr 0.0003)", "td3bc + diffusion (lr 0.01)"]
    differing = difference_table(entries(first, second))
    assert differing.columns == ["run", "algorithm.lr"]
    assert texts(differing) == [["a", "0.0003"], ["b", "0.01"]]


def test_ten_percent_bc_is_not_compared_with_bc(tmp_path):
    folder = make(tmp_path / "a", algorithm="bc", policy="gaussian")
    assert score_table(entries(folder)).rows[0][4].text == "52.9"
    change_config(folder, "data", best=0.1)
    assert score_table(entries(folder)).rows[0][4].text == ""


def test_methods_stand_side_by_side(tmp_path):
    found = entries(
        make(tmp_path / "a", level=90),
        make(tmp_path / "b", algorithm="iql"),
        make(tmp_path / "c", task="walker2d-medium-v2"),
    )
    table = method_table(found)
    assert table.columns == ["RAT", "iql + diffusion", "td3bc + diffusion"]
    assert [row[0].text for row in table.rows] == ["hopper-medium-v2", "walker2d-medium-v2"]
    scores = {(row[0].text, row[1].text): row[2] for row in score_table(found).rows}
    assert table.rows[0][2] == scores["hopper-medium-v2", "td3bc + diffusion"]
    assert table.rows[1][1].text == ""
    assert method_table(found[:1]).rows == []  # one method is compared with nothing


def test_columns_of_the_paper_that_would_be_empty_are_left_out(tmp_path):
    known, own = make(tmp_path / "a"), make(tmp_path / "b", file="/data/mine.hdf5")
    assert "paper: best" in result_tables(entries(known))[0].columns
    table = result_tables(entries(own))[0]
    assert not [name for name in table.columns if name.startswith("paper")]
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_versions_that_are_the_same_are_told(tmp_path):
    make(tmp_path / "a"), make(tmp_path / "b", device="8 × gpu")
    text = common_versions(entries(tmp_path))
    assert "jax 0" in text and "python 3" in text and "device" not in text
    assert "With edp " in build_page(entries(tmp_path), "t")


def test_huge_scores_are_no_scores(tmp_path, recwarn):
    folder = make(tmp_path / "a", evaluations=3, seeds=2)
    rows = [json.loads(line) for line in (folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[1]["scores"][0] = [1e300] * 10
    write(folder / "evaluations.jsonl", rows)
    cells = texts(score_table(entries(folder)))[0]
    assert all(len(cell) < 30 and "inf" not in cell for cell in cells)
    assert not recwarn.list
