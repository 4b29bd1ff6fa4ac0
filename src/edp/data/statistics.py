"""Statistics of a log's columns and episodes, computed over its pieces."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from edp.data.log import LARGEST, Log, Steps


class ColumnSummary(NamedTuple):
    """The statistics of one number of the observations or actions, or of the reward."""

    kind: str
    name: str
    low: float
    mean: float
    high: float
    std: float
    not_finite: int
    first_not_finite: int | None = None  # row of the log


@dataclass
class Moments:
    """Mean, std and range of each column over the pieces of a log; NaN, Inf and too large numbers are left out."""

    count: np.ndarray
    mean: np.ndarray
    square: np.ndarray  # the sum of squared deviations from the mean
    low: np.ndarray
    high: np.ndarray
    first_bad: np.ndarray  # the first row that is left out, or -1
    rows: int = 0

    @classmethod
    def of_width(cls, width: int) -> "Moments":
        zeros = lambda: np.zeros(width)  # noqa: E731
        return cls(zeros(), zeros(), zeros(), np.full(width, np.inf), np.full(width, -np.inf), np.full(width, -1))

    def add(self, part: np.ndarray) -> None:
        """Add rows (Chan, Golub and LeVeque 1983, eq. 2.1: a mean far from 0 costs no digits of the std)."""
        part = part.astype(np.float64, copy=False)
        good = np.abs(part) <= LARGEST
        count = good.sum(axis=0)
        mean = np.where(good, part, 0.0).sum(axis=0) / np.maximum(count, 1)
        square = (np.where(good, part - mean, 0.0) ** 2).sum(axis=0)
        both = np.maximum(self.count + count, 1)
        self.square += square + (mean - self.mean) ** 2 * self.count * count / both
        self.mean = self.mean + (mean - self.mean) * count / both
        self.count = self.count + count
        self.low = np.minimum(self.low, np.where(good, part, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(good, part, -np.inf).max(axis=0))
        new = (self.first_bad < 0) & (count < len(part))
        self.first_bad = np.where(new, self.rows + good.argmin(axis=0), self.first_bad)
        self.rows += len(part)

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.square / np.maximum(self.count, 1))


@dataclass
class Statistics:
    """What is in a log."""

    name: str
    rows: int = 0
    columns: list[ColumnSummary] = field(default_factory=list)
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    returns: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rewards: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    terminals: int = 0  # episodes that ended by themselves
    timeouts: int = 0
    unfinished: bool = False  # the last episode has no end
    sample: Steps | None = None  # rows for pictures, spread over the log
    every: int = 1  # one row in so many is in the sample
    times: np.ndarray | None = None  # of the sample's rows, in seconds, if they are known

    def columns_of(self, kind: str) -> list[ColumnSummary]:
        return [column for column in self.columns if column.kind == kind]

    def count_episodes(self, terminals: np.ndarray, timeouts: np.ndarray) -> None:
        ends = np.flatnonzero(terminals | timeouts)
        self.unfinished = not len(ends) or ends[-1] + 1 < len(terminals)
        stops = np.append(ends, len(terminals) - 1) if self.unfinished else ends
        starts = np.concatenate([[0], stops[:-1] + 1])
        self.lengths = stops - starts + 1
        known = np.abs(self.rewards) <= LARGEST
        self.returns = np.add.reduceat(np.where(known, self.rewards, 0), starts, dtype=np.float64)
        self.terminals, self.timeouts = int(terminals.sum()), int((timeouts & ~terminals).sum())


def summarise_columns(kind: str, moments: Moments, log: Log, rows: int) -> list[ColumnSummary]:
    names = {"observation": log.observation_names, "action": log.action_names, "reward": ("reward",)}[kind]
    names = names if len(names) == len(moments.low) else tuple(map(str, range(len(moments.low))))
    numbers = (np.where(moments.count, each, np.nan) for each in (moments.low, moments.mean, moments.high, moments.std))
    columns = names, *numbers, rows - moments.count, moments.first_bad.tolist()
    return [
        ColumnSummary(kind, name, float(low), float(mean), float(high), float(std), int(bad), first if bad else None)
        for name, low, mean, high, std, bad, first in zip(*columns, strict=True)
    ]


def count_disagreements(last: Steps | None, steps: Steps) -> int:
    """Count the steps whose next state is not the state in which the episode's next step begins."""
    if steps.next_observations is None:
        return 0
    before, after = steps.next_observations[:-1], steps.observations[1:]
    differs = (before != after).any(axis=1)
    inside = int((differs & ~steps.ends[:-1]).sum())
    if last is not None and last.next_observations is not None and not last.ends[0]:
        inside += int((last.next_observations[0] != steps.observations[0]).any())
    return inside
