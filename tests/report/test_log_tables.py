"""Tables of runs on logs."""

import json

import pytest
from fake import entries, make, make_own, texts, verdict, write

from edp.report.log_tables import held_out_table, value_table, verdict_table
from edp.report.tables import result_tables


def change_last(folder, **metrics):
    path = folder / "validations.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[-1]["metrics"] |= metrics
    write(path, rows)


def test_a_verdict_has_its_sentence_and_its_numbers(tmp_path):
    run = make_own(tmp_path / "a")
    write(run / "offline.jsonl", [{"step": 9000, "values": [1.0], "verdict": verdict()}])
    table = verdict_table(entries(run, make_own(tmp_path / "b")))
    assert table.lead == ["a: Better by 2 € a day."]
    assert texts(table) == [
        [
            *("a", "log.csv", "td3bc + diffusion", "9,000 steps (the run has 12,000)", "better"),
            *("-8", "-10", "+2 [+0.5, +3.5]", "anna -9, bert -11", "€ a day"),
        ]
    ]
    write(run / "offline.jsonl", [{"step": 12000, "values": [1.0], "verdict": {"sentence": "Who knows?"}}])
    table = verdict_table(entries(run))
    assert table.columns == ["run", "data", "method", "after"] and texts(table)[0][3] == "12,000 steps"


def test_values_without_a_verdict_have_a_table_of_their_own(tmp_path):
    run = make_own(tmp_path / "a")
    write(run / "offline.jsonl", [{"step": 12000, "values": [-1.5, None, -2.5]}])
    found = entries(run)
    assert texts(value_table(found)) == [["a", "log.csv", "td3bc + diffusion", "12,000 steps", "-2"]]
    assert verdict_table(found).rows == []
    assert "edp eval RUN --offline" not in held_out_table(found).notes[0]


def test_held_out_losses_are_beside_those_of_training_at_the_same_step(tmp_path):
    run = make_own(tmp_path / "a", failed=1)
    change_last(run, bc_loss=[0.5, None, 0.7])
    (entry,) = entries(run)
    trained = [row for row in map(json.loads, (run / "metrics.jsonl").open(encoding="utf-8")) if row["step"] == 11000]
    (row,) = held_out_table([entry]).rows
    assert row[3].text == "11,000 steps (the run has 12,000)"
    assert row[4].value == pytest.approx(sum(trained[0]["metrics"]["bc_loss"]) / 3, rel=1e-3)
    assert [cell.value for cell in row[5:]] == pytest.approx([0.6, 2.0])  # without the seed that failed
    assert "edp eval RUN --offline" in held_out_table([entry]).notes[0]


def test_runs_with_scores_are_not_in_the_table_of_losses(tmp_path):
    assert held_out_table(entries(make(tmp_path / "a"))).rows == []


def test_there_are_no_empty_tables_of_scores(tmp_path):
    found = entries(make_own(tmp_path / "a"))
    assert [table.title for table in result_tables(found)] == ["Losses on held-out episodes"]
