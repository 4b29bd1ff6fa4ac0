"""Tables with a row for each step: CSV and Parquet files, or a folder of them, and which columns mean what.

Columns are numbers, or (in Parquet) lists of as many numbers in each row. A new episode begins where the column
``episode`` changes, after a terminal or a timeout, and with each file.
"""

import csv
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from edp.data.formats.columns import Chosen, Columns, choose, printable
from edp.data.log import PIECE, WIDE, Log, Steps, joined, plain, refuse_missing
from edp.errors import UserError, first_line
from edp.files import replacing

SUFFIXES = (".csv", ".parquet")
OTHERS = {".gz", ".bz2", ".xz", ".zst", ".zip", ".tsv", ".xlsx", ".feather", ".npy", ".npz", ".hdf5", ".h5"}
SEPARATORS = ",;\t"
MANY = 2**16  # numbers in a list, too many to name
BLOCK = 4 * 2**20  # bytes of a CSV file at a time
TRUE, FALSE = ["1", "1.0", "true", "True", "TRUE"], ["0", "0.0", "false", "False", "FALSE"]
REFUSED = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)


def open_table(path: Path, columns: Columns = Columns()) -> Log:  # noqa: B008  (it is frozen)
    """A file's steps, or those of all files in a folder, in the order of their names."""
    files = table_files(path)
    names = column_names(files[0])
    chosen = choose(columns, names, files[0])
    for file in files[1:]:
        there = column_names(file)
        refuse_without(chosen.all, there, file, files[0])
        refuse_without(choose(columns, there, file).all, chosen.all, files[0], file)
    refused: list[str] = []

    def with_gaps() -> Iterator[Steps]:
        refused.clear()
        return (steps for file in files for steps in pieces(file, chosen, False, refused.append))

    size = sum(parquet(file).metadata.num_rows for file in files) if is_parquet(files[0]) else 0
    return Log(
        name=str(path),
        pieces=lambda: (steps for file in files for steps in pieces(file, chosen, True, refuse)),
        with_gaps=with_gaps,
        refused=refused,
        size=size,
        observation_names=number_names(files[0], chosen.observation_columns),
        action_names=number_names(files[0], chosen.action_columns),
        left_out=tuple(printable(name) for name in names if name not in chosen.all),
    )


def refuse_without(wanted: list[str], there: list[str], file: Path, other: Path) -> None:
    """All files of a folder have the same columns, as far as they mean something."""
    missing = [name for name in wanted if name not in there]
    if missing:
        raise UserError(f"{file}: no column {missing[0]!r}, which {other.name} has")


def table_files(path: Path) -> list[Path]:
    refuse_missing(path)
    if not path.is_dir():
        return [path]
    try:
        entries = sorted(entry for entry in path.iterdir() if entry.name[0] != ".")
        unread = [entry.name for entry in entries if is_unread(entry)]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    files = [entry for entry in entries if entry.suffix.lower() in SUFFIXES and entry.name not in unread]
    if len({is_parquet(file) for file in files}) > 1:
        raise UserError(f"{path}: both .csv and .parquet files in this folder; give one kind a folder of its own")
    if unread:
        raise UserError(
            f"{path}: {printable(unread[0])} in this folder would not be read; tables are .csv or .parquet files, "
            "unpacked and in one folder"
        )
    if not files:
        raise UserError(f"{path}: no .csv and no .parquet file in this folder")
    return files


def is_unread(entry: Path) -> bool:
    """Whether this is data that is not read from a folder of tables, and people may think that it is."""
    if entry.is_dir():
        return any({suffix.lower() for suffix in inner.suffixes} & {*SUFFIXES} for inner in (entry, *entry.rglob("*")))
    return entry.suffix.lower() in OTHERS


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, pre_buffer=False)  # it would read all of the file ahead
    except REFUSED as error:
        raise UserError(f"{path}: not a Parquet file, or a damaged one ({first_line(error)})") from None


def column_names(path: Path) -> list[str]:
    kind = "Parquet file, or a damaged one" if is_parquet(path) else "CSV file with a line of names first"
    try:
        if is_parquet(path):
            names = list(parquet(path).schema_arrow.names)
        else:
            header = header_of(path)
            reader = pa_csv.read_csv(
                pa.BufferReader(header.rstrip("\r\n").encode() + b"\n"),
                parse_options=pa_csv.ParseOptions(delimiter=separator(header)),
            )
            names = list(reader.column_names)
    except REFUSED as error:
        raise UserError(f"{path}: not a {kind} ({first_line(error)}){encoding_hint(error)}") from None
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{path}: two columns are called {twice[0]!r}")
    return names


def number_names(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """A name for each number, or none where the rows alone tell how many there are."""
    if not is_parquet(path):
        return names
    schema, found = parquet(path).schema_arrow, []
    for name in names:
        kind, shape = schema.field(name).type, []
        while pa.types.is_fixed_size_list(kind):
            kind, shape = kind.value_type, [*shape, kind.list_size]
        if pa.types.is_nested(kind) or math.prod(shape) > MANY:
            return ()
        found += [f"{name}.{i}" for i in range(math.prod(shape))] if shape else [name]
    return tuple(found)


def header_of(path: Path) -> str:
    with path.open(encoding="utf-8-sig") as file:
        return file.readline(2**20)


def separator(header: str) -> str:
    return max(SEPARATORS, key=re.sub('"[^"]*"', "", header).count)


def batches(path: Path, chosen: Chosen) -> Iterator[pa.RecordBatch]:
    """The columns that are used, some rows at a time."""
    if is_parquet(path):
        yield from parquet(path).iter_batches(PIECE, columns=chosen.all)
        return
    kinds = {name: pa.float64() for name in chosen.all}
    kinds |= {name: pa.bool_() for name in (chosen.terminal_column, chosen.timeout_column) if name}
    kinds |= {chosen.episode_column: pa.string()} if chosen.episode_column else {}
    convert = pa_csv.ConvertOptions(
        column_types=kinds,
        include_columns=chosen.all,
        true_values=TRUE,
        false_values=FALSE,
        strings_can_be_null=True,
    )
    options = pa_csv.ParseOptions(delimiter=separator(header_of(path))), pa_csv.ReadOptions(block_size=BLOCK)
    rows = 0
    with pa_csv.open_csv(path, parse_options=options[0], read_options=options[1], convert_options=convert) as reader:
        for batch in reader:
            yield batch
            rows += batch.num_rows
    if any(b'"' in block for block in blocks(path)) and count_lines(path) != rows + 1:
        raise line_break(path, broken_line(path))


def blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def count_lines(path: Path) -> int:
    """Lines of a CSV file that are not empty."""
    count, empty = 0, True
    for block in blocks(path):
        found = np.frombuffer(block, np.uint8)
        text = (found != ord("\n")) & (found != ord("\r"))
        count += int((text[1:] & ~text[:-1]).sum()) + bool(text[0] and empty)
        empty = not text[-1]
    return count


def records(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """The first and the last line of each row of a CSV file, counted from 1, and its cells (slowly)."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader, first = csv.reader(file, delimiter=separator(header_of(path))), 1
        try:
            for cells in reader:
                yield first, reader.line_num, cells
                first = reader.line_num + 1
        except csv.Error:  # a cell that is too long, as one that goes on over many lines
            yield first, reader.line_num, []


def broken_line(path: Path) -> int:
    """The first line that ends within quotes, or 0."""
    return next((first for first, last, _ in records(path) if last > first), 0)


def line_break(path: Path, line: int) -> UserError:
    if not line:
        return UserError(f"{path}: was changed while it was read: try again when nobody writes to it")
    return UserError(f"{path}: line {line} ends within quotes: a stray quote, or a text with line breaks; take it out")


def unreadable(path: Path, error: Exception) -> UserError:
    """The line that says why a file cannot be read, and where if it is a CSV file."""
    if not is_parquet(path) and isinstance(error, pa.ArrowInvalid):
        broken = broken_line(path)
        if broken:
            return line_break(path, broken)
        bad = re.search(r"In CSV column #(\d+): .* to (\w+): invalid value '(.*)'", str(error), re.DOTALL)
        if bad:
            return bad_cell(path, int(bad[1]), bad[2], bad[3])
    return UserError(f"{path}: cannot be read ({first_line(error)}){encoding_hint(error)}")


def bad_cell(path: Path, column: int, kind: str, cell: str) -> UserError:
    cells = ((line, row[column]) for line, _, row in records(path) if len(row) > column)
    line = next((line for line, found in cells if found == cell and line > 1), 0)
    where = f"column {column_names(path)[column]!r}" + (f", line {line}," if line else "")
    wanted = "neither 0 nor 1" if kind == "bool" else "not a number"
    comma = f": a decimal comma? Write {cell.replace(',', '.')}" if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", cell) else ""
    return UserError(f"{path}: {cell[:40]!r} in {where} is {wanted}{comma}")


def encoding_hint(error: Exception) -> str:
    return ": save it as UTF-8" if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error) else ""


def pieces(path: Path, chosen: Chosen, finite: bool, complain: Callable[[str], None]) -> Iterator[Steps]:
    """A file's steps; what is no number there is refused if they have to be ``finite``, and NaN if not.

    ``complain`` hears of rows that are in no good order.
    """
    try:
        yield from whole_episodes(path, chosen, finite, complain)
    except REFUSED as error:
        raise unreadable(path, error) from None


def whole_episodes(path: Path, chosen: Chosen, finite: bool, complain: Callable[[str], None]) -> Iterator[Steps]:
    """The last row of a batch waits for the next one, which may begin another episode."""
    held: tuple[Steps, Any] | None = None
    left: set[Any] | None = set()
    row = 0
    for batch in batches(path, chosen):
        if not batch.num_rows:
            continue
        steps, labels = steps_of(batch, chosen, path, row, finite), labels_of(batch, chosen, path, row)
        if held is not None:
            refuse_other_widths(held[0], steps, path, row)
            steps = joined([held[0], steps])
            labels = None if labels is None else pa.concat_arrays([held[1], labels])
        row += batch.num_rows
        if labels is not None:
            changes = pc.call_function("not_equal", [labels.slice(1), labels.slice(0, len(labels) - 1)])
            changes = changes.to_numpy(zero_copy_only=False)
            back = None if left is None else coming_back(labels, changes, steps.ends, left)
            if back is not None:
                at, left = row - len(labels) + back, None  # once is enough
                label = printable(str(labels[back].as_py()))
                complain(
                    f"{path}: episode {label} goes on in row {at} after others began: sort the rows by episode, or "
                    "give each a label of its own"
                )
            steps.timeouts[:-1] |= changes & ~steps.terminals[:-1]
        held = steps.rows(slice(-1, None)), None if labels is None else labels.slice(len(labels) - 1)
        if len(steps.rewards) > 1:
            yield steps.rows(slice(-1))
    if held is not None:
        last = held[0]
        yield last._replace(timeouts=last.timeouts | ~last.terminals)


def coming_back(labels: Any, changes: np.ndarray, ends: np.ndarray, left: set[Any]) -> int | None:
    """The first row that goes on with an episode that was ``left`` for another one without an end; adds to those."""
    for at in np.flatnonzero(changes):
        if not ends[at]:
            left.add(labels[at].as_py())
        if labels[at + 1].as_py() in left:
            return int(at) + 1
    return None


def refuse(message: str) -> None:
    raise UserError(message)


def refuse_other_widths(before: Steps, steps: Steps, path: Path, row: int) -> None:
    for name in WIDE:
        a, b = getattr(before, name), getattr(steps, name)
        if a is not None and a.shape[1] != b.shape[1]:
            raise UserError(f"{path}: {name} have {b.shape[1]} numbers from row {row} on, and {a.shape[1]} before it")


def labels_of(batch: pa.RecordBatch, chosen: Chosen, path: Path, row: int) -> Any:
    if not chosen.episode_column:
        return None
    labels = batch.column(chosen.episode_column)
    refuse_empty(labels, chosen.episode_column, path, row)
    if isinstance(labels.type, pa.DictionaryType):
        labels = labels.dictionary_decode()
    if pa.types.is_floating(labels.type):
        numbers(labels, chosen.episode_column, path, row)  # refuses NaN, which differs from itself
    if pa.types.is_nested(labels.type):
        raise UserError(f"{path}: column {chosen.episode_column!r} holds {labels.type}, not labels of episodes")
    return labels


def steps_of(batch: pa.RecordBatch, chosen: Chosen, path: Path, row: int, finite: bool) -> Steps:
    def wide(names: tuple[str, ...]) -> np.ndarray:
        return side_by_side([numbers(batch.column(name), name, path, row, finite) for name in names])

    def single(name: str, kind: Any) -> np.ndarray:
        if not name:
            return np.zeros(batch.num_rows, kind)
        column = numbers(batch.column(name), name, path, row, finite or kind is bool)
        if column.ndim != 1:
            raise UserError(f"{path}: column {name!r} holds lists, not one number in each row")
        if kind is bool and not ((column == 0) | (column == 1)).all():
            at = int(np.argmin((column == 0) | (column == 1)))
            raise UserError(f"{path}: column {name!r} must be 0 or 1, and row {row + at} has {column[at]:g}")
        return column.astype(bool) if kind is bool else column

    known = wide(chosen.next_observation_columns) if chosen.next_observation_columns else None
    return Steps(
        wide(chosen.observation_columns),
        wide(chosen.action_columns),
        single(chosen.reward_column, np.float32),
        single(chosen.terminal_column, bool),
        single(chosen.timeout_column, bool),
        known,
    )


def numbers(column: Any, name: str, path: Path, row: int, finite: bool = True, each: int = 1) -> np.ndarray:
    """A column as float32 or float64: one number in each row, or several (``each`` counts those taken apart)."""
    kind = column.type
    if finite or pa.types.is_nested(kind):
        refuse_empty(column, name, path, row, each)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = column.flatten()
        lengths = pc.call_function("list_value_length", [column]).to_numpy(zero_copy_only=False)
        if len(np.unique(lengths)) > 1:
            at = int(np.argmax(lengths != lengths[0]))
            raise UserError(
                f"{path}: column {name!r} has {lengths[at]} numbers in row {row + at // each}, and {lengths[0]} before"
            )
        if not lengths[0]:
            raise UserError(f"{path}: column {name!r} holds lists without numbers, from row {row} on: leave it out")
        return numbers(inner, name, path, row, finite, each * int(lengths[0])).reshape(len(column), -1)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        if not (pa.types.is_decimal(kind) or (pa.types.is_null(kind) and not finite)):
            raise UserError(f"{path}: column {name!r} holds {kind}, not numbers")
        column = column.cast(pa.float64())
    if column.null_count:  # cast, for a boolean without a value is an object otherwise
        column = column.cast(pa.float64(), safe=False)
    found = column.to_numpy(zero_copy_only=False)
    found = found if found.dtype == np.float32 else found.astype(np.float64)
    if finite and not np.isfinite(found).all():
        at = int(np.argmin(np.isfinite(found)))
        raise UserError(f"{path}: column {name!r} has no number in row {row + at // each}, but {found[at]}")
    return found


def refuse_empty(column: Any, name: str, path: Path, row: int, each: int = 1) -> None:
    if column.null_count:
        at = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) // each
        line = "" if is_parquet(path) else f" (line {row + at + 2})"
        raise UserError(
            f"{path}: column {name!r} is empty in row {row + at}{line}, and maybe in others: fill such rows, or leave "
            "them out"
        )


def side_by_side(parts: list[np.ndarray]) -> np.ndarray:
    """Columns as one array of rows."""
    widths = [part.shape[1] if part.ndim == 2 else 1 for part in parts]
    together = np.empty((len(parts[0]), sum(widths)), np.result_type(*parts))
    start = 0
    for part, width in zip(parts, widths, strict=True):
        together[:, start : start + width] = part if part.ndim == 2 else part[:, None]
        start += width
    return together


def write_table(path: Path, steps: Steps, observation_names: tuple[str, ...], action_names: tuple[str, ...]) -> None:
    """With the names that the numbers have, after the prefixes that are read by default."""
    found: dict[str, np.ndarray] = {}
    for prefix, wide, names in (
        ("observation_", steps.observations, observation_names),
        ("action_", steps.actions, action_names),
        ("next_observation_", steps.next_observations, observation_names),
    ):
        if wide is not None:
            written = [prefix + name.removeprefix(prefix.removeprefix("next_")) for name in names]
            if len(set(written)) != wide.shape[1]:
                written = [f"{prefix}{i}" for i in range(wide.shape[1])]
            found |= {name: np.ascontiguousarray(plain(wide[:, i])) for i, name in enumerate(written)}
    found |= {"reward": plain(steps.rewards), "terminal": steps.terminals, "timeout": steps.timeouts}
    table = pa.table(found)
    with replacing(path) as part:
        if is_parquet(path):
            pq.write_table(table, part)
        else:
            pa_csv.write_csv(table, part)
