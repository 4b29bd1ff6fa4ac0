"""The time of a table's rows: reading it, showing it, and ending episodes at gaps."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edp.data.formats.arrow import Place, arrow_numbers
from edp.data.formats.pieces import Piece, with_following
from edp.errors import UserError

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SECONDS_TEXT = r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?"
ZONE = r"(Z|[-+]\d\d:?\d\d)$"
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}  # of times that are numbers
OLDEST_DATE, LAST_DATE = 1e8, 2.534e11  # seconds; other times are not shown as dates
YEAR_5000 = 95_617_584_000.0


def parse_duration(text: str, name: str) -> float:
    """Read a time such as ``5min`` or ``90 s`` in seconds; 0 if it is not given."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)?\s*([a-z]*)", text.strip().lower(), re.ASCII)
    unit = SECONDS.get(found[2] or "s") if found else None
    if text and (found is None or unit is None or not float(found[1] or 1)):
        raise UserError(f"`{name}` must be a time such as 30s, 5min or 2h, not {text!r}")
    return float(found[1] or 1) * unit if text and found and unit else 0.0


def show_duration(seconds: float) -> str:
    for name in ("w", "d", "h", "min", "s"):
        if seconds >= SECONDS[name] and abs(seconds / SECONDS[name] % 1) < 1e-6:
            return f"{seconds / SECONDS[name]:g} {name}"
    return (
        f"{seconds:.3g} s"
        if seconds < 120
        else f"{seconds / 60:.3g} min"
        if seconds < 7200
        else f"{seconds / 3600:.3g} h"
    )


def show_time(seconds: float) -> str:
    """Write a time as a date, if it can be one: numbers may also count from another start than 1970."""
    if not OLDEST_DATE < seconds < LAST_DATE:
        return f"{seconds:.12g}"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def arrow_times(column: Any, name: str, place: Place, time_format: str, may_be_empty: bool = False) -> np.ndarray:
    """Return a column of times in seconds: of numbers as they are, of dates since 1970. An empty cell becomes NaN."""
    if not may_be_empty:
        refuse_empty_times(column, name, place)
    if is_text(column):
        column = parse_texts(column, name, place, time_format)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
        return column.to_numpy(zero_copy_only=False) / 1e6
    times = arrow_numbers(column, name, place).astype(np.float64) * UNITS.get(time_format, 1.0)
    if times.ndim != 1 or not np.isfinite(times[~np.isnan(times)] if may_be_empty else times).all():
        raise UserError(f"{place.path}: column {name!r} must have one finite number or a date in each row")
    if time_format not in UNITS:
        refuse_other_units(times, name, place)
    return times


def refuse_empty_times(column: Any, name: str, place: Place) -> None:
    if column.null_count:
        at = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise UserError(
            f"{place.path}: column {name!r} has no time in {place.text(at)}, and maybe in others: fill such rows, or "
            f"leave them out with `missing={name}=drop`"
        )


def refuse_other_units(times: np.ndarray, name: str, place: Place) -> None:
    """Refuse numbers that are dates in the far future, if they are seconds: they are probably milliseconds."""
    late = times > YEAR_5000
    if late.any():
        at = int(np.argmax(late))
        unit = "ms" if times[at] < 1e3 * YEAR_5000 else "us" if times[at] < 1e6 * YEAR_5000 else "ns"
        raise UserError(
            f"{place.path}: column {name!r} has {times[at]:.15g} in {place.text(at)}, which would be after the year "
            f"5000 in seconds: say its unit with `time_format={unit}` (s, ms, us or ns)"
        )


def is_text(column: Any) -> bool:
    return pa.types.is_string(column.type) or pa.types.is_large_string(column.type)


def parse_texts(column: Any, name: str, place: Place, time_format: str) -> Any:
    """Parse texts with dates, or with numbers if no format is given. The first one tells which they are."""
    parse = parser_of(first_text(column), time_format)
    try:
        return parse(column)
    except pa.ArrowException:
        at = first_unparsed(column, parse)
    shown = f"{str(column[at].as_py())[:40]!r} in {place.text(at)}"
    if at + place.row:
        raise UserError(
            f"{place.path}: column {name!r} has {shown}, which is not a time like those before it: correct it"
        )
    raise UserError(
        f"{place.path}: column {name!r} has no times (say how they are written with `time_format`), such as {shown}"
    )


def parser_of(first: str, time_format: str) -> Callable[[Any], Any]:
    if time_format in UNITS or (not time_format and re.fullmatch(SECONDS_TEXT, first)):
        return lambda column: column.cast(pa.float64())
    if time_format:
        options = pc.StrptimeOptions(time_format, "us")
        return lambda column: pc.call_function("strptime", [column], options)
    kind = pa.timestamp("us", "UTC" if re.search(ZONE, first[10:]) else None)
    return lambda column: column.cast(kind)


def first_unparsed(column: Any, parse: Callable[[Any], Any]) -> int:
    """Return the first cell that cannot be parsed, by halving."""
    start, stop = 0, len(column)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            parse(column.slice(start, middle - start))
            start = middle
        except pa.ArrowException:
            stop = middle
    return start


def first_text(column: Any) -> str:
    return next((text.strip() for text in column.to_pylist() if text), "")


def is_zoned(column: Any, time_format: str) -> bool:
    """Return whether times have a zone, as the first of them shows. Numbers have none, and are those of UTC."""
    if not is_text(column):
        return getattr(column.type, "tz", None) is not None
    return "%z" in time_format if time_format else bool(re.search(ZONE, first_text(column)[10:]))


def are_dates(column: Any, time_format: str) -> bool:
    """Return whether times are dates, and not numbers."""
    if not is_text(column):
        return pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    return time_format not in UNITS if time_format else not re.fullmatch(SECONDS_TEXT, first_text(column))


def split_at_gaps(pieces: Iterator[Piece], max_gap: float) -> Iterator[Piece]:
    """End episodes as timeouts where time jumps by more than ``max_gap``, if that is not 0, or goes back."""
    for piece, following in with_following(pieces):
        change = np.diff(piece.times, append=np.nan if following is None else following.times[0])
        broken = (change < 0) | ((change > max_gap) if max_gap else False)
        piece.steps.timeouts[:] |= broken & ~piece.steps.terminals
        yield piece
