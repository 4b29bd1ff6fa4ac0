"""Reading the columns of one file as Arrow batches: CSV, Parquet, JSON lines and Excel."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from edp.data.formats import csv_faults
from edp.data.formats.arrow import arrow_reader
from edp.data.formats.columns import ChosenColumns, Columns
from edp.data.formats.csv_faults import encoding_hint
from edp.data.formats.dialect import Dialect, has_gzip, is_packed, is_plain, read_dialect
from edp.data.formats.excel import read_excel
from edp.data.formats.json_lines import json_batches, json_names
from edp.data.log import PIECE
from edp.errors import UserError, first_line

TRUE, FALSE = ["1", "1.0", "true", "True", "TRUE"], ["0", "0.0", "false", "False", "FALSE"]
READ_ERRORS = (
    *(pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError, EOFError, zlib.error),
)
KINDS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".jsonl": "json", ".ndjson": "json", ".xlsx": "excel"}
PACKABLE = ("csv", "json")


def kind_of(path: Path) -> str:
    """Return how a file is read, from its suffix: the one before .gz, if it is packed. Empty if it is not a table."""
    kind = KINDS.get(Path(path.stem).suffix.lower() if is_packed(path) else path.suffix.lower(), "")
    return "" if is_packed(path) and kind not in PACKABLE else kind


@dataclass(frozen=True)
class Source:
    """One file of a table: the names of its columns, and how it is written."""

    path: Path
    names: list[str]
    dialect: Dialect | None = None  # of a CSV file
    table: pa.Table | None = None  # the content of an Excel file, or a table in memory

    @property
    def remarks(self) -> list[str]:
        """What is unusual about the file, and was understood."""
        said = self.dialect.remarks if self.dialect else []
        packed = has_gzip(self.path) if self.dialect else is_packed(self.path)
        return [*said, *(["it is packed with gzip"] if packed else [])]

    def empty_texts(self, columns: Columns) -> tuple[str, ...]:
        """The texts that are read as an empty cell."""
        return (*pa_csv.ConvertOptions().null_values, *columns.missing_texts) if self.dialect else ()

    def row_text(self, row: int) -> str:
        line = f" (line {csv_faults.line_of_row(self.path, row, self.dialect)})" if self.dialect else ""
        return f"row {row}{line}"

    def batches(self, chosen: ChosenColumns, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Yield the columns that are used, some rows at a time."""
        if self.table is not None:
            return iter(self.table.select(chosen.all).to_batches(PIECE))
        if kind_of(self.path) == "json":
            return json_batches(self.path, chosen.all)
        if self.dialect is None:
            return open_parquet(self.path).iter_batches(PIECE, columns=chosen.all)
        return csv_batches(self.path, self.dialect, csv_kinds(chosen, columns), self.empty_texts(columns))

    def error(self, error: Exception) -> UserError:
        """Explain why the file cannot be read."""
        fault = None
        if self.dialect and isinstance(error, pa.ArrowInvalid):
            fault = csv_faults.csv_fault(self.path, str(error), self.dialect)
        return fault or UserError(f"{self.path}: cannot be read ({first_line(error)}){encoding_hint(error)}")


def open_source(path: Path, columns: Columns) -> Source:
    """Read the names of a file's columns."""
    kind = kind_of(path)
    try:
        if kind == "parquet":
            source = Source(path, list(open_parquet(path).schema_arrow.names))
        elif kind == "json":
            source = Source(path, json_names(path))
        elif kind == "excel":
            table = read_excel(path)
            source = Source(path, table.column_names, table=table)
        else:
            dialect = read_dialect(path, columns)
            source = Source(path, list(dialect.names), dialect)
    except READ_ERRORS as error:
        wanted = "CSV file with a line of names first" if kind == "csv" else f"{kind} file"
        raise UserError(f"{path}: not a {wanted} ({first_line(error)}){encoding_hint(error)}") from None
    refuse_names_twice(source.names, path)
    return source


def refuse_names_twice(names: list[str], where: Path | str) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{where}: two columns are called {twice[0]!r}")


def open_parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, pre_buffer=False)  # a buffer would read the whole file ahead
    except READ_ERRORS as error:
        raise UserError(f"{path}: not a Parquet file, or a damaged one ({first_line(error)})") from None


def csv_kinds(chosen: ChosenColumns, columns: Columns) -> dict[str, Any]:
    """The type of each column that is read from a CSV file."""
    kinds: dict[str, Any] = {name: pa.float64() for name in chosen.all}
    kinds |= {name: pa.bool_() for name in (chosen.terminal_column, chosen.timeout_column) if name}
    texts = (chosen.episode_column, chosen.time_column, chosen.operator_column, *columns.one_hot)
    return kinds | {name: pa.string() for name in texts if name}


def csv_batches(
    path: Path, dialect: Dialect, kinds: dict[str, Any], empty: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    convert = pa_csv.ConvertOptions(
        column_types=kinds,
        include_columns=list(kinds),
        true_values=TRUE,
        false_values=FALSE,
        strings_can_be_null=True,
        decimal_point=dialect.decimal,
        null_values=empty,
    )
    parse = pa_csv.ParseOptions(delimiter=dialect.separator)
    read = pa_csv.ReadOptions(block_size=csv_faults.BLOCK, column_names=list(dialect.names), skip_rows=dialect.skipped)
    options: Any = {"parse_options": parse, "read_options": read, "convert_options": convert}
    rows = 0
    for batch in plain_batches(path, options) if is_plain(path, dialect) else block_batches(path, dialect, options):
        yield batch
        rows += batch.num_rows
    csv_faults.check_quotes(path, rows, dialect)


def plain_batches(path: Path, options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    with pa_csv.open_csv(path, **options) as reader:
        yield from reader


def block_batches(path: Path, dialect: Dialect, options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that Python unpacks or recodes. Arrow is given its lines, and never the file itself."""
    read = options["read_options"]
    for lines in whole_lines(path, dialect):
        read.block_size = len(lines) + 1
        yield from pa_csv.read_csv(arrow_reader(lines), **options).to_batches()
        read.skip_rows = 0


def whole_lines(path: Path, dialect: Dialect) -> Iterator[bytes]:
    """Yield the lines of a file as UTF-8, many at a time."""
    rest = b""
    for block in csv_faults.file_blocks(path, dialect):
        cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        whole, rest = (rest + block[:cut], block[cut:]) if cut else (b"", rest + block)
        if len(rest) > 2 * csv_faults.BLOCK:
            raise UserError(f"{path}: a line is longer than {csv_faults.BLOCK:,} bytes")
        if whole.strip(b"\r\n"):
            yield whole
    if rest:
        yield rest
