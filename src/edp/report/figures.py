"""Figures of runs: learning curves, ablations, and the paper's figures with these runs in them."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp.drawing import COLOURS, drawing_style, fitted_text, fix_layout
from edp.report.ablations import PAPER_FIGURES, Ablation, are_drawable, drawable_numbers, find_ablations
from edp.report.collect import Entry
from edp.report.curves import score_curve
from edp.report.paper_figures import domain_figure, speed_figure
from edp.report.paper_tables import Rates
from edp.report.series import seed_spread
from edp.report.tables import score_kind
from edp.runs.scores import nan_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 20  # in one figure
MOST_TICKS = 25
STEPS_LABEL = "training steps (dotted: best evaluations, OMS; thick: the mean of the last ten, RAT)"


class Line(NamedTuple):
    """A run in a figure. Points without scores are left out."""

    name: str
    places: np.ndarray  # along the horizontal axis
    spread: np.ndarray  # (3, points): mean, lowest and highest of the seeds
    rank: float  # the highest are drawn if there are too many
    oms: tuple[float, float, float] | None = None  # first step, last step, score
    rat: tuple[float, float, float] | None = None
    marked: bool = False  # with a marker at each point
    joined: bool = True  # by a line


def all_figures(
    entries: list[Entry], rates: Rates | None = None, paper: bool = False, with_curves: bool = True
) -> dict[str, "Figure"]:
    """Draw every figure, by name; the paper's only with ``paper``, and its speeds only if ``rates`` were measured.

    An ablation that cannot be read becomes a note of its run.
    """
    known = [entry for entry in entries if not entry.damage]
    figures = {}
    with drawing_style():
        for task in sorted({entry.task for entry in known}) if with_curves else ():
            for kind, runs in same_scores([entry for entry in known if entry.task == task]).items():
                figures[f"curves-{task}{kind}"] = curve_figure(task, runs)
        for name, ablated in find_ablations(known).items():
            runs = [entry for entry, _ in ablated]
            for kind, same in same_scores(runs).items():
                figures[f"ablation-{name}{kind}"] = ablation_figure(name, [each for each in ablated if each[0] in same])
        if paper and rates is not None:
            figures["speed"] = speed_figure(rates)
        if paper:
            figures["domains"] = domain_figure(entries)
        return {name: fix_layout(figure) for name, figure in figures.items() if figure}


def same_scores(runs: list[Entry]) -> dict[str, list[Entry]]:
    """Group runs whose scores can share an axis: normalised scores, or returns on one task. Keys end figures' names."""
    groups: dict[str, list[Entry]] = {}
    several = len({entry.task for entry in runs}) > 1
    for entry in runs:
        kind = score_kind([entry])
        groups.setdefault(f"-{entry.task}" if several and kind == "return" else f"-{kind}", []).append(entry)
    return groups if len(groups) > 1 else {"": runs}


def curve_figure(task: str, runs: list[Entry]) -> "Figure | None":
    """Draw scores over training steps, like the page (the paper's figure 3); None if there are no scores."""
    lines, note = highest_lines([line for entry in runs if (line := curve_line(entry))], "RAT")
    if not lines:
        return None
    figure, axes = figure_with_legend(lines, (fitted_text(task, 80), note), (STEPS_LABEL, score_kind(runs)))
    axes.xaxis.set_major_formatter(step_text)
    for i, line in enumerate(lines):
        draw_line(axes, i, line)
        colour = line_style(i, line)["color"]
        if line.oms:
            axes.plot(line.oms[:2], line.oms[2:] * 2, ":", linewidth=1.2, color=colour)
        if line.rat:
            axes.plot(line.rat[:2], line.rat[2:] * 2, linewidth=4.5, alpha=0.6, solid_capstyle="butt", color=colour)
    axes.set_xlim(left=0)
    return figure


def curve_line(entry: Entry) -> Line | None:
    """Convert the evaluations of a run, as the page has them, to a line; None if no score can be drawn."""
    curve = score_curve(entry)
    if curve is None:
        return None
    series = curve.series
    steps, *spread = (drawable_numbers(numbers) for numbers in (series.steps, series.mean, series.low, series.high))
    known = np.isfinite([steps, *spread]).all(axis=0)
    levels = (curve.levels[name] for name in ("oms", "rat"))
    oms, rat = (level if level and are_drawable(level) else None for level in levels)
    rank = rat[-1] if rat else -np.inf
    if not known.any():
        return None
    return Line(
        f"{entry.method}, {entry.name}",
        steps[known],
        np.array(spread)[:, known],
        rank,
        oms,
        rat,
        marked=known.sum() < 3,
    )


def ablation_figure(name: str, runs: list[tuple[Entry, Ablation]]) -> "Figure":
    """Draw the scores of several runs over the values of an option."""
    task_names = {entry.task for entry, _ in runs}
    title = fitted_text(name, 30) + (f" (the paper's figure {PAPER_FIGURES[name]})" if name in PAPER_FIGURES else "")
    title += f": {fitted_text(next(iter(task_names)), 50)}" if len(task_names) == 1 else ""
    named = [(ablation_name(*each, with_task=len(task_names) > 1), each[1]) for each in runs]
    return value_figure(title, score_kind([entry for entry, _ in runs]), named)


def ablation_name(entry: Entry, ablation: Ablation, with_task: bool) -> str:
    """Name the run of an ablation, and the step after which it was made if the run has another one."""
    at_end = ablation.step in (None, entry.steps)
    after = "" if at_end else f", after {ablation.step:,} of {entry.steps:,} steps"
    return f"{entry.task}: " * with_task + f"{entry.method}, {entry.name}{after}"


def single_ablation_figure(title: str, measure: str, ablation: Ablation) -> "Figure":
    """Draw one ablation: the mean of its seeds, and the range from the lowest to the highest seed."""
    seeds = len(next(iter(ablation.means.values())))
    name = "one seed" if seeds == 1 else f"mean over {seeds} seeds (range: lowest to highest)"
    with drawing_style():
        return fix_layout(value_figure(fitted_text(title, 80), measure, [(name, ablation)]))


def value_figure(title: str, measure: str, named: list[tuple[str, Ablation]]) -> "Figure":
    """Draw scores over evenly spaced values of an option. Lines join numbers, but not words."""
    values = list(dict.fromkeys(value for _, ablation in named for value in ablation.means))
    joined = not any(isinstance(value, str) for value in values)
    values = sorted(values, key=float) if joined else values
    lines, note = highest_lines([ablation_line(name, ablation, values) for name, ablation in named], "mean")
    used = sorted({int(place) for line in lines for place in line.places})
    lines = [line._replace(joined=joined) for line in lines]
    figure, axes = figure_with_legend(lines, (title, note), (fitted_text(named[0][1].label, 80), measure))
    for i, line in enumerate(lines):
        shift = 0.0 if joined else 0.4 * ((i + 0.5) / len(lines) - 0.5)
        draw_line(axes, i, line._replace(places=np.searchsorted(used, line.places) + shift))
    texts = [
        fitted_text(value, 20) if isinstance(value, str) else f"{value:.6g}"
        for value in (values[place] for place in used)
    ]
    every = max(1, -(-len(texts) // MOST_TICKS))
    slanted = {"rotation": 30, "ha": "right"} if sum(map(len, texts[::every])) > 70 else {}
    axes.set_xticks(range(0, len(texts), every), texts[::every], **slanted)
    axes.set_xlim(-0.5, max(1, len(texts)) - 0.5)
    return figure


def ablation_line(name: str, ablation: Ablation, values: list[float | str]) -> Line:
    rows = np.array([ablation.means[value] for value in values if value in ablation.means])
    places = np.array([place for place, value in enumerate(values) if value in ablation.means])
    spread = seed_spread(rows)
    known = np.isfinite(spread[0])
    return Line(name, places[known], spread[:, known], float(nan_mean(spread[0])), marked=True)


def highest_lines(lines: list[Line], measure: str) -> tuple[list[Line], str]:
    """Choose as many lines as one figure can show, and say so in a note if these are not all."""
    if len(lines) <= MOST_LINES:
        return lines, ""
    chosen = sorted(lines, key=lambda line: line.rank, reverse=True)[:MOST_LINES]
    return chosen, f"the {MOST_LINES} of {len(lines)} runs with the highest {measure}"


def figure_with_legend(lines: list[Line], titles: tuple[str, str], labels: tuple[str, str]) -> tuple["Figure", Any]:
    """Make a figure with the legend of these lines at the bottom. The lines are not drawn yet."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    names = [fitted_text(line.name) for line in lines]
    columns = 2 if max(map(len, names)) <= 45 else 1
    figure = Figure(figsize=(7.2, 4 + 0.18 * -(-len(names) // columns)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title("\n".join(filter(None, titles)), fontsize=10)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.grid(axis="y", color="0.92")
    handles = [Line2D([], [], **line_style(i, line)) for i, line in enumerate(lines)]
    numbers = [str(i) for i in range(len(names))]  # Matplotlib leaves out names that begin with "_"
    legend = figure.legend(handles, numbers, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
    return figure, axes


def line_style(i: int, line: Line) -> dict[str, Any]:
    """Choose the style of line ``i``: ten colours, first solid, then dashed."""
    style, marker = ("-", "o") if i < len(COLOURS) else ("--", "D")
    marker = {"marker": marker, "markersize": 4} if line.marked else {}
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": style if line.joined else "", "linewidth": 1.6, **marker}


def draw_line(axes: Any, i: int, line: Line) -> None:
    colour, (mean, low, high) = line_style(i, line)["color"], line.spread
    if line.joined and len(line.places) > 1:
        axes.fill_between(line.places, low, high, color=colour, alpha=0.15, linewidth=0)
    else:
        axes.vlines(line.places, low, high, color=colour, linewidth=1.2)
    axes.plot(line.places, mean, **line_style(i, line))


def step_text(value: float, _: Any = None) -> str:
    """Write a number of steps with k or M."""
    scale, unit = next((pair for pair in ((1e6, "M"), (1e3, "k")) if abs(value) >= pair[0]), (1, ""))
    return f"{value / scale:.4g}{unit}"
