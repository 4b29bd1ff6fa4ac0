"""Observations by name: mappings, and rows or tables of pandas, Polars and Arrow, as rows of numbers.

Texts and times become numbers as in training.
"""

from datetime import datetime
from typing import Any

import numpy as np

from edp.acting.cells import as_list, as_text, as_times, is_number, numbers_among, object_cells, readable
from edp.data.log import LARGEST
from edp.data.signals import NUMBER, TEXT, TIME, Signals
from edp.errors import UserError, first_line, printable, unknown


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
        self.empty_numbers = numbers_among(signals.encoding.empty)

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
                if single and kind == NUMBER and self.is_plain_number(cells[name]):
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

    def is_plain_number(self, cell: Any) -> bool:
        return isinstance(cell, float | int) and abs(cell) < LARGEST and cell not in self.empty_numbers

    def with_empty_cells(self, column: Any) -> Any:
        """A column in which what means an empty cell in the log is None, or NaN among numbers."""
        empty, cells = self.signals.encoding.empty, np.asarray(column)
        if cells.dtype.kind in "iuf" and self.empty_numbers:
            return np.where(np.isin(cells, self.empty_numbers), np.nan, cells)
        if not empty or cells.dtype.kind in "biuf":
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
