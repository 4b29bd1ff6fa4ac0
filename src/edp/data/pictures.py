"""A page with pictures of a log."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edp.data.health import Health
from edp.data.log import LARGEST, Steps
from edp.data.traces import DrawnColumn, Shades, draw_trace
from edp.data.typical import find_typical
from edp.drawing import BLUE, GREEN, GREY, ORANGE, drawing_style, fitted_text, save_figure
from edp.errors import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 5000  # in the projection
HISTOGRAMS = 12  # of actions, and of observations if there are at most this many
OBSERVATIONS = 40  # bars, or traces
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
WIDTH = 12  # columns of the grid of pictures


def draw_health(health: Health, path: Path, labels: np.ndarray | None = None) -> None:
    """Draw returns, lengths, a projection, and the histogram and the trace of each column on one page.

    ``labels`` tells who acted: a text for each row of ``health.sample``, which is empty if that is not known.
    """
    with drawing_style():
        save_figure(health_figure(health, labels), path)


def health_figure(health: Health, labels: np.ndarray | None = None) -> "Figure":
    from matplotlib.figure import Figure

    assert health.sample is not None
    sample = Steps(*(None if part is None else drawable(part) for part in health.sample))  # pyright: ignore
    typical, shades = find_typical(health, sample, labels), Shades(labels)
    observed, others = drawn_columns(health, sample)
    wide = len(health.columns_of("observation")) > HISTOGRAMS  # too many for histograms
    paired = others if wide else observed + others
    heights = [0.15] * bool(shades.colours) + [1.2]
    first = len(heights)  # row of the grid below the overview
    heights += ([1.2] + [0.8] * -(-len(observed) // 4)) * wide + [1.0] * -(-len(paired) // 2)
    figure = Figure(figsize=(14, 2.2 * sum(heights) + 0.8), layout="constrained")
    grid = figure.add_gridspec(len(heights), WIDTH, height_ratios=heights)
    content = f"{counted(health.rows, 'step')} in {counted(len(health.lengths), 'episode')}"
    ends = f"({health.terminals:,} ended, {health.timeouts:,} cut off)"
    figure.suptitle(f"{fitted_text(Path(health.name).name)}: {content} {ends}\nTraces: {typical.about}", fontsize=12)
    if shades.colours:
        shades.draw_legend(figure.add_subplot(grid[0, :]))
    draw_histogram(figure.add_subplot(grid[first - 1, :4]), health.returns, "return of an episode", "episodes")
    draw_histogram(figure.add_subplot(grid[first - 1, 4:8]), health.lengths, "length of an episode, steps", "episodes")
    draw_projection(figure, grid[first - 1, 8:], sample)
    if wide:
        draw_quantiles(figure.add_subplot(grid[first, :]), sample, [column.name for column in observed])
        for i, column in enumerate(observed):
            place = 3 * (i % 4)
            axes = figure.add_subplot(grid[first + 1 + i // 4, place : place + 3])
            draw_trace(axes, column, typical, sample.ends, shades)
    for i, column in enumerate(paired):
        row, place = len(heights) - -(-len(paired) // 2) + i // 2, 6 * (i % 2)
        name = column.name if column.kind == "reward" else f"{column.kind} {column.name}"
        axes = figure.add_subplot(grid[row, place : place + 2])
        colours = shades.of_rows(np.arange(len(column.values)), column.colour)
        draw_histogram(axes, column.values, fitted_text(name, 40), "steps", colours)
        axes = figure.add_subplot(grid[row, place + 2 : place + 6])
        draw_trace(axes, column, typical, sample.ends, shades)
    return figure


def drawn_columns(health: Health, sample: Steps) -> tuple[list[DrawnColumn], list[DrawnColumn]]:
    """List the columns of which there is room for a picture: observations, and actions with the reward."""
    parts = {
        "observation": (sample.observations.T[:OBSERVATIONS], BLUE),
        "action": (sample.actions.T[:HISTOGRAMS], ORANGE),
        "reward": (sample.rewards[None], GREEN),
    }
    found = {
        kind: [
            DrawnColumn(kind, column.name, values, colour)
            for column, values in zip(health.columns_of(kind), columns, strict=False)
        ]
        for kind, (columns, colour) in parts.items()
    }
    return found["observation"], found["action"] + found["reward"]


def drawable(numbers: np.ndarray) -> np.ndarray:
    """Replace too large numbers, whose sums would be infinite, by NaN."""
    return np.where(np.abs(numbers) <= LARGEST, numbers, np.nan) if numbers.dtype.kind == "f" else numbers


def draw_histogram(
    axes: Any, values: np.ndarray, name: str, what: str, colours: Sequence[tuple[str, np.ndarray]] = ()
) -> None:
    """Draw a histogram. Bars are stacked if there are several ``colours``, each with a mask of its values."""
    axes.set_xlabel(name)
    axes.set_ylabel(what)
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    if low == high:
        text = f"always {low:g}" if known.any() else "no number"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    bins = min(60, max(8, round(np.sqrt(known.sum()))))
    colours = colours or [(BLUE, known)]
    groups = [values[known & mask].astype(np.float64) for _, mask in colours]
    axes.hist(groups, bins=bins, range=(low, high), color=[colour for colour, _ in colours], stacked=True)


def draw_quantiles(axes: Any, sample: Steps, names: list[str]) -> None:
    """Draw the middle 50 and 90 % of each observation, in standard deviations around its mean."""
    obs = sample.observations[:, :OBSERVATIONS].astype(np.float64)
    at = np.arange(obs.shape[1])
    ends = np.stack([standardised_quantiles(column[np.isfinite(column)]) for column in obs.T], axis=1)
    axes.vlines(at, ends[0], ends[6], color=GREY, linewidth=0.7)
    axes.vlines(at, ends[1], ends[5], color=BLUE, linewidth=3)
    axes.vlines(at, ends[2], ends[4], color=BLUE, linewidth=8)
    axes.plot(at, ends[3], "_", color="white", markersize=8)
    axes.set_xlim(-1, len(at))
    shown = names[: len(at)]
    axes.set_xticks(at, shown, rotation=90 if max(map(len, shown)) > 3 else 0, fontsize=8)
    axes.set_ylim(max(-12, ends.min(initial=0) - 0.5), min(12, ends.max(initial=0) + 0.5))
    rest = f" (the first {OBSERVATIONS} of {sample.observations.shape[1]})" * (len(at) < sample.observations.shape[1])
    axes.set_ylabel("std from the mean")
    axes.set_title(f"observations{rest}: all, the middle 90 %, the middle 50 %, the median", fontsize=9, color=GREY)
    axes.spines[["top", "right"]].set_visible(False)


def standardised_quantiles(column: np.ndarray) -> np.ndarray:
    """Return the quantiles of a standardised column, or zeros if the column is empty."""
    if not len(column):
        return np.zeros(len(QUANTILES))
    return np.quantile((column - column.mean()) / (column.std() or 1.0), QUANTILES)


def draw_projection(figure: "Figure", place: Any, sample: Steps) -> None:
    """Draw observations along the two directions in which they vary most, coloured by reward."""
    inner = place.subgridspec(1, 2, width_ratios=[30, 1])  # so that the scale does not narrow other pictures
    axes = figure.add_subplot(inner[0])
    axes.set_xlabel("first principal direction")
    axes.set_ylabel("second")
    axes.set_xticks([])
    axes.set_yticks([])
    finite = np.isfinite(sample.observations)
    columns = finite.mean(axis=0) > 0.5  # so that one broken sensor does not drop all rows
    complete = np.flatnonzero(finite[:, columns].all(axis=1) & np.isfinite(sample.rewards))
    rows = complete[np.linspace(0, len(complete) - 1, min(POINTS, len(complete))).astype(int)]
    obs = sample.observations[rows][:, columns].astype(np.float64)
    std = obs.std(axis=0) if len(obs) else np.zeros(0)
    if len(obs) < 3 or (std > 0).sum() < 2:
        axes.text(0.5, 0.5, "fewer than two columns vary", transform=axes.transAxes, ha="center", color=GREY)
        return
    scaled = ((obs - obs.mean(axis=0)) / np.where(std > 0, std, 1.0))[:, std > 0]
    _, _, directions = np.linalg.svd(scaled, full_matrices=False)
    points = scaled @ directions[:2].T
    reward = sample.rewards[rows]
    low, high = np.quantile(reward, [0.02, 0.98])
    shown = axes.scatter(*points.T, c=reward, s=3, cmap="viridis", vmin=low, vmax=high, rasterized=True)
    figure.colorbar(shown, cax=figure.add_subplot(inner[1]), label="reward")
