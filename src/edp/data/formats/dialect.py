"""How a CSV file is written: its separator, decimal point, encoding and compression."""

import codecs
import gzip
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv

from edp.data.formats.arrow import arrow_reader
from edp.data.formats.columns import Columns, wanted_names
from edp.errors import UserError, unknown

SEPARATORS = ",;\t"
START = 2**20  # bytes of a file that tell how it is written
PACKED = ".gz"
MAGIC = b"\x1f\x8b"  # the first bytes of what gzip has packed
MOST_PACKED = 3  # times
UTF_8 = ("utf-8", "utf-8-sig", "ascii")
POINTS = (".", ",")
CELL = r"[-+]?\d+([.,]\d+)?([eE][-+]?\d+)?|\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?"  # a number, or an ISO time
NUMBER = r"\s*[-+]?\d+{}\d+\s*"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    names: tuple[str, ...]
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8-sig"
    skipped: int = 1  # lines before the first row: that of the names, and maybe Excel's sep=;

    @property
    def remarks(self) -> list[str]:
        """What is unusual about it, and was understood."""
        other = codecs.lookup(self.encoding).name not in UTF_8
        said = [f"the encoding is {self.encoding}"] if other else []
        return said + (["numbers have decimal commas"] if self.decimal == "," else [])


def read_dialect(path: Path, columns: Columns) -> Dialect:
    """Find out how a file is written from its first rows, where the user does not say it."""
    encoding = columns.encoding or guess_encoding(path)
    try:
        codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise UserError(
            f"`encoding`: Python has no encoding {encoding!r}; cp1252, utf-16 and latin-1 are common"
        ) from None
    if columns.decimal and columns.decimal not in POINTS:
        raise unknown("`decimal`", columns.decimal, POINTS)
    with open_utf8(path, encoding) as file:
        start = file.read(START)
    text = start.decode("utf-8-sig") if len(start) < START else start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
    lines = text.splitlines()
    said = re.fullmatch(r'"?sep=(.)"?[,;\t]*', lines[0], re.IGNORECASE) if lines else None
    if said:
        lines = lines[1:]
    header = lines[0] if lines else ""
    separator = said[1] if said else max(SEPARATORS, key=re.sub('"[^"]*"', "", header).count)
    names = header_names(header, separator)
    refuse_missing_names(names, columns, path)
    decimal = columns.decimal or guess_decimal(lines[1:200], separator)
    return Dialect(names, separator, decimal, encoding, 2 if said else 1)


def header_names(header: str, separator: str) -> tuple[str, ...]:
    parse = pa_csv.ParseOptions(delimiter=separator)
    names = pa_csv.read_csv(arrow_reader(header.encode() + b"\n"), parse_options=parse).column_names
    return tuple(name.strip() for name in names)


def refuse_missing_names(names: tuple[str, ...], columns: Columns, path: Path) -> None:
    """Refuse a file that begins with cells: no name is wanted, and there is a decimal number, a time, or no text."""
    cells = [name for name in names if re.fullmatch(CELL, name)]
    numbered = list(names) == [str(i) for i in range(len(names))]
    telling = [cell for cell in cells if not cell.isdecimal() or len(cells) == len(names)]
    if (
        telling
        and not numbered
        and not any(fnmatchcase(name, want) for name in names for want in wanted_names(columns))
    ):
        raise UserError(
            f"{path}: the first line has {telling[0]!r} where the name of a column should be: add a line of names"
        )


def guess_encoding(path: Path) -> str:
    """UTF-16 begins with a mark, or has zeros in every second byte; all else is taken for UTF-8, and may fail there."""
    with open_packed(path) as file:
        start = file.read(64)
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    zeros = [start[first::2].count(0) / max(1, len(start) // 2) for first in (0, 1)]
    return "utf-16-be" if zeros[0] > 0.7 > zeros[1] else "utf-16-le" if zeros[1] > 0.7 > zeros[0] else "utf-8-sig"


def guess_decimal(lines: list[str], separator: str) -> str:
    """A comma, if it separates no cells, and there are numbers with a comma and none with a point."""
    cells = [cell.strip('"') for line in lines for cell in line.split(separator)]
    commas, points = (any(re.fullmatch(NUMBER.format(re.escape(point)), cell) for cell in cells) for point in ",.")
    return "," if separator != "," and commas and not points else "."


def is_packed(path: Path) -> bool:
    return path.suffix.lower() == PACKED


def has_gzip(path: Path) -> bool:
    """Return whether the content of a file is packed, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == MAGIC


def open_packed(path: Path) -> Any:
    """Open a file, and unpack it if its content is packed, maybe twice."""
    file: Any = path.open("rb")
    for _ in range(MOST_PACKED):
        if file.peek(2)[:2] != MAGIC:
            break
        outer, file = file, gzip.GzipFile(fileobj=file, mode="rb")
        file.myfileobj = outer  # closed with it, as gzip.open does
    return file


def open_utf8(path: Path, encoding: str) -> Any:
    """Open a file whose bytes are UTF-8, whatever its encoding and compression."""
    file = open_packed(path)
    other = codecs.lookup(encoding).name not in UTF_8
    return codecs.EncodedFile(file, "utf-8", encoding) if other else file


def is_plain(path: Path, dialect: Dialect) -> bool:
    """Return whether Arrow can read a file by itself, because it is neither packed nor to be recoded."""
    return codecs.lookup(dialect.encoding).name in UTF_8 and not is_packed(path) and not has_gzip(path)
