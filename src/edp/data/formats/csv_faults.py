"""Where a CSV file that Arrow refuses is wrong."""

import csv
import io
import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from edp.data.formats.dialect import NUMBER, Dialect, open_packed, open_utf8
from edp.errors import UserError, counted

BLOCK = 4 * 2**20  # bytes of a CSV file at a time


def csv_fault(path: Path, message: str, dialect: Dialect) -> UserError | None:
    """Explain an error of Arrow's CSV reader with the line and the column, if they can be found."""
    broken = first_broken_line(path, dialect)
    if broken:
        return quote_error(path, broken)
    if re.search(r"Expected \d+ columns, got \d+", message) and (uneven := uneven_line(path, dialect)):
        return uneven
    bad = re.search(r"In CSV column #(\d+): .* to (\w+): invalid value '(.*)'", message, re.DOTALL)
    return cell_error(path, int(bad[1]), bad[2], bad[3], dialect) if bad else None


def uneven_line(path: Path, dialect: Dialect) -> UserError | None:
    """The error for the first line that has more or fewer cells than there are names."""
    wanted = len(dialect.names)
    for line, _, cells in csv_records(path, dialect):
        if cells and line > dialect.skipped and len(cells) != wanted:
            has = f"line {line} has {counted(len(cells), 'cell')}, and there are {counted(wanted, 'name')}"
            return UserError(f"{path}: {has}: correct it, or put cells with a separator in them in quotes")
    return None


def cell_error(path: Path, column: int, kind: str, cell: str, dialect: Dialect) -> UserError:
    rows = enumerate((line, cells) for line, _, cells in csv_records(path, dialect) if cells and line > dialect.skipped)
    found = (f", row {row} (line {line})," for row, (line, cells) in rows if cells[column : column + 1] == [cell])
    where = f"column {dialect.names[column]!r}{next(found, '')}"
    wanted = "neither 0 nor 1" if kind == "bool" else "not a number"
    return UserError(f"{path}: {cell[:40]!r} in {where} is {wanted}{cell_hint(cell, kind, dialect)}")


def cell_hint(cell: str, kind: str, dialect: Dialect) -> str:
    for point in {",", "."} - {dialect.decimal}:
        if re.fullmatch(NUMBER.format(re.escape(point)), cell):
            return f": if {point!r} is the decimal point, say it with `decimal`"
    words = kind != "bool" and re.fullmatch(r"[^\W\d][\w -]*", cell)
    return ": name it in `missing_texts` if it means an empty cell, or the column in `one_hot`" if words else ""


def encoding_hint(error: Exception) -> str:
    other = isinstance(error, UnicodeDecodeError) or "UTF8" in str(error)
    return ": save it as UTF-8, or name its `encoding` (cp1252 is common on Windows)" if other else ""


def check_quotes(path: Path, rows: int, dialect: Dialect) -> None:
    """Refuse a file in which ``rows`` rows were read and which has more lines: a quote has joined some of them."""
    quotes = any(b'"' in block for block in file_blocks(path, dialect))
    if quotes and count_lines(path, dialect) != rows + dialect.skipped:
        raise quote_error(path, first_broken_line(path, dialect))


def quote_error(path: Path, line: int) -> UserError:
    if not line:
        return UserError(f"{path}: was changed while it was read: try again when no program writes to it")
    return UserError(f"{path}: line {line} ends within quotes: a stray quote, or a text with line breaks; take it out")


def first_broken_line(path: Path, dialect: Dialect) -> int:
    """Return the first line that ends within quotes, or 0."""
    return next((first for first, last, _ in csv_records(path, dialect) if last > first), 0)


def csv_records(path: Path, dialect: Dialect) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the first and the last line of each row, counted from 1, and its cells. This is slow."""
    with open_packed(path) as packed:
        file = io.TextIOWrapper(packed, dialect.encoding, errors="replace", newline="")
        reader, first = csv.reader(file, delimiter=dialect.separator), 1
        try:
            for cells in reader:
                yield first, reader.line_num, cells
                first = reader.line_num + 1
        except csv.Error:  # a cell is too long, for example because it goes on over many lines
            yield first, reader.line_num, []


def file_blocks(path: Path, dialect: Dialect) -> Iterator[bytes]:
    with open_utf8(path, dialect.encoding) as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def line_of_row(path: Path, row: int, dialect: Dialect) -> int:
    """Return the line of a row, counted from 1. Empty lines are no rows."""
    try:
        blank = empty_lines(path, path.stat().st_mtime_ns, dialect)
    except (OSError, ValueError, EOFError, zlib.error):  # the fault that is to be explained
        blank = np.zeros(0, int)
    before = blank - np.arange(len(blank))  # the rows and names before each of them
    at = row + dialect.skipped
    return at + 1 + int(np.searchsorted(before, at, side="right"))


@lru_cache(maxsize=8)
def empty_lines(path: Path, changed: int, dialect: Dialect) -> np.ndarray:
    """Return the numbers of the empty lines, counted from 0. ``changed`` is when the file was last changed."""
    with open_packed(path) as packed, io.TextIOWrapper(packed, dialect.encoding, errors="replace") as file:
        return np.array([number for number, line in enumerate(file) if line == "\n"], int)


def count_lines(path: Path, dialect: Dialect) -> int:
    """Count the lines that are not empty."""
    count, empty = 0, True
    for block in file_blocks(path, dialect):
        characters = np.frombuffer(block, np.uint8)
        text = (characters != ord("\n")) & (characters != ord("\r"))
        count += int((text[1:] & ~text[:-1]).sum()) + bool(text[0] and empty)
        empty = not text[-1]
    return count
