"""Tables with a row for each step: CSV, Parquet, JSON and Excel files, or a folder of them.

Columns hold numbers, or (in Parquet) lists with the same number of numbers in each row. A new episode begins where the
column ``episode`` changes, after a terminal or a timeout, at a gap in time, and with each file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from edp.data.checks import check_exists
from edp.data.dataset import read_steps
from edp.data.formats import Format, table_suffixes
from edp.data.formats.arrow import number_names
from edp.data.formats.columns import ChosenColumns, Columns, choose_columns, columns_from
from edp.data.formats.pieces import Piece
from edp.data.formats.rows import read_pieces
from edp.data.formats.sources import READ_ERRORS, Source, kind_of, open_parquet, open_source, refuse_names_twice
from edp.data.formats.treatment import Treatment, plan_treatment
from edp.data.log import Log, Steps, plain_numbers
from edp.errors import UserError, printable
from edp.files import replacing

OTHERS = {".bz2", ".xz", ".zst", ".zip", ".feather", ".npy", ".npz", ".hdf5", ".h5"}


@dataclass
class Table:
    """A file, or all files of a folder in the order of their names, and what was found while they were read."""

    name: str
    sources: list[Source]
    columns: Columns
    chosen: ChosenColumns
    treatment: Treatment
    refused: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # the first row of each file that has been read
    rows: list[np.ndarray] = field(default_factory=list)  # the row of its file for each row, if some were left out
    times: np.ndarray | None = None  # of the rows that were yielded last

    def pieces(self) -> Iterator[Steps]:
        for found in (self.refused, self.starts, self.rows):
            found.clear()
        self.treatment.begin()
        row = 0
        for source in self.sources:
            self.starts.append(row)
            for piece in self.file_pieces(source):
                if self.treatment.changes_rows:
                    self.rows.append(piece.source)
                row += len(piece.times)
                self.times = piece.times if self.chosen.time_column else None
                yield piece.steps
        self.refused += self.treatment.refusals(self.name)

    def file_pieces(self, source: Source) -> Iterator[Piece]:
        """Yield the rows of a file, in order of time and clean."""
        pieces = read_pieces(source, self.columns, self.chosen, self.treatment.categories, self.refused.append)
        try:
            yield from self.treatment.apply(pieces, source.path.name, partial(self.file_row_text, source))
        except READ_ERRORS as error:
            raise source.error(error) from None

    def row_text(self, row: int) -> str:
        """Name a row of the log by its place in its file."""
        number = int(np.searchsorted(self.starts, row, "right")) - 1
        at = int(np.concatenate(self.rows)[row]) if self.rows else row - self.starts[number]
        return self.file_row_text(self.sources[number], at)

    def file_row_text(self, source: Source, at: int) -> str:
        """Name a row of a file, with the file if there are several."""
        of_file = f" of {printable(source.path.name)}" if len(self.sources) > 1 else ""
        return source.row_text(at).replace(f"row {at}", f"row {at}{of_file}", 1)


def open_table(path: Path, columns: Columns = Columns()) -> Log:  # noqa: B008  (it is frozen)
    """Open a file, or all files of a folder in the order of their names."""
    return log_of_sources(str(path), [open_source(file, columns) for file in table_files(path)], columns)


def open_frame(frame: Any, columns: Columns) -> Log:
    """Open a table in memory: a data frame of pandas or Polars, a table of Arrow, or a mapping of columns."""
    name = type(frame).__name__
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, KeyError, ImportError) as error:
        why = "; ".join(str(part).splitlines()[0] for part in error.args if str(part))
        raise UserError(f"{name}: not a table ({why}); data is a file, a log, a data frame or an Arrow table") from None
    refuse_names_twice(table.column_names, name)
    return log_of_sources(name, [Source(Path(name), table.column_names, table=table)], columns)


def log_of_sources(name: str, sources: list[Source], columns: Columns) -> Log:
    """Make a log of the tables with these sources, one after the other."""
    first = sources[0]
    chosen = choose_columns(columns, first.names, first.path)
    for other in sources[1:]:
        refuse_missing_columns(chosen.all, other.names, other.path, first.path)
        refuse_missing_columns(choose_columns(columns, other.names, other.path).all, chosen.all, first.path, other.path)
    parquet = kind_of(first.path) == "parquet"
    schema = open_parquet(first.path).schema_arrow if parquet else first.table.schema if first.table else None
    numbered = lambda names: number_names(schema, names) if schema else names  # noqa: E731
    treatment = plan_treatment(columns, chosen, sources)
    table = Table(name, sources, columns, chosen, treatment)
    return Log(
        name=name,
        pieces=table.pieces,
        refused=table.refused,
        row_text=table.row_text,
        piece_times=lambda: table.times,
        size=sum(open_parquet(source.path).metadata.num_rows for source in sources) if parquet else 0,
        observation_names=treatment.observation_names(numbered(chosen.observation_columns)),
        action_names=numbered(chosen.action_columns),
        encoding=treatment.encoding(first),
        operator_names=tuple(treatment.categories.get(chosen.operator_column, ())),
        left_out=tuple(printable(name) for name in first.names if name not in chosen.all),
        findings=lambda: treatment.findings(sources),
        span=treatment.span,
    )


def refuse_missing_columns(wanted: list[str], there: list[str], file: Path, other: Path) -> None:
    """Check that a file of a folder has every column that is used in another one."""
    missing = [name for name in wanted if name not in there]
    if missing:
        raise UserError(f"{file}: no column {missing[0]!r}, which {other.name} has")


def table_files(path: Path) -> list[Path]:
    check_exists(path)
    if not path.is_dir():
        return [path]
    try:
        entries = sorted(entry for entry in path.iterdir() if entry.name[0] != ".")
        unread = [entry.name for entry in entries if is_unread(entry)]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    files = [entry for entry in entries if kind_of(entry) and entry.name not in unread]
    kinds = sorted({kind_of(file) for file in files})
    if len(kinds) > 1:
        raise UserError(
            f"{path}: both {kinds[0]} and {kinds[1]} files in this folder; put each kind into a separate folder"
        )
    if unread:
        raise UserError(
            f"{path}: {printable(unread[0])} in this folder would not be read; tables are {table_suffixes()} files, "
            "and all in one folder"
        )
    if not files:
        raise UserError(f"{path}: no table ({table_suffixes()}) in this folder")
    for file in files:
        check_exists(file)
    return files


def is_unread(entry: Path) -> bool:
    """Return whether this entry of a folder is data that is not read, though users may expect it."""
    if entry.is_dir():
        return any(kind_of(inner) or {*inner.suffixes} & OTHERS for inner in (entry, *entry.rglob("*")))
    return not kind_of(entry) and entry.suffix.lower() in OTHERS


def write_table(name: str, log: Log) -> str:
    """Write a log with the names of its columns, after the prefixes that are read by default."""
    parquet = Path(name).suffix.lower() == ".parquet"
    if not parquet:
        refuse_names_on_two_lines(name, log)
    steps, columns = read_steps(log), {}
    for prefix, wide, names in (
        ("observation_", steps.observations, log.observation_names),
        ("action_", steps.actions, log.action_names),
        ("next_observation_", steps.next_observations, log.observation_names),
    ):
        if wide is not None:
            written = [prefix + name.removeprefix(prefix.removeprefix("next_")) for name in names]
            if len(set(written)) != wide.shape[1]:
                written = [f"{prefix}{i}" for i in range(wide.shape[1])]
            columns |= {name: np.ascontiguousarray(plain_numbers(wide[:, i])) for i, name in enumerate(written)}
    columns |= {"reward": plain_numbers(steps.rewards), "terminal": steps.terminals, "timeout": steps.timeouts}
    with replacing(Path(name)) as part:
        (pq.write_table if parquet else pa_csv.write_csv)(pa.table(columns), part)
    return name


def refuse_names_on_two_lines(name: str, log: Log) -> None:
    for column in (*log.observation_names, *log.action_names):
        if [column] != column.splitlines():
            raise UserError(f"{name}: a CSV file cannot have a column called {column!r}, on two lines: write .parquet")


FORMAT = Format(
    open=lambda name, columns, episode_limit: open_table(Path(name), columns_from(columns)),
    write=write_table,
    named_columns=True,
)
