"""Rows of a file as pieces: numbers, flags and times, with the ends of episodes marked."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edp.data.checks import check_flags
from edp.data.formats.arrow import (
    Place,
    arrow_labels,
    arrow_numbers,
    as_texts,
    label_changes,
    refuse_empty_cells,
    stack_columns,
)
from edp.data.formats.columns import MISSING, ChosenColumns, Columns, way_of
from edp.data.formats.pieces import Piece
from edp.data.formats.sources import Source
from edp.data.formats.times import arrow_times
from edp.data.log import Steps
from edp.errors import UserError, printable


def read_pieces(
    source: Source,
    columns: Columns,
    chosen: ChosenColumns,
    categories: dict[str, list[str]],
    complain: Callable[[str], None],
) -> Iterator[Piece]:
    """Yield the rows of a file, with a timeout where the label of the episode changes, and at the end of the file.

    ``complain`` is called if the rows of an episode are not together. Each batch is yielded after the next one is read,
    because the next label may end an episode in its last row.
    """
    before: Piece | None = None
    last_label: Any = None
    left: set[Any] | None = set()
    row = 0
    batches, last_row, row_text = source.batches(chosen, columns), 0, source.row_text
    if columns.newest_first:
        batches, last_row = turned(batches)
        row_text = lambda row: source.row_text(last_row - row)  # noqa: E731
    for batch in batches:
        if not batch.num_rows:
            continue
        place = Place(source.path, row, row_text)
        piece = piece_of_batch(batch, chosen, columns, categories, place)
        if columns.newest_first:
            piece = piece._replace(source=last_row - piece.source)
        steps = piece.steps
        if chosen.episode_column:
            labels = arrow_labels(batch.column(chosen.episode_column), chosen.episode_column, place)
            ends, shift = steps.ends, 0
            if before is not None:
                labels, ends, shift = pa.concat_arrays([last_label, labels]), np.append(before.steps.ends[-1], ends), 1
            changes = label_changes(labels)
            back = None if left is None else first_resumed(labels, changes, ends, left)
            if back is not None:
                left = None  # one complaint is enough
                label = printable(str(labels[back].as_py()))
                complain(
                    f"{source.path}: episode {label} goes on in {place.text(back - shift)} after others began: sort "
                    "the rows by episode, or give each a different label"
                )
            steps.timeouts[:-1] |= changes[shift:] & ~steps.terminals[:-1]
            if before is not None:
                before.steps.timeouts[-1] |= changes[0] & ~before.steps.terminals[-1]
            last_label = labels.slice(len(labels) - 1)
        if before is not None:
            yield before
        before, row = piece, row + batch.num_rows
    if before is not None:
        before.steps.timeouts[-1] |= ~before.steps.terminals[-1]
        yield before


def turned(batches: Iterator[pa.RecordBatch]) -> tuple[Iterator[pa.RecordBatch], int]:
    """Turn the rows of a file around, and return the number of its last row. This needs all of it in memory."""
    found = list(batches)
    backwards = (batch.take(pa.array(np.arange(batch.num_rows - 1, -1, -1))) for batch in reversed(found))
    return backwards, sum(batch.num_rows for batch in found) - 1


def first_resumed(labels: Any, changes: np.ndarray, ends: np.ndarray, left: set[Any]) -> int | None:
    """Return the first row that continues an interrupted episode. ``left`` collects the labels of such episodes."""
    for at in np.flatnonzero(changes):
        if not ends[at]:
            left.add(labels[at].as_py())
        if labels[at + 1].as_py() in left:
            return int(at) + 1
    return None


def piece_of_batch(
    batch: pa.RecordBatch,
    chosen: ChosenColumns,
    columns: Columns,
    categories: dict[str, list[str]],
    place: Place,
) -> Piece:
    def numbers(name: str) -> np.ndarray:
        if name in categories:
            return one_hot(batch.column(name), categories[name])
        return arrow_numbers(batch.column(name), name, place)

    def wide(names: tuple[str, ...]) -> np.ndarray:
        return stack_columns([numbers(name) for name in names])

    def single(name: str, kind: Any) -> np.ndarray:
        if not name:
            return np.zeros(batch.num_rows, kind)
        if kind is bool:
            refuse_empty_cells(batch.column(name), name, place)
        column = arrow_numbers(batch.column(name), name, place)
        if column.ndim != 1:
            raise UserError(f"{place.path}: column {name!r} holds lists, not one number in each row")
        if kind is bool:
            check_flags(column, f"column {name!r}", str(place.path), place.text)
        return column.astype(bool) if kind is bool else column

    steps = Steps(
        wide(chosen.observation_columns),
        wide(chosen.action_columns),
        single(chosen.reward_column, np.float32),
        single(chosen.terminal_column, bool),
        single(chosen.timeout_column, bool),
        wide(chosen.next_observation_columns) if chosen.next_observation_columns else None,
        text_numbers(batch.column(chosen.operator_column), categories[chosen.operator_column])
        if chosen.operator_column
        else None,
    )
    rows = np.arange(place.row, place.row + batch.num_rows)
    if not chosen.time_column:
        return Piece(steps, rows, rows)
    time = chosen.time_column
    dropped = way_of([time], columns.missing, MISSING[0]) == "drop"
    times = arrow_times(batch.column(time), time, place, columns.time_format, may_be_empty=dropped)
    return Piece(steps, times, rows)


def one_hot(column: Any, texts: list[str]) -> np.ndarray:
    """Make a column of 0 and 1 for each text; an empty cell has NaN in all of them."""
    at = text_numbers(column, texts)
    marks = (at[:, None] == np.arange(len(texts))).astype(np.float64)
    marks[at < 0] = np.nan
    return marks


def text_numbers(column: Any, texts: list[str]) -> np.ndarray:
    """Return the number of each cell's text in ``texts``; -1 for an empty cell."""
    options = pc.SetLookupOptions(value_set=pa.array(texts, pa.string()))
    at = pc.call_function("index_in", [as_texts(column)], options)
    return at.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int16)
