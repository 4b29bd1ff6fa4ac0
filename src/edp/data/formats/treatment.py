"""What is done to the rows of a table before training, as the options of ``Columns`` say."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from edp.data.findings import Finding
from edp.data.formats.arrow import as_texts
from edp.data.formats.cleaning import calendar_names, leave_out, resampled, with_calendar, without_missing
from edp.data.formats.columns import CALENDAR, MISSING, RESAMPLE, ChosenColumns, Columns, way_of
from edp.data.formats.dialect import open_packed
from edp.data.formats.pieces import Piece
from edp.data.formats.sources import READ_ERRORS, Source
from edp.data.formats.time_facts import TimeFacts
from edp.data.formats.times import are_dates, is_zoned, parse_duration, split_at_gaps
from edp.data.signals import Encoding
from edp.errors import UserError, printable, unknown

MOST_TEXTS = 100  # different texts of a column that becomes columns of 0 and 1


@dataclass
class Treatment:
    """The steps between the rows of a file and those of the log, and what they found."""

    columns: Columns
    chosen: ChosenColumns
    categories: dict[str, list[str]]  # the different texts of each column in ``one_hot``, and of the operators
    max_gap: float
    every: float
    counts: Counter[str] = field(default_factory=Counter)
    times: TimeFacts = field(default_factory=TimeFacts)
    averaged: TimeFacts = field(default_factory=TimeFacts)  # the times after ``every``

    @property
    def changes_rows(self) -> bool:
        """Whether rows of the log may have other numbers than those of the file."""
        return bool(self.every or self.columns.newest_first or any("refuse" not in way for way in self.columns.missing))

    @property
    def drops_times(self) -> bool:
        """Whether rows without a time are left out."""
        return way_of([self.chosen.time_column], self.columns.missing, MISSING[0]) == "drop"

    def begin(self) -> None:
        self.counts.clear()
        self.times, self.averaged = TimeFacts(), TimeFacts()

    def apply(self, pieces: Iterator[Piece], name: str, row_text: Callable[[int], str]) -> Iterator[Piece]:
        """Treat the rows of one file. ``row_text`` names a row of it."""
        if self.every or self.columns.missing:
            pieces = self.without_lists(pieces)
        if self.drops_times:
            pieces = leave_out(pieces, lambda piece: np.isnan(piece.times), self.counts)
        if self.chosen.time_column:
            pieces = self.times.watch(split_at_gaps(pieces, self.max_gap), name, row_text)
        if self.every:
            pieces = resampled(pieces, self.every, self.ways(self.columns.resample, RESAMPLE[0]))
            pieces = self.averaged.watch(pieces, name, row_text)
        if self.columns.missing:
            ways = self.ways(self.columns.missing, MISSING[0])
            pieces = without_missing(pieces, ways, self.table_names(), self.counts)
        return with_calendar(pieces, self.columns.calendar) if self.columns.calendar else pieces

    def without_lists(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Refuse columns that hold lists, whose numbers have no names."""
        for piece in pieces:
            for part, names in self.names().items():
                columns = getattr(piece.steps, part)
                if columns is not None and columns[0].size != len(names):
                    raise UserError("`every` and `missing` do not go with columns that hold lists")
            yield piece

    def names(self) -> dict[str, list[str]]:
        """The name of each column of the steps' parts."""
        expanded = lambda names: [each for name in names for each in self.expanded(name)]  # noqa: E731
        return {
            "observations": expanded(self.chosen.observation_columns),
            "actions": list(self.chosen.action_columns),
            "rewards": [self.chosen.reward_column or "reward"],
            "next_observations": expanded(self.chosen.next_observation_columns),
        }

    def table_names(self) -> dict[str, list[str]]:
        """The table's column of each column of the steps' parts; empty for further texts of the same one."""
        firsts = {each: name for name in self.columns.one_hot for each in self.expanded(name)[:1]}
        others = {each for name in self.columns.one_hot for each in self.expanded(name)[1:]}
        named = dict.fromkeys(others, "") | firsts
        return {part: [named.get(name, name) for name in names] for part, names in self.names().items()}

    def expanded(self, name: str) -> list[str]:
        return [f"{name}={text}" for text in self.categories[name]] if name in self.columns.one_hot else [name]

    def observation_names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the log's observations."""
        return tuple(each for name in names for each in self.expanded(name)) + calendar_names(self.columns.calendar)

    def encoding(self, source: Source) -> Encoding:
        """How a row of a table becomes an observation."""
        columns, time = self.columns, self.chosen.time_column if self.columns.calendar else ""
        used = [name for name in (*self.chosen.observation_columns, time) if self.expanded(name)]
        return Encoding(
            texts={name: tuple(self.categories[name]) for name in columns.one_hot if self.categories[name]},
            time_column=time,
            time_format=columns.time_format if time else "",
            calendar=columns.calendar,
            unused=tuple(name for name in source.names if name not in used),
            filled=self.filled(),
            empty=source.empty_texts(columns),
            zoneless=bool(time) and has_no_zone(source, time, columns),
        )

    def filled(self) -> tuple[str, ...]:
        """The observations whose empty cells have the number above them."""
        ways = self.ways(self.columns.missing, MISSING[0])["observations"]
        return tuple(name for name, way in zip(self.names()["observations"], ways, strict=True) if way == "ffill")

    def ways(self, given: tuple[str, ...], default: str) -> dict[str, list[str]]:
        """How each column is treated: ``HOW`` for all columns, and ``COLUMN=HOW`` for one."""
        owners = {each: name for name in self.columns.one_hot for each in self.expanded(name)}
        return {
            part: [way_of([name, owners.get(name, "")], given, default) for name in names]
            for part, names in self.names().items()
        }

    def refusals(self, name: str) -> list[str]:
        turn = "the rows are newest first: turn them with `newest_first`"
        if self.columns.newest_first:
            turn = "the rows are not newest first: leave `newest_first` out"
        return [f"{name}: {turn}"] if self.times.newest_first else []

    def findings(self, sources: list[Source]) -> list[Finding]:
        """What was found while all rows were read."""
        remarks = Counter(remark for source in sources for remark in source.remarks)
        said = [
            f"{remark} ({count} of {len(sources)} files)" if len(sources) > 1 else remark
            for remark, count in remarks.items()
        ]
        said += [f"{what}: {count:,}" for what, count in self.counts.items() if count]
        notes = [Finding("note", what, "this was understood: nothing to do") for what in said]
        gaps = self.averaged.gaps() if self.every else []
        return [*same_files(sources), *self.times.findings(self.every), *gaps, *notes]

    def span(self) -> str:
        """The rate of the rows, and their first and last time; empty without a time."""
        return (self.averaged if self.every else self.times).span()


def plan_treatment(columns: Columns, chosen: ChosenColumns, sources: list[Source]) -> Treatment:
    """Check the options, and look for the texts of columns in ``one_hot``."""
    timed = {"max_gap": columns.max_gap, "every": columns.every, "calendar": columns.calendar}
    for name, value in timed.items():
        if value and not chosen.time_column:
            raise UserError(f"`{name}` needs the column of the time: say it with `time_column`")
    for name in columns.calendar:
        if name not in CALENDAR:
            raise unknown("choice of `calendar`", name, CALENDAR)
    if columns.calendar and chosen.next_observation_columns:
        raise UserError("`calendar` does not go with `next_observation_columns`, whose time is unknown")
    for name in columns.one_hot:
        if name not in chosen.observation_columns:
            raise UserError(f"`one_hot`: {name!r} is not one of the observed columns")
    max_gap, every = parse_duration(columns.max_gap, "max_gap"), parse_duration(columns.every, "every")
    textual = [*columns.one_hot, *filter(None, [chosen.operator_column])]
    categories = {name: find_texts(name, sources) for name in textual}
    treatment = Treatment(columns, chosen, categories, max_gap, every)
    if columns.resample and not columns.every:
        raise UserError("`resample` says how rows become one: say of which time each, with `every`")
    if f"{chosen.time_column}=ffill" in columns.missing:
        raise UserError(f"`missing`: a time cannot be filled: leave such rows out with `{chosen.time_column}=drop`")
    named = {name for names in treatment.names().values() for name in names} | {*columns.one_hot}
    named |= {chosen.time_column} - {""}
    for option, known in (("resample", RESAMPLE), ("missing", MISSING)):
        for given in getattr(columns, option):
            column, _, way = given.rpartition("=")
            if way not in known:
                raise unknown(f"choice of `{option}`", way, known)
            if column and column not in named:
                raise unknown(f"column in `{option}`", column, sorted(named))
    return treatment


def find_texts(name: str, sources: list[Source]) -> list[str]:
    """Return the different texts of a column over all files, sorted."""
    only = ChosenColumns((name,), (), "", "", "", "", (), "")
    texts: set[str] = set()
    for source in sources:
        try:
            for batch in source.batches(only, Columns(one_hot=(name,))):
                texts.update(text for text in as_texts(batch.column(name)).unique().to_pylist() if text is not None)
                if len(texts) > MOST_TEXTS:
                    raise UserError(f"{source.path}: column {name!r} has more than {MOST_TEXTS} different texts")
        except READ_ERRORS as error:
            raise source.error(error) from None
    return sorted(texts)


def has_no_zone(source: Source, time: str, columns: Columns) -> bool:
    """Return whether the first times of a file are dates without a zone."""
    only = ChosenColumns((), (), "", "", "", "", (), time)
    try:
        for batch in source.batches(only, columns):
            if batch.num_rows:
                first = batch.column(time).slice(0, 100)
                return are_dates(first, columns.time_format) and not is_zoned(first, columns.time_format)
    except READ_ERRORS as error:
        raise source.error(error) from None
    return False


def same_files(sources: list[Source]) -> list[Finding]:
    """Look for files with the same content."""
    if len(sources) == 1:
        return []  # maybe a table in memory
    sizes = Counter(source.path.stat().st_size for source in sources)
    seen: dict[bytes, Path] = {}
    for source in sources:
        if sizes[source.path.stat().st_size] > 1:
            with open_packed(source.path) as file:
                digest = hashlib.file_digest(file, "sha256").digest()
            first = seen.setdefault(digest, source.path)
            if first != source.path:
                what = f"{printable(source.path.name)} has the same content as {printable(first.name)}"
                effect = "its steps count twice, and held-out episodes are also learned from: leave one of them out"
                return [Finding("warning", what, effect)]
    return []
