"""The time of a table's rows: reading it, ending episodes at gaps, and what looks wrong about it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edp.data.findings import Finding
from edp.data.formats.arrow import Place, arrow_numbers, refuse_empty_cells
from edp.data.formats.pieces import Piece, with_following
from edp.errors import UserError, counted, first_line, printable

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SECONDS_TEXT = r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?"
ZONE = r"(Z|[-+]\d\d:?\d\d)$"
MANY = 10_000  # different intervals that are counted one by one


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


def show_time(seconds: float, dates: bool) -> str:
    if not dates or not abs(seconds) < 2e11:
        return f"{seconds:.12g}"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def arrow_times(column: Any, name: str, place: Place, time_format: str) -> np.ndarray:
    """Return a column of times in seconds: of numbers as they are, of dates since 1970."""
    refuse_empty_cells(column, name, place)
    kind = column.type
    try:
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = parse_texts(column, time_format)
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
            return column.to_numpy(zero_copy_only=False) / 1e6
        times = arrow_numbers(column, name, place).astype(np.float64)
    except pa.ArrowException as error:
        shown = first_line(error)
        raise UserError(
            f"{place.path}: column {name!r} has no times (say how they are written with `time_format`): {shown}"
        ) from None
    if times.ndim != 1 or not np.isfinite(times).all():
        raise UserError(f"{place.path}: column {name!r} must have one finite number or a date in each row")
    return times


def parse_texts(column: Any, time_format: str) -> Any:
    """Parse texts with dates, or with numbers if no format is given."""
    if time_format:
        options = pc.StrptimeOptions(time_format, "us")
        return pc.call_function("strptime", [column], options)
    first = str(column[0].as_py()).strip()
    if re.fullmatch(SECONDS_TEXT, first):
        return column.cast(pa.float64())
    zoned = re.search(ZONE, first[10:])
    return column.cast(pa.timestamp("us", "UTC" if zoned else None))


def is_zoned(column: Any, time_format: str) -> bool:
    """Return whether times have a zone, as the first of them shows. Numbers have none, and are those of UTC."""
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return getattr(kind, "tz", None) is not None
    first = next((text for text in column.to_pylist() if text), "")
    return "%z" in time_format if time_format else bool(re.search(ZONE, first.strip()[10:]))


def are_dates(column: Any, time_format: str) -> bool:
    """Return whether times are dates, and not numbers."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    first = next((text for text in column.to_pylist() if text), "")
    return bool(time_format) or not re.fullmatch(SECONDS_TEXT, first.strip())


def split_at_gaps(pieces: Iterator[Piece], max_gap: float) -> Iterator[Piece]:
    """End episodes as timeouts where time jumps by more than ``max_gap``, if that is not 0, or goes back."""
    for piece, following in with_following(pieces):
        change = np.diff(piece.times, append=np.nan if following is None else following.times[0])
        broken = (change < 0) | ((change > max_gap) if max_gap else False)
        piece.steps.timeouts[:] |= broken & ~piece.steps.terminals
        yield piece


@dataclass
class TimeFacts:
    """What is known about the times of a table, collected while it is read."""

    dates: bool = False
    rows: int = 0
    back: int = 0  # rows that are earlier than the row before
    again: int = 0  # rows with the same time as the row before
    first_back: str = ""  # rows as messages name them
    first_again: str = ""
    changes: Counter[float] = field(
        default_factory=Counter
    )  # how often each positive interval within an episode occurs
    gap: tuple[float, str, float] = (0.0, "", 0.0)  # the longest one within an episode, the row after it and its time
    spans: list[tuple[float, float, str]] = field(default_factory=list)  # of the files

    def watch(self, pieces: Iterator[Piece], name: str, row_text: Callable[[int], str]) -> Iterator[Piece]:
        """Pass the pieces of a file on, and count. ``row_text`` names a row of the file."""
        last = first = np.nan
        ended = True
        for piece in pieces:
            times = np.append(last, piece.times)
            inside = ~np.append(ended, piece.steps.ends[:-1])
            self.add(np.diff(times), inside, piece, row_text)
            first = first if first == first else float(piece.times[0])
            last, ended = float(piece.times[-1]), bool(piece.steps.ends[-1])
            yield piece
        if first == first:
            self.spans.append((min(first, last), max(first, last), name))

    def add(self, change: np.ndarray, inside: np.ndarray, piece: Piece, row_text: Callable[[int], str]) -> None:
        back, again = change < 0, (change == 0) & inside
        if back.any() and not self.back:
            self.first_back = row_text(int(piece.source[np.argmax(back)]))
        if again.any() and not self.again:
            self.first_again = row_text(int(piece.source[np.argmax(again)]))
        self.back, self.again, self.rows = (
            self.back + int(back.sum()),
            self.again + int(again.sum()),
            self.rows + len(back),
        )
        forward = np.where(inside & (change > 0), change, 0.0)
        at = int(np.argmax(forward))
        if forward[at] > self.gap[0]:
            self.gap = float(forward[at]), row_text(int(piece.source[at])), float(piece.times[at])
        found, counts = np.unique(np.round(forward[forward > 0], 6), return_counts=True)
        if len(found) + len(self.changes) > MANY:  # irregular times: three digits suffice
            found = np.array([float(f"{each:.3g}") for each in found])
        for each, count in zip(found.tolist(), counts.tolist(), strict=True):
            self.changes[each] += count

    @property
    def newest_first(self) -> bool:
        return self.back > 0.5 * max(1, self.rows - 1)

    @property
    def usual(self) -> float:
        """The median interval."""
        intervals = sorted(self.changes)
        counts = np.cumsum([self.changes[each] for each in intervals])
        return intervals[int(np.searchsorted(counts, counts[-1] / 2))] if intervals else 0.0

    def findings(self) -> list[Finding]:
        if self.newest_first:
            return []  # it is refused
        usual, total = self.usual, sum(self.changes.values())
        found = []
        if self.back:
            what = f"time goes back {counted(self.back, 'time')}, first in {self.first_back}"
            found.append(Finding("warning", what, "an episode ends there: sort the rows, if they are in a wrong order"))
        if self.again:
            have = "has" if self.again == 1 else "have"
            what = f"{counted(self.again, 'row')} {have} the same time as the row before, first in {self.first_again}"
            found.append(
                Finding("warning", what, "rows that were logged twice? Leave them out, or average them with `every`")
            )
        if not usual:
            return found
        near = sum(count for each, count in self.changes.items() if abs(each / usual - 1) < 0.1) / total
        far = {each: count for each, count in self.changes.items() if each > (1.5 if near > 0.9 else 5) * usual}
        others = Counter({each: n for each, n in self.changes.items() if not 0.8 < each / usual < 1.25})
        other, times = others.most_common(1)[0] if others else (0.0, 0)
        if times > max(0.05 * total, 10):
            what = f"rows are {show_duration(usual)} apart, but {times:,} of {total:,} are {show_duration(other)} apart"
            effect = "a step would have two meanings: bring them to one rate with `every`"
            found.append(Finding("warning", what, effect))
        elif far:
            lost = round(sum((each / usual - 1) * count for each, count in far.items()))
            longest, row, time = self.gap
            what = (
                f"{counted(sum(far.values()), 'gap')} in time within episodes: about {counted(lost, 'row')} "
                f"{'is' if lost == 1 else 'are'} missing at one each {show_duration(usual)}; "
                f"the longest gap ({show_duration(longest)}) ends in {row}, "
                f"at {show_time(time, self.dates)}"
            )
            effect = "rows that are not neighbours are taken for one step: end the episodes there with `max_gap`"
            found.append(Finding("warning", what, effect))
        return found + self.overlaps()

    def overlaps(self) -> list[Finding]:
        spans = sorted(self.spans)
        for before, after in pairwise(spans):
            if after[0] < before[1]:
                names, start = [printable(span[2]) for span in (after, before)], show_time(after[0], self.dates)
                what = f"{names[0]} begins before {names[1]} ends, at {start}"
                return [Finding("warning", what, "the same time in two files: is a part of the log in both of them?")]
        return []
