"""Empty cells of an observation filled with the last good number, as in training (``missing = "ffill"``)."""

import numpy as np

from edp.acting.guard import Guard, Status
from edp.data.signals import Signals


class Filler:
    """The last good numbers of each row: those that are finite, and inside of the training data."""

    def __init__(self, signals: Signals, guard: Guard | None):
        self.names, self.guard = signals.observations, guard
        self.columns = np.isin(signals.observations, signals.encoding.filled)
        self.reset(0)

    def reset(self, count: int) -> None:
        """Forget all numbers, and get ready for ``count`` rows."""
        self.last = np.full((count, len(self.names)), np.nan, np.float32)
        self.calls = np.zeros((count, len(self.names)), np.int64)  # since each number was there

    def fill(self, rows: np.ndarray) -> np.ndarray:
        """Fill the empty cells of the rows, where there was a number before."""
        if not self.columns.any():
            return rows
        empty = np.isnan(rows) & self.columns
        self.calls = np.where(empty, self.calls + 1, 0)
        good = self.guard.inside(rows) if self.guard else np.isfinite(rows)
        rows = np.where(empty, self.last, rows)
        self.last = np.where(good, rows, self.last)
        return rows

    def describe(self, status: Status) -> Status:
        """Add to a status which numbers were filled, and for how many calls."""
        filled = (self.calls > 0) & ~np.isnan(self.last)
        if not filled.any():
            return status
        names = tuple(self.names[column] for column in np.flatnonzero(filled.any(axis=0)))
        return status._replace(filled=names, filled_calls=int(self.calls[filled].max()))
