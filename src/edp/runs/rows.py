"""Rows of a run's logs: one JSON object per line, with the step that it belongs to."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson

Row = dict[str, Any]


def as_line(row: Row) -> str:
    return json.dumps(row) + "\n"


def parse_line(text: str) -> Row | None:
    """The row in a line, or None if the line is not one: a crash may leave an unfinished line."""
    try:
        row = orjson.loads(text)
    except ValueError:
        row = parse_with_nan(text)
    return row if isinstance(row, dict) and isinstance(row.get("step"), int) else None


def parse_with_nan(text: str) -> Any:
    """Parse with Python's JSON parser, which is slower but accepts NaN. Returns None for text that is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def finite_or_none(values: Iterable[float]) -> list[float | None]:
    """Numbers for JSON, which has neither NaN nor Inf: None in their place."""
    return [value if np.isfinite(value) else None for value in values]
