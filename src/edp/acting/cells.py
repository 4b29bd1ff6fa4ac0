"""The cells of observations by name: numbers, texts and times, as a file has them."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from edp.errors import UserError, printable

OBSERVATION = Path("the observation")  # stands for a file in messages


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


def numbers_among(texts: Iterable[str]) -> list[float]:
    """The numbers among some texts, such as -9999 for an empty cell."""
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(float(text))
    return [number for number in found if np.isfinite(number)]


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
