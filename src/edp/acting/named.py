"""Observations by name: mappings, and rows or tables of pandas, Polars and Arrow, as rows of numbers.

Texts and times become numbers as in training.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from edp.data.log import LARGEST
from edp.data.signals import NUMBER, TEXT, TIME, Signals
from edp.errors import UserError, first_line, printable, unknown

OBSERVATION = Path("the observation")  # stands for a file in messages


def names_of(obs: Any) -> list[str] | None:
    """The names in an observation or in a table of them; None for arrays and lists."""
    if isinstance(obs, np.ndarray | list | tuple):
        return None
    for attribute in ("column_names", "columns"):  # of Arrow; of pandas and Polars
        found = getattr(obs, attribute, None)
        if found is not None:
            break
    else:
        found = obs.keys() if hasattr(obs, "keys") else None
    names = None if found is None else list(found)
    return names if names is None or not names or any(isinstance(name, str) for name in names) else None


def with_index(obs: Any, time_column: str) -> Any:
    """A table of pandas with its named index as columns; a row of one with its time, if that was in the index."""
    if not hasattr(obs, "reset_index"):
        return obs
    if hasattr(obs, "columns"):
        named = all(name is not None and name not in obs.columns for name in obs.index.names)
        return obs.reset_index() if named else obs
    timed = time_column and time_column not in obs.index and isinstance(obs.name, datetime)
    return {**obs.to_dict(), time_column: obs.name} if timed else obs


class Encoder:
    """Makes rows of numbers from observations by name."""

    def __init__(self, signals: Signals):
        self.signals, self.inputs = signals, signals.inputs()
        self.names = [each.name for each in self.inputs]
        self.known = {*self.names, *signals.encoding.unused}

    def rows(self, obs: Any, names: list[str], faults: list[str] | None = None) -> tuple[np.ndarray, bool]:
        """The observations as rows of float32, and whether there is only one, of single values.

        A cell that cannot be read is an error. If there is a list of ``faults``, the cell becomes Inf instead, and the
        error is added.
        """
        self.check_names(names)
        cells = {name: obs[name] for name in self.names}
        sizes = {name: np.shape(cell) for name, cell in cells.items()}
        first = next(iter(sizes.values()))
        for name, size in sizes.items():
            if size != first or len(size) > 1:
                lengths = f"shape {size} and {printable(self.names[0])!r} shape {first}"
                raise UserError(
                    f"the observation's {printable(name)!r} has {lengths}: give one value of each, or columns"
                )
        single = not first
        rows = np.empty((1 if single else first[0], len(self.signals.observations)), np.float32)
        with np.errstate(over="ignore"):  # what is too large becomes Inf, which is refused
            for name, kind, numbers in self.inputs:
                if single and kind == NUMBER and isinstance(cells[name], float | int) and abs(cells[name]) < LARGEST:
                    rows[0, numbers] = cells[name]  # as below, and faster
                    continue
                column = [cells[name]] if single else cells[name]
                convert = {TEXT: self.marks, TIME: self.calendar}.get(kind, self.numbers)
                rows[:, numbers] = convert(name, column) if faults is None else readable(convert, name, column, faults)
        return rows, single

    def array_rows(self, obs: Any) -> tuple[np.ndarray, bool]:
        """Observations without names as rows of float32, and whether there is only one."""
        try:
            with np.errstate(over="ignore"):  # what is too large becomes Inf, which is refused
                obs = np.asarray(obs, np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise UserError(f"observations are numbers, or have names: {first_line(error)}") from None
        rows, width = obs[None] if obs.ndim == 1 else obs, len(self.signals.observations)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise UserError(f"observations have {width} numbers, not shape {obs.shape}")
        return rows, obs.ndim == 1

    def check_names(self, names: list[str]) -> None:
        missing = [name for name in self.names if name not in names]
        for name in names:
            if name not in self.known:
                raise unknown("observation", printable(str(name)), map(printable, missing or self.names))
        if missing:
            needed = ", ".join(printable(name) for name in self.names)
            raise UserError(f"the observation has no {printable(missing[0])!r}: the policy sees {needed}")

    def numbers(self, name: str, column: Any) -> np.ndarray:
        """A column of numbers; an empty cell (None) becomes NaN."""
        cells = np.asarray(self.with_empty_cells(column))
        texts = cells.dtype.kind in "USM" or any(isinstance(cell, str | bytes) for cell in object_cells(cells))
        try:
            if texts:
                raise ValueError
            return cells.astype(np.float64)[:, None]
        except (TypeError, ValueError, OverflowError):
            shown = repr(next((cell for cell in cells.tolist() if not is_number(cell)), column))[:60]
            raise UserError(f"the observation's {printable(name)!r} must be a number, not {shown}") from None

    def with_empty_cells(self, column: Any) -> Any:
        """A column in which texts that mean an empty cell in the log are None."""
        empty = self.signals.encoding.empty
        if not empty or np.asarray(column).dtype.kind in "biuf":
            return column
        return [None if isinstance(cell, str) and cell in empty else cell for cell in as_list(column)]

    def marks(self, name: str, column: Any) -> np.ndarray:
        """A text as 0 and 1, in a column for each text of the training data; an empty cell becomes NaN."""
        texts = self.signals.encoding.texts[name]
        found = np.zeros((len(column), len(texts)))
        for row, cell in enumerate(column):
            text = as_text(cell)
            if text is None or text in self.signals.encoding.empty:
                found[row] = np.nan
            elif text in texts:
                found[row, texts.index(text)] = 1
            else:
                known = ", ".join(repr(printable(each)) for each in texts)
                raise UserError(
                    f"the observation's {printable(name)!r} is {printable(text)!r}, which is not in the training data: "
                    f"it has {known}"
                )
        return found

    def calendar(self, name: str, column: Any) -> np.ndarray:
        """The sine and the cosine of times."""
        from edp.data.formats.cleaning import calendar_columns

        times = as_times(name, column, self.signals.encoding.time_format, self.signals.encoding.zoneless)
        return np.concatenate([calendar_columns(times, each) for each in self.signals.encoding.calendar], axis=1)


def readable(convert: Callable[[str, Any], np.ndarray], name: str, column: Any, faults: list[str]) -> np.ndarray:
    """Convert a column; cells that cannot be read become Inf, which is outside of all data and never filled."""
    try:
        return convert(name, column)
    except UserError as error:
        faults.append(str(error))
    found = []
    for cell in as_list(column):
        try:
            found.append(convert(name, [cell]))
        except UserError:
            found.append(np.full((1, 1), np.inf))
    width = max(row.shape[1] for row in found)
    return np.concatenate([np.broadcast_to(row, (1, width)) for row in found])


def as_list(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def object_cells(cells: np.ndarray) -> list[Any]:
    return cells.tolist() if cells.dtype.kind == "O" else []


def is_number(cell: Any) -> bool:
    try:
        return not isinstance(cell, str | bytes) and np.isfinite(float(cell))
    except (TypeError, ValueError, OverflowError):
        return False


def as_text(cell: Any) -> str | None:
    """A text as it is read from a file; numbers and booleans are written as texts in the same way."""
    if isinstance(cell, str):
        return cell
    import pyarrow as pa

    from edp.data.formats.arrow import as_texts

    try:
        return as_texts(pa.array([cell.as_py() if hasattr(cell, "as_py") else cell]))[0].as_py()
    except pa.ArrowException:
        return str(cell)


def as_times(name: str, column: Any, time_format: str, zoneless: bool = False) -> np.ndarray:
    """Times in seconds, as they are read from a file: of texts, dates and numbers. ``zoneless``: a zone is refused."""
    import pyarrow as pa

    from edp.data.formats.arrow import Place
    from edp.data.formats.times import arrow_times, is_zoned

    try:
        cells = np.asarray(column)
        if cells.dtype.kind == "M":
            cells = cells.astype("datetime64[us]")
        times = pa.array(cells if cells.dtype.kind != "O" else cells.tolist())
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("us", times.type.tz), safe=False)
        has_zone = zoneless and is_zoned(times, time_format)
        seconds = arrow_times(times, name, Place(OBSERVATION, 0), time_format)
    except (pa.ArrowException, UserError, TypeError, ValueError, OverflowError):
        written = time_format or "2026-03-02 06:00"
        shown = ", ".join(map(repr, list(column)[:3]))
        raise UserError(
            f"the observation's {printable(name)!r} must be a time as in the log ({written}), a datetime, or seconds, "
            f"not {printable(shown)[:60]}"
        ) from None
    if has_zone:
        raise UserError(
            f"the observation's {printable(name)!r} has a time zone, and the times of the log have none: give the time "
            "on the clock of the log, without a zone"
        )
    return seconds
