"""The charts of the runs on one task. Only curves of the same quantity share a chart, and so an axis."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from edp.report.collect import Entry
from edp.report.published import PAPER_VALUES
from edp.report.series import DISTANCE, Series, seed_series
from edp.report.tables import flat_options, option_text, score_kind
from edp.runs.scores import LAST, nan_mean, number_table

OFFLINE = "value estimated from the data"
VALUES = ("data.rewards", "algorithm.discount")  # the options that set the scale of values
IMITATION = ("policy.name", "policy.prediction")
# The options that a quantity depends on: with another value of one of them, it is another quantity.
DEPENDS_ON = {
    "bc_loss": IMITATION,
    "critic_loss": ("algorithm.name", *VALUES),
    "value_loss": ("algorithm.name", *VALUES),
    "q_data": VALUES,
    "q_policy": VALUES,
    "conservative_gap": VALUES,
    DISTANCE: (),
}
OTHERS = ("algorithm.name", *IMITATION, *VALUES)
UNITS = {DISTANCE: "std of the data's actions", OFFLINE: "units of the reward"}
FIRST = (OFFLINE, "bc_loss", DISTANCE)  # quantities that are drawn first
NAMES = ("algorithm.name", "policy.name")  # options whose values need no explanation


@dataclass
class RunCurve:
    """A series of one run."""

    quantity: str
    series: Series
    run: int = 0  # its number among the runs on the task
    kind: str = ""  # "held out" or "training", where a run has both
    options: dict[str, Any] = field(default_factory=dict)  # that the quantity depends on
    levels: dict[str, tuple[float, float, float] | None] = field(default_factory=dict)  # RAT and OMS of scores


def task_charts(runs: list[Entry]) -> list[dict[str, Any]]:
    """Arrange the curves of runs on one task: scores first, then a chart for each other quantity."""
    scores, others = [], []
    for number, entry in enumerate(runs):
        scores += [replace(curve, run=number) for curve in [score_curve(entry)] if curve]
        others += [replace(curve, run=number) for curve in other_curves(entry)]
    return [
        {"name": name, "wide": wide, "curves": [curve_json(curve) for curve in curves]}
        for wide, found in ((True, scores), (False, others))
        for name, curves in same_quantities(found).items()
    ]


def same_quantities(curves: list[RunCurve]) -> dict[str, list[RunCurve]]:
    """Group curves by quantity. If the quantity differs between runs, its name says in which option."""
    groups: dict[str, list[RunCurve]] = {}
    quantities = dict.fromkeys(curve.quantity for curve in curves)
    for quantity in sorted(quantities, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST)):
        same = [curve for curve in curves if curve.quantity == quantity]
        differing = [name for name in same[0].options if len({repr(curve.options.get(name)) for curve in same}) > 1]
        for curve in same:
            values = [option_label(name, curve.options.get(name)) for name in differing]
            title = quantity + (f" ({', '.join(values)})" if values else "")
            groups.setdefault(", ".join(filter(None, [title, UNITS.get(quantity)])), []).append(curve)
    return groups


def option_label(name: str, value: Any) -> str:
    text = option_text(value) or "unknown"
    return text if name in NAMES else f"{name.rpartition('.')[2]} {text}"


def score_curve(entry: Entry) -> RunCurve | None:
    """Build the curve of a run's scores. RAT and OMS are first step, last step and score."""
    if entry.curve is None:
        return None
    steps, levels = [int(step) for step in entry.curve.steps], {}
    for name, first, scores in (("oms", steps[0], entry.curve.oms), ("rat", steps[-LAST:][0], entry.curve.rat)):
        level = float(nan_mean(scores))
        levels[name] = (first, steps[-1], level) if np.isfinite(level) else None
    return RunCurve(score_kind([entry]), seed_series(steps, entry.curve.scores), levels=levels)


def other_curves(entry: Entry) -> list[RunCurve]:
    """Build the curves of a run's losses and of its values by offline evaluation."""
    options, curves = PAPER_VALUES | flat_options(entry.config), []  # a run older than an option has the paper's value
    for kind, found in (("training", entry.losses), ("held out", entry.held_out)):
        for name, series in found.items():
            depends = {option: options.get(option) for option in DEPENDS_ON.get(name, OTHERS)}
            both = name in entry.losses and name in entry.held_out
            curves.append(RunCurve(name, series, kind=kind if both else "", options=depends))
    values = number_table([value.values for value in entry.offline], 2)
    if values is not None:
        chosen = flat_options(entry.offline[-1].options)
        depends = {name: chosen.get(name) for name in ("horizon", "fqe_discount", "fqe_penalty")}
        series = seed_series([value.step for value in entry.offline], values)
        curves.append(RunCurve(OFFLINE, series, options=depends))
    return curves


def curve_json(curve: RunCurve) -> dict[str, Any]:
    """Return a curve as the page's script draws it."""
    return {"run": curve.run, "kind": curve.kind, **vars(curve.series), **curve.levels}
