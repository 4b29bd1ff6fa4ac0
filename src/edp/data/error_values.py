"""Error values of sensors among the numbers of a column: -9999, 0 or 32767 in the place of a measurement."""

from collections.abc import Callable, Sequence

import numpy as np

from edp.data.findings import Finding
from edp.data.log import LARGEST, Log
from edp.data.statistics import Statistics

DIFFERENT = 20  # different numbers that a measured quantity has
TIMES = 3  # that an error value is there, at least
SHARE = 0.05  # of the rows that have it, at most: what is there more often is a state, such as a pump that is off
GAP = 10.0  # between it and all other numbers, in widths of what most of these span
FAR = 50.0  # standard deviations from the mean
EFFECT = "a sensor's error value? It would dominate the scaling, and widen what counts as inside of the training data: "
REPEATED = "leave such rows out, or make it an empty cell (`missing_texts`, in a CSV file)"


def find_error_values(statistics: Statistics, observations: np.ndarray, every: int, log: Log) -> list[Finding]:
    """Look for numbers that are far from all others. ``observations`` are one row in ``every``."""
    columns = statistics.columns_of("observation")
    found = find_repeated([column.name for column in columns], observations, lambda at: log.row_text(at * every))
    findings = list(found.values())
    for i, column in enumerate(columns):
        far = max(abs(column.high - column.mean), abs(column.mean - column.low)) / (column.std or 1.0)
        if far > FAR and i not in found:
            what = f"observation {column.name!r} reaches {far:.0f} standard deviations from its mean"
            ends = f"{column.low:.4g} to {column.high:.4g}"
            findings.append(Finding("warning", f"{what} ({ends})", f"{EFFECT}leave such rows out"))
    return findings


def find_repeated(
    names: Sequence[str], observations: np.ndarray, row_text: Callable[[int], str] | None = None
) -> dict[int, Finding]:
    """Look for numbers that are far from all others and there several times, in each column.

    ``row_text`` names a row, if messages should.
    """
    found = {}
    for i, name in enumerate(names):
        column = observations[:, i].astype(np.float64)
        for value, low, high in repeated_values(column):
            rows = np.flatnonzero(column == value)
            where = f", first in {row_text(int(rows[0]))}" if row_text else ""
            what = (
                f"observation {name!r} is {value:.6g} in {len(rows):,} rows{where}, and at {low:.4g} to {high:.4g} in"
            )
            found.setdefault(i, Finding("warning", f"{what} others", EFFECT + REPEATED))
    return found


def repeated_values(column: np.ndarray) -> list[tuple[float, float, float]]:
    """Return the error values at either end of a column, each with the range of the other numbers."""
    found, left = [], column[np.abs(column) <= LARGEST]
    if not len(left) or max(np.count_nonzero(left == end) for end in (left.min(), left.max())) < TIMES:
        return []  # as usual, and faster
    numbers, counts = np.unique(left, return_counts=True)
    for end in (0, -1):
        if len(numbers) <= DIFFERENT or not TIMES <= counts[end] <= SHARE * len(left):
            continue
        others, value = left[left != numbers[end]], float(numbers[end])
        width = float(np.subtract(*np.quantile(others, [0.95, 0.05])))
        nearest = float(numbers[1] if end == 0 else numbers[-2])
        if width > 0 and abs(value - nearest) > GAP * width:
            found.append((value, float(others.min()), float(others.max())))
            left, numbers, counts = others, np.delete(numbers, end), np.delete(counts, end)
    return found
