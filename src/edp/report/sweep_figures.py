"""Figures of a sweep: the metric over each option, and all options together."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from edp.drawing import BLUE, GREY, LIGHT, ORANGE, SMALL_TEXT, drawing_style, fitted_text, fix_layout
from edp.report.ablations import are_drawable
from edp.report.sweep_results import Range, SweepEntry, are_numbers, value_text
from edp.runs.sweep import EARLY
from edp.runs.trial_results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CATEGORIES = 12  # of numbers without a range; more are drawn on an axis of numbers
MOST_TICKS = 12
MOST_WITH_SEEDS = 200  # trials for which the range of seeds is drawn
WIDE_LOSSES = 30  # ratio of the largest to the smallest loss from which their axis is logarithmic
PALEST = 0.12  # of the colours of lines, the palest are left out


class Axis(NamedTuple):
    """Where the values of an option, or of the metric, are drawn."""

    name: str
    low: float
    high: float
    log: bool = False
    labels: tuple[str, ...] = ()  # of categories, which are drawn at 0, 1, 2, …; empty for numbers

    def place(self, value: Any) -> float:
        """The place of a value; NaN for one that cannot be drawn."""
        if self.labels:
            text = value_text(value)
            return float(self.labels.index(text)) if text in self.labels else math.nan
        return float(value) if are_numbers([value]) and not (self.log and value <= 0) else math.nan

    def share(self, place: float) -> float:
        """The place as a share of the axis: 0 at its low end, 1 at its high end."""
        low, high, at = (math.log(each) for each in (self.low, self.high, place)) if self.log else (*self[1:3], place)
        return (at - low) / (high - low) if high > low else 0.5

    def ticks(self) -> dict[float, str]:
        """The labels of the axis, by place."""
        if self.labels:
            every = -(-len(self.labels) // MOST_TICKS)
            return {float(i): fitted_text(text, 16) for i, text in enumerate(self.labels) if i % every == 0}
        from matplotlib.ticker import LogLocator, MaxNLocator

        locators: list[Any] = [LogLocator(subs=subs) for subs in ((1,), (1, 2, 5))] if self.log else []
        for locator in (*locators, MaxNLocator(4)):
            near = (self.high - self.low) * 1e-6
            found = [float(at) for at in locator.tick_values(self.low, self.high)]
            places = [at for at in found if self.low - near <= at <= self.high + near]
            if len(places) > 2:
                return {at: f"{at:g}" for at in places}
        return {at: f"{at:.4g}" for at in (self.low, self.high)}


def option_axis(entry: SweepEntry, name: str) -> Axis:
    """The axis of an option: of numbers if the plan has a range for it, and of categories if not."""
    values = [each.trial.values[name] for each in entry.results if name in each.trial.values]
    known, labels = entry.ranges.get(name), tuple(dict.fromkeys(map(value_text, in_order(values))))
    if are_numbers(values) and (known or len(labels) > MOST_CATEGORIES):
        low, high, log = known or Range(min(values), max(values), False)
        low, high = min(low, *values), max(high, *values)
        return Axis(name, low, high, log and low > 0)
    return Axis(name, 0, len(labels) - 1, labels=labels)


def in_order(values: list[Any]) -> list[Any]:
    """Sort numbers and lists of numbers by size, and all else as text."""
    by_size = are_numbers(values) or all(isinstance(value, list) and are_numbers(value) for value in values)
    return sorted(values) if by_size else sorted(values, key=value_text)


def metric_axis(entry: SweepEntry, results: list[Result]) -> Axis:
    """The axis of the metric. Losses of very different size are drawn on a logarithmic one."""
    values = [each.value for each in results]
    low, high = min(values), max(values)
    return Axis(entry.metric, low, high, entry.sign < 0 and low > 0 and high > WIDE_LOSSES * low)


def drawn_results(results: list[Result]) -> list[Result]:
    return [each for each in results if are_drawable([each.value])]  # NaN is not


def option_figures(entry: SweepEntry) -> dict[str, "Figure"]:
    """Draw the metric over each option, by the option's name."""
    results = drawn_results(entry.results)
    if not results:
        return {}
    with drawing_style():
        figures = {name: option_figure(entry, option_axis(entry, name), results) for name in entry.varied}
        return {name: fix_layout(figure) for name, figure in figures.items()}


def option_figure(entry: SweepEntry, axis: Axis, results: list[Result]) -> "Figure":
    """Draw a point for each trial: filled if it trained to its end, hollow if not, another if it has fresh seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    fresh = [each for each in drawn_results(entry.again) if each.state == "finished"]
    early = "stopped early" if all(each.state in ("finished", EARLY) for each in results) else "not at its end"
    groups = {
        early: ([each for each in results if each.state != "finished"], "o", "white", BLUE),
        "trained to its end": ([each for each in results if each.state == "finished"], "o", BLUE, BLUE),
        "again with fresh seeds": (fresh, "D", ORANGE, ORANGE),
    }
    for order, (label, (members, marker, face, edge)) in enumerate(groups.items()):
        points = [(each, at) for each in members if not math.isnan(at := shifted_place(axis, each))]
        places, values = [at for _, at in points], [each.value for each, _ in points]
        if points and len(results) <= MOST_WITH_SEEDS:
            low, high = ([end(known_seeds(each)) for each, _ in points] for end in (min, max))
            axes.vlines(places, low, high, color=LIGHT, linewidth=1, zorder=1)
        if points:
            axes.scatter(places, values, 26, face, marker=marker, edgecolors=edge, label=label, zorder=2 + order)
    style_axes(axes, axis, entry, results)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7.5, handletextpad=0.1, columnspacing=1)
    return figure


def style_axes(axes: Any, axis: Axis, entry: SweepEntry, results: list[Result]) -> None:
    """Set scales, ticks and labels."""
    if axis.log:
        axes.set_xscale("log")
    metric, ticks = metric_axis(entry, results), axis.ticks()
    if metric.log:
        axes.set_yscale("log")
        axes.set_yticks(list(metric.ticks()), list(metric.ticks().values()))
    else:
        axes.ticklabel_format(axis="y", useOffset=False)
    slanted = {"rotation": 30, "ha": "right"} if sum(map(len, ticks.values())) > 45 else {}
    axes.set_xticks(list(ticks), list(ticks.values()), **slanted)
    axes.minorticks_off()
    if axis.labels:
        axes.set_xlim(-0.5, len(axis.labels) - 0.5)
    axes.set(xlabel=fitted_text(axis.name, 40), ylabel=fitted_text(entry.measure, 40))
    axes.grid(axis="y", color="0.92")


def shifted_place(axis: Axis, result: Result) -> float:
    """Where a trial is drawn. Trials of one category are drawn side by side."""
    number = result.trial.number if result.trial.again is None else result.trial.again
    shift = 0.3 * ((number * 0.618) % 1 - 0.5) if axis.labels else 0.0
    return axis.place(result.trial.values.get(axis.name)) + shift


def known_seeds(result: Result) -> list[float]:
    return [value for value in result.per_seed if are_drawable([value])] or [result.value]


def parallel_figure(entry: SweepEntry) -> "Figure | None":
    """Draw a line for each trial through its options and its metric; None for fewer than two options or trials."""
    results = drawn_results(entry.results)
    if len(entry.varied) < 2 or len(results) < 2:
        return None
    with drawing_style():
        from matplotlib.figure import Figure

        scales = [*(option_axis(entry, name) for name in entry.varied), metric_axis(entry, results)]
        figure = Figure(figsize=(max(8.5, 1.6 * len(scales)), 3.8), layout="constrained")
        axes = figure.add_subplot()
        for each in reversed(results):  # the best on top
            draw_trial(axes, scales, each, entry.sign)
        for i, scale in enumerate(scales):
            draw_scale(axes, i, scale)
        axes.set_xticks(range(len(scales)), [fitted_text(scale.name, 22) for scale in scales])
        axes.set_xlim(-0.45, len(scales) - 0.8)
        axes.set_ylim(-0.05, 1.05)
        axes.yaxis.set_visible(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        return fix_layout(figure)


def draw_trial(axes: Any, scales: list[Axis], result: Result, sign: int) -> None:
    """Draw the line of a trial, the darker the better, and dashed if it did not train to its end."""
    import matplotlib

    values = [*(result.trial.values.get(scale.name) for scale in scales[:-1]), result.value]
    heights = [scale.share(scale.place(value)) for scale, value in zip(scales, values, strict=True)]
    quality = heights[-1] if sign > 0 else 1 - heights[-1]
    colour = matplotlib.colormaps["viridis_r"](PALEST + (1 - PALEST) * quality)
    width, dashes = (1.8, "-") if result.state == "finished" else (1.0, (0, (4, 2)))
    axes.plot(heights, color=colour, linewidth=width, linestyle=dashes, marker="o", markersize=2.5)


def draw_scale(axes: Any, i: int, scale: Axis) -> None:
    """Draw one of the parallel axes, with its labels at the left."""
    axes.axvline(i, color=GREY, linewidth=0.8, zorder=1)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 0.6}
    for place, text in scale.ticks().items():
        axes.text(i - 0.04, scale.share(place), text, ha="right", va="center", bbox=box, zorder=5, **SMALL_TEXT)
