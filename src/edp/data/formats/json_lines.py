"""JSON lines (``.jsonl``, ``.ndjson``, also ``.gz``): one flat object in each line, with a number, a text or a boolean
for each name.

Arrow parses the lines, many at a time. Python parses only the first lines, to find out what the columns hold, and the
lines around a fault, to name it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.json as pa_json

from edp.data.checks import check_exists
from edp.errors import UserError, first_line, printable

BLOCK = 4 * 2**20  # bytes at a time
LONGEST = 2**24  # bytes in a line
KINDS = {bool: pa.bool_(), int: pa.float64(), float: pa.float64(), str: pa.string()}
WORDS = {pa.bool_(): "true or false", pa.float64(): "a number", pa.string(): "a text"}


class Lines(NamedTuple):
    """Whole lines of a file."""

    path: Path
    text: bytes
    first: int  # the number of the first line, counted from 1

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that are not empty, with their numbers."""
        for number, line in enumerate(self.text.split(b"\n"), self.first):
            if line.strip():
                yield number, line

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in self.numbered():
            try:
                yield number, json.loads(line.decode(), object_pairs_hook=unique_names)
            except (ValueError, RecursionError) as error:
                raise self.fault(number, f"not a JSON object ({printable(first_line(error))})") from None

    def fault(self, number: int, what: str) -> UserError:
        return UserError(f"{self.path}: line {number}: {what}")


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def json_names(path: Path) -> list[str]:
    """Return the names in the first lines (4 MB) of a file, in the order in which they appear."""
    names: dict[str, None] = {}
    for lines in file_lines(path):
        for number, record in lines.records():
            names |= dict.fromkeys(check_object(record, number, lines))
        break
    if not names:
        raise UserError(f"{path}: no JSON object with a name in it")
    return list(names)


def json_batches(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns, many rows at a time. Cells are null where a line has no such name.

    Numbers are float64. A column is of type null as long as no line has had a value for it. Other names may hold
    anything.
    """
    kinds: dict[str, pa.DataType] = {}
    for lines in file_lines(path):
        if len(kinds) < len(names):
            learn_kinds(kinds, names, lines)
        yield parse_lines(lines, names, kinds)


def file_lines(path: Path) -> Iterator[Lines]:
    """Yield the lines of a file that is plain or compressed, many at a time."""
    check_exists(path)
    number, rest = 1, b""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            block = stream.read(BLOCK)
            while block:
                text, block = rest + block, stream.read(BLOCK)
                cut = text.rfind(b"\n") + 1 if block else len(text)
                whole, rest = text[:cut], text[cut:]
                if len(rest) > LONGEST:
                    raise UserError(f"{path}: a line is longer than {LONGEST:,} bytes; is there one object in a line?")
                if number == 1:
                    whole = whole.removeprefix(b"\xef\xbb\xbf")
                if whole.strip():
                    yield Lines(path, whole, number)
                number += whole.count(b"\n")
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: cannot be read ({printable(first_line(error))})") from None


def learn_kinds(kinds: dict[str, pa.DataType], names: list[str], lines: Lines) -> None:
    """Find out what columns hold, up to the line after which all are known."""
    for number, record in lines.records():
        check_object(record, number, lines)
        for name in names:
            if name not in kinds and record.get(name) is not None:
                kinds[name] = kind_of(record[name], name, number, lines)
        if len(kinds) == len(names):
            return


def check_object(record: Any, number: int, lines: Lines) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise lines.fault(number, "not a JSON object")
    return record


def kind_of(value: Any, name: str, number: int, lines: Lines) -> pa.DataType:
    if type(value) not in KINDS:
        what = "an object" if isinstance(value, dict) else "a list"
        raise lines.fault(number, f"{name!r} is {what}, not a number, a text or a boolean")
    return KINDS[type(value)]


def parse_lines(lines: Lines, names: list[str], kinds: dict[str, pa.DataType]) -> pa.RecordBatch:
    rows = sum(1 for _ in lines.numbered())
    if not kinds:  # every line was looked at, and none has a value
        return pa.record_batch([pa.nulls(rows)] * len(names), names=names)
    schema = pa.schema(list(kinds.items()))
    try:
        lines.text.decode()
        table = pa_json.read_json(
            pa.BufferReader(lines.text),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(lines.text) + 1),
            parse_options=pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        ).combine_chunks()
        if table.num_rows != rows:
            raise ValueError("an object on two lines, or two on one")
    except (pa.ArrowException, ValueError) as error:
        raise find_fault(lines, kinds, error) from None
    columns = [table[name].combine_chunks() if name in kinds else pa.nulls(rows) for name in names]
    return pa.record_batch(columns, names=names)


def find_fault(lines: Lines, kinds: dict[str, pa.DataType], error: Exception) -> UserError:
    """Name the first line that is wrong."""
    try:
        for number, record in lines.records():
            check_object(record, number, lines)
            for name, kind in kinds.items():
                if record.get(name) is not None and kind_of(record[name], name, number, lines) != kind:
                    now = WORDS[KINDS[type(record[name])]]
                    return lines.fault(number, f"{name!r} is {now}, and {WORDS[kind]} before")
    except UserError as fault:
        return fault
    return lines.fault(lines.first, f"this one or a later one cannot be read ({printable(first_line(error))})")
