"""Columns that change their unit within a log: stretches of rows in another range, or on another scale."""

from collections.abc import Sequence

import numpy as np

from edp.data.findings import Finding
from edp.data.log import LARGEST, Log, Steps
from edp.data.statistics import ColumnSummary

DIFFERENT = 20  # different numbers that a measured quantity has
STRETCHES = 4  # changes of a unit, at most
BLOCKS = 50  # parts of a log whose scales are compared
SCALE = 8.0  # a factor between units
Range = tuple[float, float]


def find_other_units(sample: Steps, every: int, columns: Sequence[ColumnSummary], log: Log) -> list[Finding]:
    """Look for stretches of rows in which a column lies in another range, or has another scale, than elsewhere.

    ``columns`` are those of the sample: observations, actions and the reward, in this order.
    """
    findings = []
    numbers = [*sample.observations.T, *sample.actions.T, sample.rewards]
    for (kind, name, *_), column in zip(columns, numbers, strict=True):
        column = column.astype(np.float64)
        column = np.where(np.abs(column) <= LARGEST, column, np.nan)
        stretch = other_range(column) or other_scale(column)
        if stretch:
            (start, stop), inside, outside = stretch
            named = kind if kind == name else f"{kind} {name!r}"
            what = (
                f"{named} is at {inside[0]:.4g} to {inside[1]:.4g} from {log.row_text(start * every)} to "
                f"{log.row_text(stop * every)}, and at {outside[0]:.4g} to {outside[1]:.4g} elsewhere"
            )
            findings.append(
                Finding("warning", what, "another unit, or another sensor? Convert these rows, or leave them out")
            )
    return findings


def other_range(column: np.ndarray) -> tuple[tuple[int, int], Range, Range] | None:
    """Find a stretch of rows whose numbers are far from all others; each side has a range of its own."""
    known = np.isfinite(column)
    numbers = column[known]
    split = widest_gap(numbers, 1.0)
    if split is None:
        return None
    high = numbers > split
    if min(len(np.unique(numbers[side])) for side in (high, ~high)) < DIFFERENT:
        return None  # a switch, or a sensor's error value
    return stretch_of(column, np.flatnonzero(known), high)


def other_scale(column: np.ndarray) -> tuple[tuple[int, int], Range, Range] | None:
    """Find a stretch of blocks whose numbers are many times as large as all others."""
    size = len(column) // BLOCKS
    if size < DIFFERENT:
        return None
    blocks = np.abs(column[: size * BLOCKS].reshape(BLOCKS, size))
    known = np.isfinite(blocks).all(axis=1)
    typical = np.log(np.maximum(np.quantile(blocks[known], 0.9, axis=1), np.finfo(float).tiny)) if known.any() else []
    split = widest_gap(np.asarray(typical), 1.0)
    if split is None or np.min(typical) < np.log(np.finfo(float).tiny) / 2:
        return None
    rows = np.repeat(np.flatnonzero(known), size) * size + np.tile(np.arange(size), int(known.sum()))
    high = np.repeat(np.asarray(typical) > split, size)
    spread = [np.subtract(*np.quantile(column[rows[side]], [0.95, 0.05])) for side in (high, ~high)]
    if not spread[1] or not SCALE < spread[0] / spread[1] < np.inf:
        return None
    return stretch_of(column, rows, high)


def widest_gap(numbers: np.ndarray, times: float) -> float | None:
    """Return the middle of the widest gap between sorted numbers, if it is wider than what lies on each side of it."""
    ordered = np.sort(numbers)
    if len(ordered) < 4:
        return None
    at = int(np.argmax(np.diff(ordered)))
    gap, sides = ordered[at + 1] - ordered[at], (ordered[at] - ordered[0], ordered[-1] - ordered[at + 1])
    return float((ordered[at] + ordered[at + 1]) / 2) if gap > times * max(sides) else None


def stretch_of(column: np.ndarray, rows: np.ndarray, high: np.ndarray) -> tuple[tuple[int, int], Range, Range] | None:
    """Return the first stretch of the rarer side and both ranges, if both sides come in few stretches."""
    rare = high if high.mean() < 0.5 else ~high
    edges = np.flatnonzero(np.diff(rare))
    if len(edges) > STRETCHES or rare.sum() < DIFFERENT:
        return None
    start = int(np.argmax(rare))
    stop = int(np.append(edges[edges >= start], len(rare) - 1)[0])
    ends = lambda side: (float(column[rows[side]].min()), float(column[rows[side]].max()))  # noqa: E731
    return (int(rows[start]), int(rows[stop])), ends(rare), ends(~rare)
