"""Checks of a log: data that would make training silently wrong is refused."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from edp.data.log import FLAGS, LARGEST, WIDE, Log, Steps
from edp.errors import UserError, counted

CONSTANT = 1e-9  # a column is constant if its range is at most this share of its largest number
COARSE = 0.05  # the largest rounding error of float32 that is allowed, as a share of a column's range
FINER = "subtract a constant, use the time of day instead of a timestamp, or leave the column out"


def checked_pieces(log: Log, finite: bool = True) -> Iterator[Steps]:
    """Yield the pieces of a log after checking them.

    If ``finite`` is False, NaN, Inf and too large numbers pass, and so do the faults in ``log.refused``.
    """
    row, before, widths = 0, 0, {}
    for steps in log.pieces():
        if finite:
            check_refused(log)
        check_shapes(steps, log.name, row)
        if not len(steps.rewards):
            continue
        now = {key: column.shape[1] for key, column in steps._asdict().items() if key in WIDE and column is not None}
        check_widths(widths, now, log.name, row)
        widths = now
        for key, column in steps._asdict().items():
            if key in FLAGS:
                check_flags(column, key, log.name, lambda at, row=row: log.row_text(row + at))
            elif finite and column is not None:
                check_finite(column, key, log, row)
        steps = steps._replace(**{key: getattr(steps, key).astype(bool, copy=False) for key in FLAGS})
        if log.limit:
            steps, before = cut_episodes(steps, log.limit, before)
        yield steps
        row += len(steps.rewards)
    if finite:
        check_refused(log)


def check_refused(log: Log) -> None:
    for reason in log.refused:
        raise UserError(reason)


def check_shapes(steps: Steps, name: str, row: int) -> None:
    columns = {key: column for key, column in steps._asdict().items() if column is not None}
    for key, column in columns.items():
        if column.dtype.kind not in "biuf":
            raise UserError(f"{name}: {key} holds {column.dtype}, not numbers")
        wanted = 2 if key in WIDE else 1
        if column.ndim != wanted:
            raise UserError(f"{name}: {key} has shape {column.shape}, but should have {counted(wanted, 'dimension')}")
        if wanted == 2 and not column.shape[1]:
            raise UserError(f"{name}: {key} have no numbers in them")
    check_lengths({key: len(column) for key, column in columns.items()}, name, row)
    if steps.next_observations is not None and steps.next_observations.shape != steps.observations.shape:
        shapes = steps.observations.shape, steps.next_observations.shape
        raise UserError(f"{name}: observations {shapes[0]} and next_observations {shapes[1]} differ in width")


def check_lengths(lengths: dict[str, int], name: str, row: int = 0) -> None:
    if len(set(lengths.values())) > 1:
        where = f" (from row {row} on)" if row else ""
        listed = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise UserError(f"{name}: arrays of different lengths{where}: {listed}")


def check_widths(before: dict[str, int], now: dict[str, int], name: str, row: int) -> None:
    """Refuse a piece whose columns have other widths than those of the piece before it."""
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if before and changed:
        key = changed[0]
        raise UserError(
            f"{name}: {key} have {now.get(key, 'no')} numbers from row {row} on, and {before.get(key, 'no')} before it"
        )


def check_flags(column: np.ndarray, key: str, name: str, row_text: Callable[[int], str]) -> None:
    """Refuse flags that are neither 0 nor 1. ``row_text`` names a row of the column."""
    if column.dtype == bool:
        return
    good = (column == 0) | (column == 1)
    if not good.all():
        bad = int(np.argmin(good))
        raise UserError(f"{name}: {key} must be 0 or 1, and {row_text(bad)} has {column[bad]}")


def check_finite(column: np.ndarray, key: str, log: Log, row: int) -> None:
    bad = first_not_finite(column)
    if bad is not None:
        names = log.action_names if key == "actions" else log.observation_names
        name = repr(names[bad[1]]) if column.ndim == 2 and len(names) == column.shape[1] else bad[1]
        where = log.row_text(row + bad[0]) + ("" if column.ndim == 1 else f", column {name}")
        raise UserError(f"{log.name}: {key} hold NaN, Inf or too large a number, first in {where}")


def first_not_finite(column: np.ndarray) -> tuple[int, int] | None:
    """Return the row and the column of the first number that is NaN, or too large for float32."""
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaN
        if float(column.min()) >= -LARGEST and float(column.max()) <= LARGEST:  # both comparisons are False for NaN
            return None
        good = np.abs(column.astype(np.float64)) <= LARGEST
    row, at = divmod(int(np.argmin(good)), column.shape[1] if column.ndim == 2 else 1)
    return row, at


def cut_episodes(steps: Steps, limit: int, before: int) -> tuple[Steps, int]:
    """Mark every step that is the last within ``limit`` of its episode as a timeout.

    ``before`` counts the steps that the first episode already has; the second value returned counts those of the last.
    """
    rows = np.arange(len(steps.rewards))
    starts = np.concatenate([[True], steps.ends[:-1]])
    first = np.maximum.accumulate(np.where(starts, rows, 0))
    step = rows - first + np.where(first == 0, before, 0)
    last = step % limit == limit - 1
    after = 0 if steps.ends[-1] else int(step[-1]) + 1
    return steps._replace(terminals=steps.terminals & ~last, timeouts=steps.timeouts | last), after


class Rounding:
    """The error that rounding to float32 makes in each column of observations, and the columns' ranges."""

    def __init__(self):
        self.low, self.high, self.error = (np.array([start]) for start in (np.inf, -np.inf, 0.0))

    def add(self, part: np.ndarray) -> None:
        """Take rows into account; NaN is ignored."""
        if np.can_cast(part.dtype, np.float32):
            return
        self.low = np.fmin(self.low, np.fmin.reduce(part, axis=0))
        self.high = np.fmax(self.high, np.fmax.reduce(part, axis=0))
        self.error = np.fmax(self.error, np.fmax.reduce(np.abs(part - part.astype(np.float32)), axis=0))

    def refused(self, log: Log) -> list[str]:
        """Describe the columns whose changes float32 distorts. Columns that become constant are allowed."""
        return self.coarse(log, COARSE, steps=2)

    def coarse(self, log: Log, share: float, steps: int = 0) -> list[str]:
        """Describe the columns whose rounding error exceeds a ``share`` of their range.

        Only columns with a range of more than ``steps`` steps of float32 count.
        """
        spread, size = self.high - self.low, np.maximum(np.abs(self.low), np.abs(self.high))
        changes = spread > np.maximum(CONSTANT * size, np.finfo(np.float32).tiny)
        changes &= spread > steps * np.spacing(size.astype(np.float32))
        columns = np.flatnonzero(changes & (self.error > share * spread))
        names = log.observation_names if len(log.observation_names) == np.size(spread) else range(np.size(spread))
        return [
            f"observation {names[i]!r} spans {self.low[i]:.12g} to {self.high[i]:.12g}, where float32 has only steps "
            f"of {np.spacing(np.float32(size[i])):g}"
            for i in columns
        ]


def refuse_other_count(what: str, said: int, there: int, title: str) -> None:
    """Refuse a data set that is not as large as its metadata say."""
    if said != there:
        raise UserError(f"{title}: {there} {what} are there, and its metadata say {said}; is the copy complete?")


OTHER_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def check_exists(path: Path, kind: str = "file") -> None:
    """Refuse a path that does not exist, or that is a pipe, a device or a socket, which might be read forever."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise UserError(f"{path}: no such {kind}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    other = OTHER_KINDS.get(stat.S_IFMT(mode))
    if other:
        raise UserError(f"{path}: {other}, not a {kind}: copy its content into a file")
