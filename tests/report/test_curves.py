"""Which curves share a chart."""

import pytest
from fake import change_config, entries, make, make_own, write

from edp.report.curves import OFFLINE, task_charts


def charts(*folders):
    """The numbers of the runs in each chart, and the kinds of their curves, by the chart's name."""
    return {
        chart["name"]: [(curve["run"], curve["kind"]) for curve in chart["curves"]]
        for chart in task_charts(entries(*folders))
    }


def test_losses_in_training_and_held_out_are_one_quantity(tmp_path):
    found = charts(make_own(tmp_path / "a"))
    assert found["bc_loss"] == [(0, "training"), (0, "held out")]
    assert found["action distance, std of the data's actions"] == [(0, "")]
    assert len(found) == 7  # and none of the others shares its chart


@pytest.mark.parametrize(
    ("part", "change", "quantity", "names"),
    [
        ("policy", {"prediction": "v"}, "bc_loss", ["bc_loss (prediction noise)", "bc_loss (prediction v)"]),
        ("policy", {"prediction": "v"}, "q_data", ["q_data"]),
        ("data", {"rewards": "raw"}, "q_data", ["q_data (rewards unit)", "q_data (rewards raw)"]),
        ("data", {"rewards": "raw"}, "bc_loss", ["bc_loss"]),
        ("algorithm", {"name": "crr"}, "policy_loss", ["policy_loss (td3bc)", "policy_loss (crr)"]),
        ("algorithm", {"name": "crr"}, "bc_loss", ["bc_loss"]),
        ("algorithm", {"lr": 1.0}, "policy_loss", ["policy_loss"]),
    ],
)
def test_quantities_that_mean_different_things_share_no_chart(tmp_path, part, change, quantity, names):
    first, second = make_own(tmp_path / "a"), make_own(tmp_path / "b")
    for folder in (first, second):
        change_config(folder, "data", rewards="unit")
    change_config(second, part, **change)
    found = {name: runs for name, runs in charts(first, second).items() if name.startswith(quantity)}
    assert list(found) == names
    assert [{run for run, _ in runs} for runs in found.values()] == ([{0}, {1}] if len(names) > 1 else [{0, 1}])


def test_returns_and_normalised_scores_share_no_chart(tmp_path):
    first, second = make(tmp_path / "a"), make(tmp_path / "b", own_task={"min_return": 0.0, "max_return": 100.0})
    found = charts(first, second)
    assert list(found)[:2] == ["normalised score", "return"]
    assert (found["normalised score"], found["return"]) == ([(0, "")], [(1, "")])


def test_values_of_checkpoints_are_a_curve(tmp_path):
    run, other = make_own(tmp_path / "a", seeds=2), make_own(tmp_path / "b")
    rows = [{"step": step, "values": [-1.0, None], "options": {"fqe_discount": 0.9}} for step in (2000, 1000)]
    write(run / "offline.jsonl", [{"step": 500, "values": [9.0, 9.0], "options": {"fqe_discount": 0.5}}, *rows])
    chart, *_ = task_charts(entries(run, other))
    assert chart["name"] == f"{OFFLINE}, units of the reward"
    (curve,) = chart["curves"]
    assert (curve["run"], curve["steps"], curve["mean"]) == (0, [1000, 2000], [-1.0, -1.0])
