"""Numbers over training steps: the mean of the seeds, and the lowest and highest seed."""

from dataclasses import dataclass
from itertools import compress, zip_longest
from typing import Any

import numpy as np

from edp.runs.rows import Row
from edp.runs.scores import is_number_list, nan_mean, number_table

MOST = 40  # quantities of a run, at most
DISTANCE = "action distance"  # a quantity of held-out episodes


@dataclass
class Series:
    """Numbers over training steps: the mean of the seeds, and the lowest and highest seed."""

    steps: list[int]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


def loss_series(rows: list[Row], points: int) -> dict[str, Series]:
    """Build a series for each quantity that was logged."""
    rows, series = [row for row in rows if isinstance(row.get("metrics"), dict)], {}
    for name in quantities_in(rows):
        steps, values = [row["step"] for row in rows], [row["metrics"].get(name) for row in rows]
        if number_table(values, 2) is None:
            valid = [is_number_list(value) for value in values]
            steps, values = list(compress(steps, valid)), list(compress(values, valid))
        if values:
            series[str(name)] = thinned_series(steps, values, points)
    return series


def quantities_in(rows: list[Row]) -> list[str]:
    metrics = (row["metrics"] for row in rows if isinstance(row.get("metrics"), dict))
    return list(dict.fromkeys(name for each in metrics for name in each))[:MOST]


def thinned_series(at: list[int], values: list[list[float | None]], points: int) -> Series:
    """Build a series of at most ``points`` points from a row of seeds for each step: means over neighbouring steps."""
    table, steps = number_table(values, 2), np.array(at)
    if table is None:  # some rows lack seeds
        width = max(map(len, values))
        table = np.array([[*numbers, *[None] * (width - len(numbers))] for numbers in values], float)
    starts = np.unique(np.linspace(0, len(steps), min(points, len(steps)), endpoint=False).astype(int))
    ends = [int(step) for step in steps[np.append(starts[1:], len(steps)) - 1]]
    known = ~np.isnan(table)
    total, count = (np.add.reduceat(part, starts, axis=0) for part in (np.where(known, table, 0.0), known.astype(int)))
    return seed_series(ends, np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))


def seed_series(steps: list[int], table: np.ndarray) -> Series:
    """Build a series from numbers (steps, seeds)."""
    return Series(steps, *(rounded(numbers) for numbers in seed_spread(table)))


def seed_spread(table: np.ndarray) -> np.ndarray:
    """Compute mean, lowest and highest over seeds, (3, points), of numbers (points, seeds); NaN is ignored."""
    return np.array([nan_mean(table, 1), np.fmin.reduce(table, axis=1), np.fmax.reduce(table, axis=1)])


def rounded(values: np.ndarray) -> list[float | None]:
    """Round to four digits, which are more than a screen shows, for JSON; None stands for NaN."""
    return [float(f"{value:.4g}") if abs(value) < 1e300 else None for value in values]


def distances(validations: list[Row]) -> list[Row]:
    """Turn the distances of the policies' actions from the data's into rows of metrics."""
    rows = []
    for row in validations:
        far = [each.get("distance") if isinstance(each, dict) else None for each in working_policies(row)]
        if any(value is not None for value in far):
            rows.append({"step": row["step"], "metrics": {DISTANCE: far}})
    return rows


def working_policies(row: Row) -> list[Any]:
    """Return what a validation says of each seed's actions; None for a seed that had failed, whose metrics are None."""
    policies = row["actions"].get("policy") if isinstance(row.get("actions"), dict) else None
    failed = [all(value is None for value in seed) for seed in zip(*row["metrics"].values(), strict=False)]
    pairs = zip_longest(policies if isinstance(policies, list) else [], failed)
    return [None if failed else each for each, failed in pairs]
