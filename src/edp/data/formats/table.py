"""Tables with a row for each step: CSV and Parquet files, or a folder of them.

Columns hold numbers, or (in Parquet) lists with the same number of numbers in each row. A new episode begins where the
column ``episode`` changes, after a terminal or a timeout, and with each file.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from edp.data.checks import check_exists, check_flags
from edp.data.dataset import read_steps
from edp.data.formats import Format, csv_faults
from edp.data.formats.arrow import (
    arrow_labels,
    arrow_numbers,
    label_changes,
    number_names,
    refuse_empty_cells,
    stack_columns,
)
from edp.data.formats.columns import ChosenColumns, Columns, choose_columns, columns_from
from edp.data.formats.csv_faults import csv_header, csv_separator, encoding_hint
from edp.data.log import PIECE, Log, Steps, plain_numbers
from edp.errors import UserError, first_line, printable
from edp.files import replacing

TABLE_SUFFIXES = (".csv", ".parquet")
OTHERS = {".gz", ".bz2", ".xz", ".zst", ".zip", ".tsv", ".xlsx", ".feather", ".npy", ".npz", ".hdf5", ".h5"}
TRUE, FALSE = ["1", "1.0", "true", "True", "TRUE"], ["0", "0.0", "false", "False", "FALSE"]
READ_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)


def open_table(path: Path, columns: Columns = Columns()) -> Log:  # noqa: B008  (it is frozen)
    """Open a file, or all files of a folder in the order of their names."""
    files = table_files(path)
    names = column_names(files[0])
    chosen = choose_columns(columns, names, files[0])
    for file in files[1:]:
        there = column_names(file)
        refuse_missing_columns(chosen.all, there, file, files[0])
        refuse_missing_columns(choose_columns(columns, there, file).all, chosen.all, files[0], file)
    refused: list[str] = []
    starts: list[int] = []  # the first row of each file that has been read

    def pieces() -> Iterator[Steps]:
        refused.clear()
        starts.clear()
        row = 0
        for file in files:
            starts.append(row)
            for steps in table_pieces(file, chosen, refused.append):
                yield steps
                row += len(steps.rewards)

    def row_text(row: int) -> str:
        number = int(np.searchsorted(starts, row, "right")) - 1
        text = f"row {row - starts[number]}" + (f" of {printable(files[number].name)}" if len(files) > 1 else "")
        return text if is_parquet(files[0]) else f"{text} (line {row - starts[number] + 2})"

    numbered = lambda names: number_names(open_parquet(files[0]).schema_arrow, names) if is_parquet(files[0]) else names  # noqa: E731
    return Log(
        name=str(path),
        pieces=pieces,
        refused=refused,
        row_text=row_text,
        size=sum(open_parquet(file).metadata.num_rows for file in files) if is_parquet(files[0]) else 0,
        observation_names=numbered(chosen.observation_columns),
        action_names=numbered(chosen.action_columns),
        left_out=tuple(printable(name) for name in names if name not in chosen.all),
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
    files = [entry for entry in entries if entry.suffix.lower() in TABLE_SUFFIXES and entry.name not in unread]
    if len({is_parquet(file) for file in files}) > 1:
        raise UserError(f"{path}: both .csv and .parquet files in this folder; put each kind into a separate folder")
    if unread:
        raise UserError(
            f"{path}: {printable(unread[0])} in this folder would not be read; tables are .csv or .parquet files, "
            "unpacked and in one folder"
        )
    if not files:
        raise UserError(f"{path}: no .csv and no .parquet file in this folder")
    for file in files:
        check_exists(file)
    return files


def is_unread(entry: Path) -> bool:
    """Return whether this entry of a folder is data that is not read, though users may expect it."""
    if entry.is_dir():
        inside = (entry, *entry.rglob("*"))
        return any({suffix.lower() for suffix in inner.suffixes} & {*TABLE_SUFFIXES} for inner in inside)
    return entry.suffix.lower() in OTHERS


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def open_parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, pre_buffer=False)  # a buffer would read the whole file ahead
    except READ_ERRORS as error:
        raise UserError(f"{path}: not a Parquet file, or a damaged one ({first_line(error)})") from None


def column_names(path: Path) -> list[str]:
    kind = "Parquet file, or a damaged one" if is_parquet(path) else "CSV file with a line of names first"
    try:
        if is_parquet(path):
            names = list(open_parquet(path).schema_arrow.names)
        else:
            header = csv_header(path)
            reader = pa_csv.read_csv(
                pa.BufferReader(header.rstrip("\r\n").encode() + b"\n"),
                parse_options=pa_csv.ParseOptions(delimiter=csv_separator(header)),
            )
            names = list(reader.column_names)
    except READ_ERRORS as error:
        raise UserError(f"{path}: not a {kind} ({first_line(error)}){encoding_hint(error)}") from None
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{path}: two columns are called {twice[0]!r}")
    return names


def table_batches(path: Path, chosen: ChosenColumns) -> Iterator[pa.RecordBatch]:
    """Yield the columns that are used, some rows at a time."""
    if is_parquet(path):
        yield from open_parquet(path).iter_batches(PIECE, columns=chosen.all)
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
    parse = pa_csv.ParseOptions(delimiter=csv_separator(csv_header(path)))
    read, rows = pa_csv.ReadOptions(block_size=csv_faults.BLOCK), 0
    with pa_csv.open_csv(path, parse_options=parse, read_options=read, convert_options=convert) as reader:
        for batch in reader:
            yield batch
            rows += batch.num_rows
    csv_faults.check_quotes(path, rows)


def table_pieces(path: Path, chosen: ChosenColumns, complain: Callable[[str], None]) -> Iterator[Steps]:
    """Yield the steps of a file. ``complain`` is called if the rows of an episode are not together."""
    try:
        yield from with_episode_ends(path, chosen, complain)
    except READ_ERRORS as error:
        fault = None
        if not is_parquet(path) and isinstance(error, pa.ArrowInvalid):
            fault = csv_faults.csv_fault(path, str(error), column_names(path))
        raise fault or UserError(f"{path}: cannot be read ({first_line(error)}){encoding_hint(error)}") from None


def with_episode_ends(path: Path, chosen: ChosenColumns, complain: Callable[[str], None]) -> Iterator[Steps]:
    """Mark a timeout where the label of the episode changes, and at the end of the file.

    Each batch is yielded after the next one is read, because the next label may end an episode in its last row.
    """
    before: Steps | None = None
    last_label: Any = None
    left: set[Any] | None = set()
    row = 0
    for batch in table_batches(path, chosen):
        if not batch.num_rows:
            continue
        steps = steps_of_batch(batch, chosen, path, row)
        if chosen.episode_column:
            labels = arrow_labels(batch.column(chosen.episode_column), chosen.episode_column, path, row)
            ends, shift = steps.ends, 0
            if before is not None:
                labels, ends, shift = pa.concat_arrays([last_label, labels]), np.append(before.ends[-1], ends), 1
            changes = label_changes(labels)
            back = None if left is None else first_resumed(labels, changes, ends, left)
            if back is not None:
                left = None  # one complaint is enough
                label = printable(str(labels[back].as_py()))
                complain(
                    f"{path}: episode {label} goes on in row {row - shift + back} after others began: sort the rows by "
                    "episode, or give each a different label"
                )
            steps.timeouts[:-1] |= changes[shift:] & ~steps.terminals[:-1]
            if before is not None:
                before.timeouts[-1] |= changes[0] & ~before.terminals[-1]
            last_label = labels.slice(len(labels) - 1)
        if before is not None:
            yield before
        before, row = steps, row + batch.num_rows
    if before is not None:
        before.timeouts[-1] |= ~before.terminals[-1]
        yield before


def first_resumed(labels: Any, changes: np.ndarray, ends: np.ndarray, left: set[Any]) -> int | None:
    """Return the first row that continues an interrupted episode. ``left`` collects the labels of such episodes."""
    for at in np.flatnonzero(changes):
        if not ends[at]:
            left.add(labels[at].as_py())
        if labels[at + 1].as_py() in left:
            return int(at) + 1
    return None


def steps_of_batch(batch: pa.RecordBatch, chosen: ChosenColumns, path: Path, row: int) -> Steps:
    def wide(names: tuple[str, ...]) -> np.ndarray:
        return stack_columns([arrow_numbers(batch.column(name), name, path, row) for name in names])

    def single(name: str, kind: Any) -> np.ndarray:
        if not name:
            return np.zeros(batch.num_rows, kind)
        if kind is bool:
            refuse_empty_cells(batch.column(name), name, path, row)
        column = arrow_numbers(batch.column(name), name, path, row)
        if column.ndim != 1:
            raise UserError(f"{path}: column {name!r} holds lists, not one number in each row")
        if kind is bool:
            check_flags(column, f"column {name!r}", str(path), row)
        return column.astype(bool) if kind is bool else column

    return Steps(
        wide(chosen.observation_columns),
        wide(chosen.action_columns),
        single(chosen.reward_column, np.float32),
        single(chosen.terminal_column, bool),
        single(chosen.timeout_column, bool),
        wide(chosen.next_observation_columns) if chosen.next_observation_columns else None,
    )


def write_table(name: str, log: Log) -> str:
    """Write a log with the names of its columns, after the prefixes that are read by default."""
    if not is_parquet(Path(name)):
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
        (pq.write_table if is_parquet(Path(name)) else pa_csv.write_csv)(pa.table(columns), part)
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
