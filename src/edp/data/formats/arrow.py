"""Columns of Arrow tables as NumPy arrays."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edp.errors import UserError, counted

MANY = 2**16  # numbers in a list, too many to name


class Place(NamedTuple):
    """Where some rows are, for messages: their file, the first of them, and how a row of the file is named."""

    path: Path
    row: int
    row_text: Callable[[int], str] = "row {}".format

    def text(self, at: int) -> str:
        return self.row_text(self.row + at)


def arrow_reader(content: bytes) -> pa.BufferReader:
    """A copy of some bytes in Arrow's memory, as a file for Arrow's readers.

    Their threads may hold a file for a moment after its content is returned. To free an object of Python they wait for
    the interpreter, and if that is exiting, the process aborts. So they are given none.
    """
    copy = pa.BufferOutputStream()
    copy.write(content)
    return pa.BufferReader(copy.getvalue())


def arrow_numbers(column: Any, name: str, place: Place, each: int = 1) -> np.ndarray:
    """Convert a column to float32 or float64: one number or a list of numbers in each row. Empty cells become NaN.

    Nested lists are taken apart by recursion; ``each`` counts the entries of one row.
    """
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        refuse_empty_cells(column, name, place, each)
        width = list_width(column, name, place, each)
        return arrow_numbers(column.flatten(), name, place, each * width).reshape(len(column), -1)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        if not (pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            raise UserError(f"{place.path}: column {name!r} holds {kind}, not numbers")
        column = column.cast(pa.float64())
    if column.null_count:  # a boolean without a value would become an object
        column = column.cast(pa.float64(), safe=False)
    numbers = column.to_numpy(zero_copy_only=False)
    return numbers if numbers.dtype == np.float32 else numbers.astype(np.float64)


def list_width(column: Any, name: str, place: Place, each: int) -> int:
    """Return the length of a column's lists, which has to be the same in every row."""
    lengths = pc.call_function("list_value_length", [column]).to_numpy(zero_copy_only=False)
    if len(np.unique(lengths)) > 1:
        at = int(np.argmax(lengths != lengths[0]))
        raise UserError(
            f"{place.path}: column {name!r} has {counted(lengths[at], 'number')} in {place.text(at // each)}, "
            f"and {lengths[0]} before"
        )
    if not lengths[0]:
        where = place.text(0)
        raise UserError(f"{place.path}: column {name!r} holds lists without numbers, from {where} on: leave it out")
    return int(lengths[0])


def refuse_empty_cells(column: Any, name: str, place: Place, each: int = 1) -> None:
    if column.null_count:
        at = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) // each
        raise UserError(
            f"{place.path}: column {name!r} is empty in {place.text(at)}, and maybe in others: fill such rows, or "
            "leave them out"
        )


def arrow_labels(column: Any, name: str, place: Place) -> Any:
    """Return the labels of episodes, which can be compared with each other."""
    refuse_empty_cells(column, name, place)
    labels = column.dictionary_decode() if isinstance(column.type, pa.DictionaryType) else column
    if pa.types.is_floating(labels.type):
        not_a_number = np.isnan(arrow_numbers(labels, name, place))
        if not_a_number.any():  # NaN differs from itself
            raise UserError(f"{place.path}: column {name!r} is NaN in {place.text(int(np.argmax(not_a_number)))}")
    if pa.types.is_nested(labels.type):
        raise UserError(f"{place.path}: column {name!r} holds {labels.type}, not labels of episodes")
    return labels


def as_texts(column: Any) -> Any:
    column = column.dictionary_decode() if isinstance(column.type, pa.DictionaryType) else column
    return column.cast(pa.string())


def label_changes(labels: Any) -> np.ndarray:
    """Mark the rows that are followed by a row with another label; the last row is left out."""
    changes = pc.call_function("not_equal", [labels.slice(1), labels.slice(0, len(labels) - 1)])
    return changes.to_numpy(zero_copy_only=False)


def stack_columns(parts: list[np.ndarray]) -> np.ndarray:
    """Stack columns of one or more numbers into one array of rows."""
    widths = [part.shape[1] if part.ndim == 2 else 1 for part in parts]
    together = np.empty((len(parts[0]), sum(widths)), np.result_type(*parts))
    start = 0
    for part, width in zip(parts, widths, strict=True):
        together[:, start : start + width] = part if part.ndim == 2 else part[:, None]
        start += width
    return together


def number_names(schema: pa.Schema, names: tuple[str, ...]) -> tuple[str, ...]:
    """Name each number of some columns, or return nothing if only the rows tell how many there are."""
    numbered = []
    for name in names:
        kind, shape = schema.field(name).type, []
        while pa.types.is_fixed_size_list(kind):
            kind, shape = kind.value_type, [*shape, kind.list_size]
        if pa.types.is_nested(kind) or math.prod(shape) > MANY:
            return ()
        numbered += [f"{name}.{i}" for i in range(math.prod(shape))] if shape else [name]
    return tuple(numbered)
