"""What looks wrong about the times of a table."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from edp.data.findings import Finding
from edp.data.formats.pieces import Piece
from edp.data.formats.times import show_duration, show_time
from edp.errors import counted, printable

MANY = 10_000  # different intervals that are counted one by one
HOUR = 3600.0
CLOCK_CHANGE = "; it is one hour: a clock change? Log in UTC, or with the zone"


@dataclass
class TimeFacts:
    """What is known about the times of a table, collected while it is read."""

    rows: int = 0
    back: int = 0  # rows that are earlier than the row before
    again: int = 0  # rows with the same time as the row before
    first_back: str = ""  # rows as messages name them
    change_back: float = 0.0  # of time, in that row
    first_again: str = ""
    changes: Counter[float] = field(default_factory=Counter)  # how often each interval within an episode occurs
    gap: tuple[float, Callable[[], str], float] = (0.0, str, 0.0)  # the longest one, the row after it and its time
    lowest: float = np.inf
    highest: float = -np.inf
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
            self.lowest, self.highest = min(self.lowest, piece.times.min()), max(self.highest, piece.times.max())
            last, ended = float(piece.times[-1]), bool(piece.steps.ends[-1])
            yield piece
        if first == first:
            self.spans.append((min(first, last), max(first, last), name))

    def add(self, change: np.ndarray, inside: np.ndarray, piece: Piece, row_text: Callable[[int], str]) -> None:
        back, again = change < 0, (change == 0) & inside
        if back.any() and not self.back:
            self.first_back = row_text(int(piece.source[np.argmax(back)]))
            self.change_back = float(change[np.argmax(back)])
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
            self.gap = float(forward[at]), partial(row_text, int(piece.source[at])), float(piece.times[at])
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

    def findings(self, every: float = 0.0) -> list[Finding]:
        """What looks wrong. ``every`` is the time over which rows are averaged, before which these are the times."""
        if self.newest_first:
            return []  # it is refused
        found = [*self.order(every), *self.overlaps()]
        if every:
            return found + self.averaged(every)
        rate = self.other_rate()
        return found + (rate or self.gaps())

    def order(self, every: float) -> list[Finding]:
        """Times that go back, or that are there again."""
        found = []
        if self.back:
            what = f"time goes back {counted(self.back, 'time')}, first in {self.first_back}"
            what += CLOCK_CHANGE if self.is_hour(self.change_back, -HOUR) else ""
            found.append(Finding("warning", what, "an episode ends there: sort the rows, if they are in a wrong order"))
        if self.again:
            have = "has" if self.again == 1 else "have"
            what = f"{counted(self.again, 'row')} {have} the same time as the row before, first in {self.first_again}"
            effect = "rows that were logged twice? Leave them out, or average them with `every`"
            found.append(Finding("note", what, "`every` averages them") if every else Finding("warning", what, effect))
        return found

    def is_hour(self, change: float, hour: float) -> bool:
        """Return whether a change of time is the usual one and an hour."""
        return bool(self.usual) and abs(change - hour - self.usual) < 1e-3 * HOUR

    def other_rate(self) -> list[Finding]:
        """Many intervals of another length than the usual one."""
        total = sum(self.changes.values())
        others = Counter({each: n for each, n in self.changes.items() if not 0.8 < each / self.usual < 1.25})
        other, times = others.most_common(1)[0] if others else (0.0, 0)
        if times <= max(0.05 * total, 10):
            return []
        usual, far = show_duration(self.usual), show_duration(other)
        what = f"rows are {usual} apart, but {times:,} of {total:,} are {far} apart"
        return [Finding("warning", what, "a step would have two meanings: bring them to one rate with `every`")]

    def gaps(self) -> list[Finding]:
        usual, total = self.usual, sum(self.changes.values())
        if not usual:
            return []
        near = sum(count for each, count in self.changes.items() if abs(each / usual - 1) < 0.1) / total
        far = {each: count for each, count in self.changes.items() if each > (1.5 if near > 0.9 else 5) * usual}
        if not far:
            return []
        lost = round(sum((each / usual - 1) * count for each, count in far.items()))
        longest, row, time = self.gap
        what = (
            f"{counted(sum(far.values()), 'gap')} in time within episodes: about {counted(lost, 'row')} "
            f"{'is' if lost == 1 else 'are'} missing at one each {show_duration(usual)}; "
            f"the longest gap ({show_duration(longest)}) ends in {row()}, at {show_time(time)}"
        )
        what += CLOCK_CHANGE if self.is_hour(longest, HOUR) else ""
        effect = "rows that are not neighbours are taken for one step: end the episodes there with `max_gap`"
        return [Finding("warning", what, effect)]

    def averaged(self, every: float) -> list[Finding]:
        """What ``every`` does to the rate of the rows."""
        if self.usual > 1.01 * every:
            what = f"rows are {show_duration(self.usual)} apart: none are averaged over {show_duration(every)}"
            return [Finding("note", what, "`every` changes nothing: choose a longer time, or leave it out")]
        return [each._replace(level="note", effect="`every` brings them to one rate") for each in self.other_rate()]

    def span(self) -> str:
        """The rate and the first and the last time."""
        if not self.spans:
            return ""
        rate = f"one row each {show_duration(self.usual)}, " if self.usual else ""
        return f"{rate}{show_time(self.lowest)} to {show_time(self.highest)}"

    def overlaps(self) -> list[Finding]:
        spans = sorted(self.spans)
        for before, after in pairwise(spans):
            if after[0] < before[1]:
                names, start = [printable(span[2]) for span in (after, before)], show_time(after[0])
                what = f"{names[0]} begins before {names[1]} ends, at {start}"
                return [Finding("warning", what, "the same time in two files: is a part of the log in both of them?")]
        return []
