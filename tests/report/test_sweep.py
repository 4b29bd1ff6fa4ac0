"""What a report says of a sweep."""

import builtins
import json
import os
import re
import shutil

import pytest
from fake import HOSTILE, check_svg, entries, figure_texts, make_sweep, texts, write

from edp.cli import main
from edp.drawing import svg
from edp.report.page import build_page
from edp.report.sweep import sweep_parts
from edp.report.sweep_figures import option_axis, option_figures, parallel_figure
from edp.report.sweep_importance import importance_table
from edp.report.sweep_results import read_sweep, read_sweeps
from edp.report.sweep_tables import cost_table, stopping_table, trial_table
from edp.report.sweep_winner import fresh_table, verdict

LR = {"low": 1e-4, "high": 1e-2, "log": True}
SPACE = {"content": {"space": {"lr": LR, "loss-weight": [0.1, 0.5]}}}
EARLY = {"evaluations": 3, "state": "stopped early"}
TRIALS = [
    {"values": {"lr": 1e-3, "loss_weight": 0.5}, "level": 40},
    {"values": {"lr": 1e-2, "loss_weight": 0.5}, "level": 90, **EARLY},
    {"values": {"lr": 2e-4, "loss_weight": 0.1}, "level": 70},
    {"values": {"lr": 3e-4, "loss_weight": 0.1}},
    {"values": {"lr": 5e-4, "loss_weight": 0.1}, "level": 60, "evaluations": 6, "state": "failed"},
]
AGAIN = {"values": TRIALS[2]["values"] | {"seed": 3}, "again": 2}
RUNGS = [(0, 3000, False), (1, 3000, True), (2, 3000, False), (0, 6000, False), (2, 6000, False)]


@pytest.fixture
def sweep(tmp_path):
    return make_sweep(tmp_path / "s", TRIALS, RUNGS, **SPACE)


def page_of(*folders):
    found = read_sweeps(list(folders))
    return build_page(entries(*folders), "t", sweeps={entry.name: sweep_parts(entry) for entry in found})


def headings(page):
    return re.findall(r"<h[23]>(.*?)</h[23]>", page)


def test_trials_are_listed_best_first_and_those_that_did_not_end_after_them(sweep):
    table = trial_table(read_sweep(sweep))
    assert table.columns == ["trial", "lr", "loss_weight", "score", "steps", "state", "minutes"]
    rows = texts(table)
    assert [row[0] for row in rows] == ["2", "0", "1", "4", "3"]
    assert rows[0][1:3] == ["0.0002", "0.1"]
    assert re.fullmatch(r"\d\d\.\d \[\d\d\.\d, \d\d\.\d\]", rows[0][3])
    assert [row[4:6] for row in rows[:3]] == [["12,000 of 12,000", state] for state in ("finished", "finished")] + [
        ["3,000 of 12,000", "stopped early"]
    ]
    assert rows[-1][3:] == ["", "", "waiting", ""]
    assert table.rows[0][-1].value == pytest.approx(12_000 / 50.5 / 60, rel=0.02)


def test_lower_losses_come_first(tmp_path):
    folder = make_sweep(tmp_path / "s", TRIALS, search={"metric": "bc_loss"})
    for number, loss in ((0, 0.02), (1, 0.01), (2, 0.03)):
        write(folder / f"{number:04d}" / "validations.jsonl", [{"step": 3000, "metrics": {"bc_loss": [loss] * 3}}])
    entry = read_sweep(folder)
    assert [each.trial.number for each in entry.results][:3] == [0, 2, 1]
    assert "bc_loss on held-out episodes of 0.0200 [" in verdict(entry)[0]


def test_a_trial_without_fresh_seeds_is_no_winner(sweep):
    page = page_of(sweep)
    assert "The best of 5 trials so far is trial 2 (lr 0.0002, loss_weight 0.1), with a score of " in page
    assert "It was not trained again with fresh seeds" in page
    assert "winner" not in page.split("<script")[0]
    assert "Trained again with fresh seeds" not in headings(page)


@pytest.mark.parametrize("state", ["running", "failed", "stopped"])
def test_fresh_seeds_count_at_their_end(tmp_path, state):
    folder = make_sweep(tmp_path / "s", [*TRIALS, AGAIN | {"level": 99, "state": state}])
    page = page_of(folder)
    assert "winner" not in page.split("<script")[0]
    (row,) = texts(fresh_table(read_sweep(folder)))
    assert row[-1] == ("killed" if state == "running" else state)
    assert "" not in row  # and there is no column for the difference


def test_the_winner_is_shown_with_both_values(tmp_path):
    folder = make_sweep(tmp_path / "s", [*TRIALS, AGAIN | {"level": 65}])
    entry = read_sweep(folder)
    first, *rest = verdict(entry)
    assert first.startswith("The winner is trial 2 (lr 0.0002, loss_weight 0.1). With fresh seeds, its score is ")
    assert rest == []  # far above the second
    table = fresh_table(entry)
    assert table.columns[-4:] == ["in the sweep", "with fresh seeds", "difference", "state"]
    before, after, difference = (cell.value for cell in table.rows[0][-4:-1])
    assert None not in (before, after, difference)
    assert difference == pytest.approx(after - before) and difference < 0  # pyright: ignore
    assert "selection bias" in table.notes[0]
    assert [each.trial.number for each in entry.results].count(5) == 0


def test_a_trial_that_loses_its_lead_is_no_winner(tmp_path):
    folder = make_sweep(tmp_path / "s", [*TRIALS, AGAIN | {"level": 30}])
    page = page_of(folder)
    assert "No trial is confirmed as the best. Trial 2 (lr 0.0002, loss_weight 0.1) had " in page
    assert re.search(r"and is not better than trial 0 with \d\d\.\d\.", page)
    assert "winner" not in page.split("<script")[0]


def test_a_lead_within_the_interval_is_not_certain(tmp_path):
    trials = [{"values": {"lr": lr}, "level": 70, "seeds": 2} for lr in (1e-3, 2e-3)]
    trials.append(trials[0] | {"again": 0, "level": 71})
    entry = read_sweep(make_sweep(tmp_path / "s", trials))
    assert "it is not certain which of the two is better" in " ".join(verdict(entry))
    assert "2 seeds: too few for a reliable comparison" in trial_table(entry).notes[-1]


def test_each_rung_has_its_trials_and_the_saved_steps_are_counted(sweep):
    table = stopping_table(read_sweep(sweep))
    assert texts(table) == [["3,000 steps", "3", "1", "2"], ["6,000 steps", "2", "0", "2"]]
    assert table.lead == [
        "3 trials trained 27,000 steps in all, of 36,000 without early stopping: 25 % of the steps were saved."
    ]


def test_early_stopping_that_did_not_happen(tmp_path):
    assert "What early stopping cut" not in headings(page_of(make_sweep(tmp_path / "off", TRIALS)))
    waiting = make_sweep(tmp_path / "on", TRIALS[3:4], stopping={"first": 3000, "factor": 2})
    assert stopping_table(read_sweep(waiting)).notes == ["No trial has been compared yet: that is after 3,000 steps."]


def test_cost_is_added_up(sweep):
    rows = texts(cost_table(read_sweep(sweep)))
    assert [row[:3] for row in rows] == [
        ["finished", "2", "24,000"],
        ["stopped early", "1", "3,000"],
        ["failed", "1", "6,000"],
        ["all", "4", "33,000"],
    ]
    assert float(rows[-1][3]) == pytest.approx(33_000 / 50.5 / 60, rel=0.02)


def test_axes_are_as_the_plan_says(tmp_path):
    spaces = [{"lr": LR, "hidden": [[16], [64, 64]]}, {"lr": 0.5, "tau": {"low": 0.0, "high": 1.0}}]
    trials = [
        {"values": {"lr": 1e-3, "hidden": [16]}, "level": 40},
        {"values": {"lr": 2e-3, "hidden": [64, 64]}, "level": 50, **EARLY},
        {"values": {"lr": 0.5, "tau": 0.25}, "level": 60},
    ]
    entry = read_sweep(make_sweep(tmp_path / "s", trials, content={"space": spaces}))
    figures = option_figures(entry)
    assert list(figures) == ["lr", "hidden", "tau"]
    scales = {name: figure.axes[0].get_xscale() for name, figure in figures.items()}
    assert scales == {"lr": "log", "hidden": "linear", "tau": "linear"}
    assert option_axis(entry, "lr")[1:3] == (1e-4, 0.5) and option_axis(entry, "hidden").labels == ("16", "64,64")
    for name, figure in figures.items():
        assert {name, "score"} <= set(figure_texts(figure))
        check_svg(svg(figure))
    together = parallel_figure(entry)
    assert together and {"lr", "hidden", "tau", "score"} <= set(figure_texts(together))
    assert "Lines have gaps" in page_of(tmp_path / "s")


def test_early_stopped_trials_are_hollow(sweep):
    (axes,) = option_figures(read_sweep(sweep))["lr"].axes
    groups = {str(each.get_label()): each for each in axes.collections}
    hollow, filled = groups["not at its end"], groups["trained to its end"]
    assert hollow.get_facecolor()[0].tolist() == [1, 1, 1, 1] != filled.get_facecolor()[0].tolist()  # pyright: ignore
    assert sorted(filled.get_offsets()[:, 0].tolist()) == [2e-4, 1e-3]  # pyright: ignore


def test_losses_of_very_different_size_have_a_logarithmic_axis(tmp_path):
    folder = make_sweep(tmp_path / "s", TRIALS[:3], search={"metric": "bc_loss"})
    for number, loss in ((0, 0.02), (1, 4.0), (2, 0.03)):
        write(folder / f"{number:04d}" / "validations.jsonl", [{"step": 3000, "metrics": {"bc_loss": [loss] * 3}}])
    figure = option_figures(read_sweep(folder))["lr"]
    assert figure.axes[0].get_yscale() == "log"
    assert {"0.1", "1"} <= set(figure_texts(figure)) and not any("mathdefault" in text for text in figure_texts(figure))


def test_one_option_has_no_parallel_coordinates_and_no_importance(tmp_path):
    trials = [{"values": {"lr": 1e-3 * (i + 1)}, "level": 40 + i} for i in range(3)]
    assert headings(page_of(make_sweep(tmp_path / "s", trials)))[:4] == ["Sweep s", "Trials", "Each option", "Cost"]


def many_trials(count=8):
    return [
        {"values": {"lr": 1e-4 * 1.7**i, "loss_weight": (0.1, 0.5)[i % 2]}, "level": 20 + 6 * i} for i in range(count)
    ]


def test_the_importance_of_options(tmp_path):
    pytest.importorskip("optuna")
    table = importance_table(read_sweep(make_sweep(tmp_path / "s", many_trials(), **SPACE)))
    assert sorted(row[0] for row in texts(table)) == ["loss_weight", "lr"]
    assert texts(table)[0][0] == "lr"
    assert sum(row[1].value or 0 for row in table.rows) == pytest.approx(1)


def test_the_importance_is_left_out_with_a_reason(tmp_path, monkeypatch):
    few = importance_table(read_sweep(make_sweep(tmp_path / "few", many_trials(5))))
    assert few.rows == [] and "it takes 6 trials that trained to their end, and 5 have" in few.notes[0]
    same = [trial | {"level": 50} for trial in many_trials()]
    assert "all have the same value" in importance_table(read_sweep(make_sweep(tmp_path / "same", same))).notes[0]
    imported = builtins.__import__

    def without_optuna(name, *args, **options):
        if name.partition(".")[0] == "optuna":
            raise ImportError(name)
        return imported(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_optuna)
    missing = importance_table(read_sweep(make_sweep(tmp_path / "missing", many_trials())))
    assert missing.rows == [] and "Optuna is not installed" in missing.notes[0]


def test_damaged_pieces_become_notes(sweep):
    for name in ("trials.jsonl", "rungs.jsonl"):
        with (sweep / name).open("a", encoding="utf-8") as file:
            file.write('[]\n{"number": 9, "ag')
    shutil.rmtree(sweep / "0000")
    (sweep / "0002" / "config.json").write_text("{", encoding="utf-8")
    entry = read_sweep(sweep)
    assert entry.notes == [
        "2 of 7 lines of trials.jsonl cannot be read.",
        "2 of 7 lines of rungs.jsonl cannot be read.",
    ]
    found = {each.trial.number: (each.state, each.reason) for each in entry.results}
    assert found[0] == ("damaged", "its run directory is missing")
    assert found[2][0] == "damaged" and "config.json" in found[2][1]
    assert found[3] == ("waiting", "")
    page = page_of(sweep)
    assert "No trial has a result at its end so far." in page and '<td class="damaged">damaged</td>' in page


PLANS = {
    "half": '{"schema": 1,',
    "list": "[]",
    "other": '{"schema": 99}',
    "keys": '{"schema": 1}',
    "types": '{"schema": 1, "search": {"metric": "score"}, "stopping": 3}',
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_damaged_plan_is_a_note(sweep, plan):
    (sweep / "sweep.json").write_text(PLANS[plan], encoding="utf-8")
    page = page_of(sweep)
    assert headings(page)[:3] == ["Sweep s", "Trials", "Scores"]
    assert "The sweep cannot be shown: " in page


@pytest.mark.parametrize(
    "space", [None, 3, [], ["a"], {"lr": {"low": "x"}}, {"lr": {"low": -1, "high": 1, "log": True}}]
)
def test_an_odd_space_is_no_obstacle(tmp_path, space):
    page = page_of(make_sweep(tmp_path / "s", TRIALS, content={"space": space}))
    assert "Each option" in headings(page)


def test_odd_rows_of_trials_are_passed_over(tmp_path):
    odd = [{"values": {"lr": value, "x": value}, "level": 40 + i} for i, value in enumerate((None, [], {}, True, "a"))]
    odd += [{"values": {"lr": float(text), "x": 1}, "level": 50} for text in ("nan", "inf", "1e300", "-1")]
    folder = make_sweep(tmp_path / "s", odd, [(0, 3, "no"), ("a", 3, True)], content={"space": {"lr": LR, "x": LR}})
    rows = [
        {"number": 20 + i, "name": "0000", "values": {}, "again": again} for i, again in enumerate(([], "a", 99, 20))
    ]
    with (folder / "trials.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    entry = read_sweep(folder)
    assert not entry.damage and len(entry.results) == len(odd) and entry.again == []
    assert "4 trials with fresh seeds left out" in entry.notes[-1]
    page_of(folder)


def test_a_pipe_is_not_waited_for(sweep):
    (sweep / "rungs.jsonl").unlink()
    os.mkfifo(sweep / "rungs.jsonl")
    assert "rungs.jsonl: not a file" in read_sweep(sweep).damage


def test_text_of_a_sweep_is_text(tmp_path):
    trials = [{"values": {HOSTILE: value, "$x_$": i}, "level": 40 + i} for i, value in enumerate((HOSTILE, "b"))]
    page = page_of(make_sweep(tmp_path / HOSTILE.replace("/", "-"), trials))
    assert page.count("<script") == 2 and "<img src=x" not in page


def test_the_command_shows_a_sweep_first(sweep, tmp_path, monkeypatch, capsys, fails):
    monkeypatch.chdir(tmp_path)
    assert main(["report", "s", "--figures", "figures"]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    parts = ["Sweep s", "Trials", "Each option", "All options together", "Importance of the options"]
    assert headings(page)[: len(parts)] == parts
    assert "4 runs, 1 of them stopped early, 1 of them failed" in page
    assert '<td class="stopped early">stopped early</td>' in page
    assert (tmp_path / "figures" / "sweep-s-lr.svg").exists() and (
        tmp_path / "figures" / "sweep-s-options.png"
    ).exists()
    assert main(["report", "s", "--format", "md"]) == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "### Sweep s: trials" in text and "### Sweep s: cost" in text
    assert "is being read" in fails("report", "s", "--out", "s/sweep.json", "--format", "md", "--overwrite")


def test_a_sweep_that_has_not_begun_has_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_sweep(tmp_path / "s", TRIALS[3:4])
    make_sweep(tmp_path / "empty", [])
    for folder in ("s", "empty"):
        assert main(["report", folder]) == 0
        assert headings((tmp_path / "report.html").read_text(encoding="utf-8"))[0] == f"Sweep {folder}"


def test_sweeps_of_the_same_name_are_both_shown(tmp_path):
    folders = [make_sweep(tmp_path / part / "s", TRIALS[:1]) for part in "ab"]
    assert [entry.name for entry in read_sweeps(folders)] == [str(folder) for folder in folders]


def test_runs_lists_the_state(sweep, capsys):
    assert main(["runs", str(sweep)]) == 0
    assert "stopped early" in capsys.readouterr().out


def test_a_trial_without_a_rival_is_no_winner(tmp_path):
    trials = [TRIALS[0], TRIALS[1], AGAIN | {"values": TRIALS[0]["values"], "again": 0, "level": 41}]
    (text,) = verdict(read_sweep(make_sweep(tmp_path / "s", trials)))
    assert text.startswith("Only trial 0 ") and "cannot be compared" in text


def test_tasks_are_not_compared_with_each_other(tmp_path):
    trials = [{"values": {"task": task, "lr": lr}, "level": level} for task, lr, level in TWO_TASKS]
    entry = read_sweep(make_sweep(tmp_path / "s", trials))
    assert [each.trial.number for each in entry.results] == [1, 0, 3, 2]
    said = [text for text in verdict(entry) if text.startswith("The best")]
    assert [re.search(r"of (\d) trials is trial (\d)", text).groups() for text in said] == [("2", "1"), ("2", "3")]  # pyright: ignore


TWO_TASKS = [("easy", 1e-3, 50), ("easy", 1e-4, 80), ("hard", 1e-3, 5), ("hard", 1e-4, 9)]


def test_the_seeds_that_chose_the_best_are_not_mixed_with_fresh_ones(tmp_path):
    page = page_of(make_sweep(tmp_path / "s", [*TRIALS, AGAIN | {"level": 65}]))
    assert "seeds fresh" in page and "seeds first" in page


def test_importance_with_early_stopping_is_that_at_the_first_comparison(tmp_path):
    pytest.importorskip("optuna")
    trials = [{"values": {"lr": lr, "loss_weight": 0.1 * i}, "level": 10 * i, **EARLY} for i, lr in enumerate(RATES)]
    folder = make_sweep(tmp_path / "s", trials, stopping={"first": 3000, "factor": 2})
    table = importance_table(read_sweep(folder))
    assert len(table.rows) == 2 and "the values of all trials after 3,000 steps" in table.notes[0]


RATES = [1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 4e-3, 1e-2]
