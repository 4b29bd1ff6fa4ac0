"""Whether observations are like those of the training data.

An observation is outside if a number is outside of its range by more than a tenth of the range's width, or if its
distance to the training data is more than twice the usual distance of unseen data (``edp.acting.reference``).
"""

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edp.acting.reference import Reference, read_reference
from edp.config.spec import Spec
from edp.data.signals import Signals
from edp.errors import UserError, printable

MARGIN = 0.1  # how far a number may leave its range, in widths of the range
FAR = 2.0  # the distance at which an observation is outside
MOST = 3  # numbers that a message names
CHOICES = ("warn", "hold", "refuse", "ignore")  # of `outside`


class Status(NamedTuple):
    """The last call of ``act``: how the observations compare with the training data, and when the action was there."""

    outside: bool = False  # whether any number or distance is
    columns: tuple[str, ...] = ()  # the names of the numbers that are outside of their ranges
    distance: float = float("nan")  # of the farthest observation, in units of the usual distance of unseen data
    rows: tuple[int, ...] = ()  # of the batch: those that are outside
    held: bool = False  # whether the last good action was given for these rows
    why: str = ""  # in words, how they are outside
    filled: tuple[str, ...] = ()  # the names of the numbers whose empty cells have the last good number
    filled_calls: int = 0  # for how many calls, the longest of them
    late: bool = False  # whether the fallback was given, because there was no action at the deadline
    limited: tuple[str, ...] = ()  # the names of the actions that would have changed by more than ``max_change``
    latency_ms: float = float("nan")  # of the call
    calls: int = 0  # so far
    misses: int = 0  # of the deadline, so far


class Guard:
    """The check of observations against the ranges and the reference of a run."""

    def __init__(self, signals: Signals, reference: Reference):
        self.signals, self.reference = signals, reference
        self.low, self.high = ranges_with_margin(signals)

    def check(self, rows: np.ndarray, as_seen: np.ndarray) -> Status:
        """Compare observations in the log's units, and the same ones as the network sees them."""
        with np.errstate(over="ignore", invalid="ignore"):
            within = self.inside(rows)
            usual = self.signals.distance
            distances = self.reference.distances(as_seen) / usual if usual else np.zeros(len(rows), np.float32)
        far = ~(distances <= FAR)
        farthest = float(distances.max()) if len(rows) else 0.0
        if within.all() and not far.any():
            return Status(distance=farthest)
        names = tuple(self.signals.observations[column] for column in np.flatnonzero(~within.all(axis=0)))
        outside = np.flatnonzero(far | ~within.all(axis=1))
        return Status(True, names, farthest, tuple(outside.tolist()), why=self.explain(rows, within, distances))

    def inside(self, rows: np.ndarray) -> np.ndarray:
        """Mark the numbers within their ranges. NaN is not."""
        return (rows >= self.low) & (rows <= self.high)

    def explain(self, rows: np.ndarray, within: np.ndarray, distances: np.ndarray) -> str:
        """Name the numbers that are outside of their ranges with their values and ranges, or else the distance."""
        if within.all():
            row = int(np.argmax(distances))
            return (
                f"outside of the training data{row_text(row, rows)}: {distances[row]:.3g} times as far from it as "
                "unseen data usually is (each number is within its range, but not together with the others)"
            )
        columns, signals = np.flatnonzero(~within.all(axis=0)), self.signals
        first = within[:, columns].argmin(axis=0)
        parts = [
            f"{printable(signals.observations[column])!r} is {rows[row, column]:g}{row_text(row, rows)} "
            f"({signals.low[column]:g} to {signals.high[column]:g})"
            for row, column in zip(first[:MOST], columns[:MOST], strict=True)
        ]
        more = f" and {len(columns) - MOST} more" if len(columns) > MOST else ""
        return f"outside of the training data: {', '.join(parts)}{more}"


def ranges_with_margin(signals: Signals) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest numbers that are not outside."""
    low, high = np.array(signals.low), np.array(signals.high)
    slack = MARGIN * (high - low) + 1e-6 * np.maximum(np.abs(low), np.abs(high))  # 1e-6: rounding in float32
    return (low - slack).astype(np.float32), (high + slack).astype(np.float32)


def row_text(row: int, rows: np.ndarray) -> str:
    return f" in row {row}" if len(rows) > 1 else ""


def load_guard(run: Path, spec: Spec, outside: str) -> Guard | None:
    """The check of observations; None for runs of older versions, which have no ranges of their data."""
    if spec.signals is None:
        older = f"{run}: was started by an older version, and does not know the ranges of its training data"
        if outside in ("hold", "refuse"):
            raise UserError(f"{older}: train it again, or load it with `outside=ignore`")
        if outside == "warn":
            warnings.warn(f"{older}: observations are not checked", stacklevel=3)
        return None
    try:
        return Guard(spec.signals, read_reference(run, spec))
    except UserError:
        if outside != "ignore":
            raise
        return None
