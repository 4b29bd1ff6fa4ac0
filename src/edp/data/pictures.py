"""A page with pictures of a log."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edp.data.health import Health
from edp.data.log import LARGEST, Steps
from edp.drawing import BLUE, GREY, ORANGE, drawing_style, save_figure
from edp.errors import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 5000  # in the projection
ACROSS = 4  # pictures in a row
HISTOGRAMS = 12  # of actions, and of observations if there are at most this many
OBSERVATIONS = 40  # bars
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)


def draw_health(health: Health, path: Path) -> None:
    """Draw returns, lengths, rewards, actions, observations and a projection on one page."""
    with drawing_style():
        save_figure(health_figure(health), path)


def health_figure(health: Health) -> "Figure":
    from matplotlib.figure import Figure

    sample = health.sample
    assert sample is not None
    sample = Steps(*(None if part is None else drawable(part) for part in sample))  # pyright: ignore
    actions, observed = health.columns_of("action")[:HISTOGRAMS], health.columns_of("observation")
    few = len(observed) <= HISTOGRAMS
    above = -(-len(observed) // ACROSS) if few else 1  # rows of pictures of observations
    rows = 1 + above + -(-len(actions) // ACROSS)
    figure = Figure(figsize=(12, 2.8 * rows + 0.5), layout="constrained")
    grid = figure.add_gridspec(rows, ACROSS)
    figure.suptitle(
        f"{Path(health.name).name}: {counted(health.rows, 'step')} in {counted(len(health.lengths), 'episode')} "
        f"({health.terminals:,} ended, {health.timeouts:,} cut off)",
        fontsize=12,
    )
    draw_histogram(figure.add_subplot(grid[0, 0]), health.returns, "return of an episode", "episodes")
    draw_histogram(figure.add_subplot(grid[0, 1]), health.lengths, "length of an episode", "episodes")
    draw_histogram(figure.add_subplot(grid[0, 2]), drawable(health.rewards), "reward of a step", "steps")
    draw_projection(figure.add_subplot(grid[0, 3]), sample, figure)
    if not few:
        draw_quantiles(figure.add_subplot(grid[1, :]), sample, [column.name for column in observed])
    for i, column in enumerate(observed if few else ()):
        axes = figure.add_subplot(grid[1 + i // ACROSS, i % ACROSS])
        draw_histogram(axes, sample.observations[:, i], f"observation {column.name}", "steps")
    for i, column in enumerate(actions):
        axes = figure.add_subplot(grid[1 + above + i // ACROSS, i % ACROSS])
        draw_histogram(axes, sample.actions[:, i], f"action {column.name}", "steps", ORANGE)
    return figure


def drawable(numbers: np.ndarray) -> np.ndarray:
    """Replace too large numbers, whose sums would be infinite, by NaN."""
    return np.where(np.abs(numbers) <= LARGEST, numbers, np.nan) if numbers.dtype.kind == "f" else numbers


def draw_histogram(axes: Any, values: np.ndarray, name: str, what: str, colour: str = BLUE) -> None:
    axes.set_xlabel(name)
    axes.set_ylabel(what)
    values = values[np.isfinite(values)].astype(np.float64)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if low == high:
        text = f"always {low:g}" if len(values) else "no number"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    axes.hist(values, bins=min(60, max(8, round(np.sqrt(len(values))))), color=colour)
    axes.spines[["top", "right"]].set_visible(False)


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


def draw_projection(axes: Any, sample: Steps, figure: Any) -> None:
    """Draw observations along the two directions in which they vary most, coloured by reward."""
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
    figure.colorbar(shown, ax=axes, label="reward")
