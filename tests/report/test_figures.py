"""Figures of runs, and what is drawn in them."""

import json

import numpy as np
import pytest
from fake import ablate, check_svg, entries, figure_texts, make

from edp.drawing import svg
from edp.report.collect import read_run
from edp.report.figures import all_figures


def rates(**training_and_acting: float) -> dict[tuple[str, str], float]:
    """Measured speeds, the same for training and acting."""
    return {
        (name.replace("_", "-"), activity): rate
        for name, rate in training_and_acting.items()
        for activity in ("training", "acting")
    }


RATES = rates(dql=2.0, edp_without_dpm=4.0, edp=30.0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    first, second = make(folder / "runs" / "a"), make(folder / "runs" / "b", task="pen-human-v0", algorithm="iql")
    make(folder / "runs" / "bad").joinpath("config.json").write_text("{", encoding="utf-8")
    for name in ("noise", "eas", "calls", "other", "scale"):
        ablate(first, name)
    ablate(second, "eas", (0.5, 2, 8), seeds=1)
    ablate(second, "network", ("small", "large"))
    return folder / "runs"


@pytest.fixture(scope="module")
def made(runs):
    return all_figures(entries(runs), RATES, paper=True)


def test_every_figure_is_there(made):
    kinds = [f"ablation-{name}" for name in ("eas", "calls", "scale", "noise", "network", "other")]
    assert list(made) == ["curves-hopper-medium-v2", "curves-pen-human-v0", *kinds, "speed", "domains"]


def test_a_curve_has_its_ring_and_its_thick_line(runs, made):
    (axes,) = made["curves-hopper-medium-v2"].axes
    line, ring, thick = axes.lines
    curve = read_run(runs / "a").curve
    assert curve is not None
    np.testing.assert_allclose(line.get_ydata(), curve.scores.mean(axis=1), rtol=1e-3)
    assert ring.get_ydata() == pytest.approx(curve.scores.mean(axis=1).max())
    assert thick.get_xdata().tolist() == [3000, 12000]
    np.testing.assert_allclose(thick.get_ydata(), curve.rat.mean())


def test_an_ablation_has_the_values_of_all_its_runs(made):
    (axes,) = made["ablation-eas"].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "1", "2", "4", "8"]
    first, second = axes.lines
    assert first.get_xdata().tolist() == [1, 2, 3]
    assert first.get_ydata().tolist() == [2.5, 8.5, 14.5]  # means over two seeds of three episodes
    assert second.get_xdata().tolist() == [0, 2, 4]
    assert "values of eas" in figure_texts(made["ablation-eas"])
    assert "eas (the paper's figure 4)" in figure_texts(made["ablation-eas"])


def test_speeds_are_multiples_of_the_same_machine_s_dql(tmp_path, made):
    found = figure_texts(made["speed"])
    for text in ("5.2 × (116.2/s)", "3.3 × (411.8/s)", "1 × (2/s)", "15 × (30/s)"):
        assert text in found
    assert found.count("not measured") == 4  # of two figures: the original, and EDP without action approximation
    without = all_figures(entries(tmp_path), rates(edp=30.0, dql=0.0), paper=True)
    assert figure_texts(without["speed"]).count("not measured") == 10


def test_a_domain_needs_a_run_of_every_task(tmp_path):
    for kind in ("complete", "partial"):
        make(tmp_path / kind, task=f"kitchen-{kind}-v0", algorithm="iql", level=40)
    found = figure_texts(all_figures(entries(tmp_path), paper=True)["domains"])
    assert "2 of\n3 tasks" in found
    assert "kitchen\nother: IQL FF\nEDP: IQL" in found and {"53.3", "59.4"} <= set(found)
    assert not any("locomotion" in text for text in found)  # no runs there
    make(tmp_path / "mixed", task="kitchen-mixed-v0", algorithm="iql", level=40)
    axes = all_figures(entries(tmp_path), paper=True)["domains"].axes[0]
    means = [entry.curve.rat.mean() for entry in entries(tmp_path) if entry.curve]
    assert axes.containers[2].patches[0].get_height() == pytest.approx(np.mean(means), abs=0.01)  # pyright: ignore


def test_more_runs_than_colours_are_the_best_ones(tmp_path):
    for level in range(22):
        make(tmp_path / f"run{level}", level=10 * (level + 1), evaluations=3, seeds=1)
    found = figure_texts(all_figures(entries(tmp_path))["curves-hopper-medium-v2"])
    assert "hopper-medium-v2\nthe 20 of 22 runs with the highest RAT" in found
    shown = [int(text.rpartition("run")[2]) for text in found if text.startswith("td3bc")]
    assert shown == list(range(21, 1, -1))


def test_scores_that_are_none(tmp_path):
    rows = {"a": [[[float("inf")]], [[1.0]], [[1e300]]], "b": [[[None]]] * 3}
    for name, scores in rows.items():
        folder = make(tmp_path / name, evaluations=0, seeds=1)
        lines = [{"kind": "training", "step": i + 1, "scores": each} for i, each in enumerate(scores)]
        (folder / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (figure,) = all_figures(entries(tmp_path)).values()
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[2, 1]]  # pyright: ignore
    check_svg(svg(figure))


def test_nothing_makes_no_figures():
    assert all_figures([], RATES) == {}  # the paper's only if asked for
    assert all_figures([], paper=True) == {}


def test_returns_of_different_tasks_share_no_axis(tmp_path):
    own = {"min_return": 0.0, "max_return": 100.0}
    runs = [make(tmp_path / "a"), make(tmp_path / "b", own_task=own), make(tmp_path / "c", own_task=own)]
    config = json.loads((runs[2] / "config.json").read_text(encoding="utf-8")) | {"task": "other.csv"}
    (runs[2] / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for run in runs:
        ablate(run, "eas")
    found = all_figures(entries(*runs))
    kinds = ["normalised score", "hopper-medium-v2", "other.csv"]
    curves = [*(f"curves-hopper-medium-v2-{kind}" for kind in ("normalised score", "return")), "curves-other.csv"]
    assert list(found) == [*curves, *(f"ablation-eas-{kind}" for kind in kinds)]
    labels = [figure.axes[0].get_ylabel() for figure in found.values()]
    assert labels == ["normalised score", "return", "return"] * 2


def test_an_ablation_of_an_earlier_checkpoint_says_so(tmp_path):
    early, late = make(tmp_path / "early"), make(tmp_path / "late")
    ablate(early, "eas", step=5000), ablate(late, "eas", step=12000)
    found = figure_texts(all_figures(entries(tmp_path))["ablation-eas"])
    assert "td3bc + diffusion, early, after 5,000 of 12,000 steps" in found
    assert "td3bc + diffusion, late" in found
