"""Recorded steps of any origin: ``Steps`` are rows in memory, and a ``Log`` says where rows can be read.

A log is read in pieces, so it may be larger than memory. ``terminals`` end an episode and the bootstrap; ``timeouts``
end the episode only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edp.data.signals import Encoding

PIECE = 65_536  # rows at a time
LARGEST = float(np.nextafter(2.0**128 - 2.0**103, 0))  # the largest number that stays finite in float32


class Steps(NamedTuple):
    """Steps as they were recorded, one row per step and in order: a whole log or a piece of one."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminals: np.ndarray
    timeouts: np.ndarray
    next_observations: np.ndarray | None = None
    operators: np.ndarray | None = None  # the number of each row's operator in ``Log.operator_names``; -1: unknown

    def rows(self, which: Any) -> "Steps":
        return Steps(*(None if column is None else column[which] for column in self))  # pyright: ignore

    @property
    def ends(self) -> np.ndarray:
        """Marks the last row of each episode."""
        return self.terminals | self.timeouts

    def in_pieces(self) -> Iterator["Steps"]:
        for start in range(0, len(self.observations), PIECE):
            yield self.rows(slice(start, start + PIECE))


REQUIRED = ("observations", "actions", "rewards", "terminals")  # columns that every log has
OPTIONAL = ("next_observations", "timeouts")
FLAGS = ("terminals", "timeouts")
WIDE = ("observations", "actions", "next_observations")


def join_steps(parts: list[Steps]) -> Steps:
    """Concatenate pieces. Either all of them have next observations, or none."""
    columns = zip(*parts, strict=True)
    return Steps(*(None if column[0] is None else np.concatenate(column) for column in columns))  # pyright: ignore


class BehaviourSummary(NamedTuple):
    """One behaviour policy's part of a data set."""

    name: str
    transitions: int
    episodes: int
    mean_return: float


@dataclass(frozen=True)
class Log:
    """Where steps can be read, and what is known about them."""

    name: str  # for messages; usually a file
    pieces: Callable[[], Iterator[Steps]]
    size: int = 0  # an upper bound of the number of rows, or 0 if it is unknown
    behaviours: list[BehaviourSummary] = field(default_factory=list)  # if edp.data.synthesis made the log
    regenerated: str = ""  # the task that this log imitates, if it is a look-alike of the task's published file
    env: str = ""  # the environment that it was recorded in
    env_options: Mapping[str, Any] = field(default_factory=dict)
    reference: tuple[float, float] | None = None  # returns at which the score is 0 and 100
    low: tuple[float, ...] = ()  # the range of each action, if the source has it
    high: tuple[float, ...] = ()
    observation_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    encoding: Encoding = field(default_factory=Encoding)  # how a row of a table becomes an observation
    operator_names: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # names of other columns in the source, which training does not use
    limit: int = 0  # steps after which an episode was cut off, even if the flags say otherwise (0: the flags are right)
    refused: list[str] = field(default_factory=list)  # reasons to refuse the log, found while ``pieces`` is read
    findings: Callable[[], list[Any]] = list  # what was found while ``pieces`` was read (edp.data.findings.Finding)
    span: Callable[[], str] = str  # the rate of the rows and their first and last time, after ``pieces`` was read
    read_from: tuple[Path, ...] = ()  # the files and folders on the disk
    piece_times: Callable[[], np.ndarray | None] = lambda: None  # of the rows that ``pieces`` yielded last, in seconds
    row_text: Callable[[int], str] = "row {}".format  # how messages name a row, counted over all pieces

    def operators_of(self, steps: Steps | None) -> np.ndarray | None:
        """Who acted in each row: a name, or an empty text where it is not known. None for a log without operators."""
        if steps is None or steps.operators is None:
            return None
        return np.array([*self.operator_names, ""])[steps.operators]


def find_timeouts(terminals: np.ndarray, limit: int | None) -> np.ndarray:
    """Mark where episodes of at most ``limit`` steps were cut off, from terminals alone."""
    timeouts = np.zeros(len(terminals), bool)
    if limit:
        starts = np.flatnonzero(np.concatenate([[True], terminals[:-1]]))
        for start, end in zip(starts, [*starts[1:], len(terminals)], strict=True):
            timeouts[start + limit - 1 : end : limit] = True
    return timeouts


def plain_numbers(column: np.ndarray) -> np.ndarray:
    """Convert to a number type that every format has."""
    has_type = column.dtype.kind in "if" and column.dtype.itemsize in (4, 8)
    return column.astype(column.dtype.newbyteorder("=") if has_type else np.float64, copy=False)
