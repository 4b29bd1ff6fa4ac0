"""Recorded steps of any origin, and the transitions that training makes of them.

A log is read in pieces, so that it may be larger than the memory. ``terminals`` end the bootstrap; ``timeouts`` end the
episode but not the bootstrap. Where a log has no ``next_observations``, the next row's observation stands in, and a row
whose next one belongs to another episode (the last before a timeout, or of the log) is dropped, because the state after
it is unknown.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edp.errors import UserError
from edp.files import cache_folder

PIECE = 65_536  # rows at a time
LARGEST = float(np.nextafter(2.0**128 - 2.0**103, 0))  # that does not become infinite in float32
CONSTANT = 1e-9  # a column that changes by less of its size does not change
COARSE = 0.05  # of a column's range: if float32 is as far off as that, little of the column is left


class Steps(NamedTuple):
    """Steps as they were recorded, one row each and in order: a whole log or a piece of one."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminals: np.ndarray
    timeouts: np.ndarray
    next_observations: np.ndarray | None = None

    def rows(self, which: Any) -> "Steps":
        return Steps(*(None if column is None else column[which] for column in self))  # pyright: ignore

    @property
    def ends(self) -> np.ndarray:
        """Where episodes end."""
        return self.terminals | self.timeouts


FLAGS = ("terminals", "timeouts")
WIDE = ("observations", "actions", "next_observations")


class Behaved(NamedTuple):
    """One behaviour policy's part of a data set."""

    name: str
    transitions: int
    episodes: int
    mean_return: float


@dataclass(frozen=True)
class Log:
    """Where steps can be read, and what is known about them beside the numbers."""

    name: str  # for messages: a file, usually
    pieces: Callable[[], Iterator[Steps]]
    size: int = 0  # rows at most, or 0 if nobody knows before they have been read
    behaviours: list[Behaved] = field(default_factory=list)  # what made it, if it was made by ``edp data make``
    regenerated: str = ""  # the task that it imitates, if it is a look-alike and not that task's own file
    env: str = ""  # the environment that it was recorded in
    env_options: Mapping[str, Any] = field(default_factory=dict)
    reference: tuple[float, float] | None = None  # returns at which the score is 0 and 100
    low: tuple[float, ...] = ()  # the ranges of the actions, where the source tells
    high: tuple[float, ...] = ()
    observation_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # what else is there, that training has no use for
    limit: int = 0  # steps after which an episode was cut off, whatever the flags say (0: they are right)
    with_gaps: Callable[[], Iterator[Steps]] | None = None  # with NaN where ``pieces`` refuses a cell that is no number
    refused: list[str] = field(default_factory=list)  # what else ``pieces`` would refuse, once ``with_gaps`` was read


class Dataset(NamedTuple):
    """Transitions as NumPy arrays, in the order of the log, and what is known of its episodes."""

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_obs: np.ndarray
    not_done: np.ndarray
    episode: np.ndarray  # which episode each row belongs to, counted from 0
    returns: np.ndarray  # of each whole episode
    behaviours: list[Behaved]  # see Log, as the next one
    regenerated: str = ""


def read(log: Log, episode_return: str = "sum", on_disk: bool = False) -> Dataset:
    """All transitions of a log, in memory or in files that go away with the process.

    ``episode_return`` says what is made of the rewards of an episode (see ``episode_returns``).
    """
    column = partial(Column, size=log.size, on_disk=on_disk)
    rewards, terminals, timeouts = column((), np.float32), column((), bool), column((), bool)

    def noted(pieces: Iterable[Steps]) -> Iterator[Steps]:
        for steps in pieces:
            for whole, part in ((rewards, steps.rewards), (terminals, steps.terminals), (timeouts, steps.timeouts)):
                whole.add(part)
            yield steps

    columns: dict[str, Column] = {}
    rounding = Rounding()
    try:
        for steps, episode in with_next(noted(checked(log))):
            rounding.add(steps.observations)
            parts = {
                "obs": steps.observations,
                "action": steps.actions,
                "reward": steps.rewards,
                "next_obs": steps.next_observations,
                "not_done": ~steps.terminals,
                "episode": episode,
            }
            for name, part in parts.items():
                kind = np.int32 if name == "episode" else np.float32
                columns.setdefault(name, column(part.shape[1:], kind)).add(part)
    except MemoryError:
        raise UserError(f"{log.name}: too large for the memory (--block leaves it on disk)") from None
    if not columns:
        why = "no transition in it has a known next state" if terminals.used else "no transitions in it"
        raise UserError(f"{log.name}: {why}")
    for what in rounding.refused(log):
        raise UserError(f"{log.name}: {what}: {FINER}")
    returns = episode_returns(rewards.whole(), terminals.whole(), timeouts.whole(), episode_return)
    arrays = {name: column.whole() for name, column in columns.items()}
    return Dataset(**arrays, returns=returns, behaviours=log.behaviours, regenerated=log.regenerated)


class Column:
    """An array that grows, in memory or in a file."""

    def __init__(self, shape: tuple[int, ...], kind: Any, size: int, on_disk: bool):
        self.shape, self.kind, self.used = shape, np.dtype(kind), 0
        self.file = temporary_file() if on_disk else None
        try:
            self.array = np.empty((0 if on_disk else size, *shape), kind)
        except (MemoryError, ValueError):  # a damaged file may claim any size
            self.array = np.empty((0, *shape), kind)

    def add(self, part: np.ndarray) -> None:
        if self.file is not None:
            try:
                np.ascontiguousarray(part, self.kind).tofile(self.file)
            except OSError as error:
                raise UserError(f"{cache_folder()}: no room for data to stream ({error.strerror or error})") from None
        else:
            needed = self.used + len(part)
            if needed > len(self.array):
                self.array.resize((max(needed, len(self.array) * 3 // 2), *self.shape), refcheck=False)
            self.array[self.used : needed] = part
        self.used += len(part)

    def whole(self) -> np.ndarray:
        if self.file is None:
            return self.array[: self.used]
        self.file.flush()
        if not self.used:
            return np.empty((0, *self.shape), self.kind)
        with self.file:  # the mapping keeps it until the end
            return np.memmap(self.file, self.kind, "r+", shape=(self.used, *self.shape))


FINER = "subtract a constant, give a time as that of the day, or leave the column out"


class Rounding:
    """How far float32, in which all is computed, is from the numbers of each column, and their range."""

    def __init__(self):
        self.low, self.high, self.error = (np.array([start]) for start in (np.inf, -np.inf, 0.0))

    def add(self, part: np.ndarray) -> None:
        """NaN is left out."""
        if np.can_cast(part.dtype, np.float32):
            return
        self.low = np.fmin(self.low, np.fmin.reduce(part, axis=0))
        self.high = np.fmax(self.high, np.fmax.reduce(part, axis=0))
        self.error = np.fmax(self.error, np.fmax.reduce(np.abs(part - part.astype(np.float32)), axis=0))

    def refused(self, log: Log) -> list[str]:
        """Those in which float32 sees changes that have little to do with theirs (no change at all is all right)."""
        return self.coarse(log, COARSE, steps=2)

    def coarse(self, log: Log, share: float, steps: int = 0) -> list[str]:
        """The observations that change by more than so many steps of float32, which may be off by more than a ``share``
        of their ranges."""
        spread, size = self.high - self.low, np.maximum(np.abs(self.low), np.abs(self.high))
        changes = spread > np.maximum(CONSTANT * size, np.finfo(np.float32).tiny)
        changes &= spread > steps * np.spacing(size.astype(np.float32))
        found = np.flatnonzero(changes & (self.error > share * spread))
        names = log.observation_names if len(log.observation_names) == np.size(spread) else range(np.size(spread))
        return [
            f"observation {names[i]!r} spans {self.low[i]:.12g} to {self.high[i]:.12g}, where float32 has only steps "
            f"of {np.spacing(np.float32(size[i])):g}"
            for i in found
        ]


def temporary_file() -> Any:
    """A file in the cache folder that goes away with the process."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot keep data to stream here ({error.strerror})") from None


def with_next(pieces: Iterable[Steps]) -> Iterator[tuple[Steps, np.ndarray]]:
    """The rows whose next state is known or does not matter, with that state and the number of their episode."""
    held, first = None, 0  # the last row so far, if it waits for the one after it; the number of its episode
    for steps in pieces:
        if steps.next_observations is not None:
            ends = np.cumsum(steps.ends, dtype=np.int32)
            yield steps, first + ends - steps.ends
            first += int(ends[-1])
            continue
        steps = steps if held is None else joined([held, steps])
        held = steps.rows(slice(-1, None))
        yield from following(steps.rows(slice(-1)), steps.observations[1:], first)
        first += int(steps.ends[:-1].sum())
    if held is not None:
        yield from following(held.rows(held.terminals), held.observations[held.terminals], first)


def following(steps: Steps, next_observations: np.ndarray, first: int) -> Iterator[tuple[Steps, np.ndarray]]:
    known = ~steps.timeouts | steps.terminals  # after a terminal the next state is not used
    if known.any():
        episode = first + np.cumsum(steps.ends, dtype=np.int32) - steps.ends
        every = slice(None) if known.all() else known
        yield steps._replace(next_observations=next_observations).rows(every), episode[every]


def joined(parts: list[Steps]) -> Steps:
    """Pieces in one; the next observations of all of them are known, or of none."""
    columns = zip(*parts, strict=True)
    return Steps(*(None if column[0] is None else np.concatenate(column) for column in columns))  # pyright: ignore


def whole(log: Log) -> Steps:
    """All steps of a log, as they were recorded."""
    try:
        parts = list(checked(log))
        if not parts:
            raise UserError(f"{log.name}: no transitions in it")
        return joined(parts)
    except MemoryError:
        raise UserError(f"{log.name}: too large for the memory") from None


def checked(log: Log, finite: bool = True) -> Iterator[Steps]:
    """The pieces of a log; what would make training silently wrong is refused (NaN and the like: if ``finite``)."""
    row, before, widths = 0, 0, {}
    for steps in (log.pieces if finite else log.with_gaps or log.pieces)():
        check_shapes(steps, log.name, row)
        if not len(steps.rewards):
            continue
        now = {key: column.shape[1] for key, column in steps._asdict().items() if key in WIDE and column is not None}
        changed = [key for key in widths.keys() | now.keys() if widths.get(key) != now.get(key)]
        if widths and changed:
            key = sorted(changed)[0]
            raise UserError(
                f"{log.name}: {key} have {now.get(key, 'no')} numbers from row {row} on, and {widths.get(key, 'no')} "
                "before it"
            )
        widths = now
        for key, column in steps._asdict().items():
            if column is not None and (finite or key in FLAGS):
                check_finite(column, key, log.name, row)
        steps = steps._replace(**{key: getattr(steps, key).astype(bool, copy=False) for key in FLAGS})
        if log.limit:
            steps, before = cut_off(steps, log.limit, before)
        yield steps
        row += len(steps.rewards)


def cut_off(steps: Steps, limit: int, before: int) -> tuple[Steps, int]:
    """Every step that is the last within ``limit`` of its episode as a timeout; the episode goes on from ``before``.

    Also how many steps the last episode has so far.
    """
    rows = np.arange(len(steps.rewards))
    starts = np.concatenate([[True], steps.ends[:-1]])
    first = np.maximum.accumulate(np.where(starts, rows, 0))
    step = rows - first + np.where(first == 0, before, 0)
    last = step % limit == limit - 1
    after = 0 if steps.ends[-1] else int(step[-1]) + 1
    return steps._replace(terminals=steps.terminals & ~last, timeouts=steps.timeouts | last), after


def check_shapes(steps: Steps, name: str, row: int) -> None:
    columns = {key: column for key, column in steps._asdict().items() if column is not None}
    for key, column in columns.items():
        if column.dtype.kind not in "biuf":
            raise UserError(f"{name}: {key} holds {column.dtype}, not numbers")
        wanted = 2 if key in WIDE else 1
        if column.ndim != wanted:
            raise UserError(f"{name}: {key} has shape {column.shape}, but should have {wanted} dimension(s)")
        if wanted == 2 and not column.shape[1]:
            raise UserError(f"{name}: {key} have no numbers in them")
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        where = f" (from row {row} on)" if row else ""
        raise UserError(
            f"{name}: arrays of different lengths{where}: {', '.join(f'{k} {n}' for k, n in lengths.items())}"
        )
    if steps.next_observations is not None and steps.next_observations.shape != steps.observations.shape:
        shapes = steps.observations.shape, steps.next_observations.shape
        raise UserError(f"{name}: observations {shapes[0]} and next_observations {shapes[1]} differ in width")


def check_finite(column: np.ndarray, key: str, name: str, row: int) -> None:
    if key in FLAGS and column.dtype != bool and not ((column == 0) | (column == 1)).all():
        bad = int(np.argmin((column == 0) | (column == 1)))
        raise UserError(f"{name}: {key} must be 0 or 1, and row {row + bad} has {column[bad]}")
    with np.errstate(invalid="ignore"):  # some NaN make NumPy warn of them
        refuse_not_finite(column, key, name, row)


def refuse_not_finite(column: np.ndarray, key: str, name: str, row: int) -> None:
    if float(column.min()) >= -LARGEST and float(column.max()) <= LARGEST:  # neither where there is a NaN
        return
    good = np.abs(column.astype(np.float64)) <= LARGEST
    rows = good if good.ndim == 1 else good.all(axis=1)
    at = int(np.argmin(rows))
    which = "" if good.ndim == 1 else f", column {int(np.argmin(good[at]))}"
    raise UserError(f"{name}: {key} hold NaN, Inf or too large a number, first in row {row + at}{which}")


def find_timeouts(terminals: np.ndarray, limit: int | None) -> np.ndarray:
    """Where episodes of at most ``limit`` steps were cut off, from terminals alone."""
    timeouts = np.zeros(len(terminals), bool)
    if limit:
        starts = np.flatnonzero(np.concatenate([[True], terminals[:-1]]))
        for start, end in zip(starts, [*starts[1:], len(terminals)], strict=True):
            timeouts[start + limit - 1 : end : limit] = True
    return timeouts


def episode_returns(rewards: np.ndarray, terminals: np.ndarray, timeouts: np.ndarray, how: str = "sum") -> np.ndarray:
    """The return of each episode that ended within the log: the "sum" of its rewards, their "max", or "reached".

    "reached" is 1 where any reward was positive, in files whose terminals do not end episodes but mark such steps.
    """
    last = np.flatnonzero(timeouts if how == "reached" and timeouts.any() else terminals | timeouts)
    if not len(last):
        return np.zeros(0)
    starts, rewards = np.concatenate([[0], last[:-1] + 1]), rewards[: last[-1] + 1]
    if how == "sum":
        return np.add.reduceat(rewards, starts, dtype=np.float64)
    return np.maximum.reduceat(rewards > 0 if how == "reached" else rewards, starts).astype(np.float64)


def in_pieces(steps: Steps) -> Iterator[Steps]:
    for start in range(0, len(steps.observations), PIECE):
        yield steps.rows(slice(start, start + PIECE))


def plain(column: np.ndarray) -> np.ndarray:
    """Numbers of a kind that every format has."""
    kind = (
        column.dtype.newbyteorder("=") if column.dtype.kind in "if" and column.dtype.itemsize in (4, 8) else np.float64
    )
    return column.astype(kind, copy=False)


def refuse_missing(path: Path, kind: str = "file") -> None:
    try:
        path.stat()
    except FileNotFoundError:
        raise UserError(f"{path}: no such {kind}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
