"""The dialect of a CSV file, and where a file that Arrow refuses is wrong."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from edp.errors import UserError

SEPARATORS = ",;\t"
BLOCK = 4 * 2**20  # bytes of a CSV file at a time


def csv_header(path: Path) -> str:
    with path.open(encoding="utf-8-sig") as file:
        return file.readline(2**20)


def csv_separator(header: str) -> str:
    return max(SEPARATORS, key=re.sub('"[^"]*"', "", header).count)


def csv_fault(path: Path, message: str, names: list[str]) -> UserError | None:
    """Explain an error of Arrow's CSV reader with the line and the column, if they can be found."""
    broken = first_broken_line(path)
    if broken:
        return quote_error(path, broken)
    bad = re.search(r"In CSV column #(\d+): .* to (\w+): invalid value '(.*)'", message, re.DOTALL)
    return cell_error(path, names[int(bad[1])], int(bad[1]), bad[2], bad[3]) if bad else None


def cell_error(path: Path, name: str, column: int, kind: str, cell: str) -> UserError:
    cells = ((line, row[column]) for line, _, row in csv_records(path) if len(row) > column)
    line = next((line for line, text in cells if text == cell and line > 1), 0)
    where = f"column {name!r}" + (f", line {line}," if line else "")
    wanted = "neither 0 nor 1" if kind == "bool" else "not a number"
    comma = f": a decimal comma? Write {cell.replace(',', '.')}" if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", cell) else ""
    return UserError(f"{path}: {cell[:40]!r} in {where} is {wanted}{comma}")


def encoding_hint(error: Exception) -> str:
    return ": save it as UTF-8" if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error) else ""


def check_quotes(path: Path, rows: int) -> None:
    """Refuse a file in which ``rows`` rows were read and which has more lines: a quote has joined some of them."""
    if any(b'"' in block for block in file_blocks(path)) and count_lines(path) != rows + 1:
        raise quote_error(path, first_broken_line(path))


def quote_error(path: Path, line: int) -> UserError:
    if not line:
        return UserError(f"{path}: was changed while it was read: try again when no program writes to it")
    return UserError(f"{path}: line {line} ends within quotes: a stray quote, or a text with line breaks; take it out")


def first_broken_line(path: Path) -> int:
    """Return the first line that ends within quotes, or 0."""
    return next((first for first, last, _ in csv_records(path) if last > first), 0)


def csv_records(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the first and the last line of each row, counted from 1, and its cells. This is slow."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader, first = csv.reader(file, delimiter=csv_separator(csv_header(path))), 1
        try:
            for cells in reader:
                yield first, reader.line_num, cells
                first = reader.line_num + 1
        except csv.Error:  # a cell is too long, for example because it goes on over many lines
            yield first, reader.line_num, []


def file_blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def count_lines(path: Path) -> int:
    """Count the lines that are not empty."""
    count, empty = 0, True
    for block in file_blocks(path):
        characters = np.frombuffer(block, np.uint8)
        text = (characters != ord("\n")) & (characters != ord("\r"))
        count += int((text[1:] & ~text[:-1]).sum()) + bool(text[0] and empty)
        empty = not text[-1]
    return count
