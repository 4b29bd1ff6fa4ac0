"""Rows of a run's logs: one JSON object per line, with the step that it belongs to."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import orjson

from edp.runs.scores import is_number, is_number_list, is_score_table

Row = dict[str, Any]
LARGEST_STEP = 2**53


def as_line(row: Row) -> str:
    return json.dumps(row) + "\n"


def parse_line(text: str, name: str = "") -> Row | None:
    """The row in a line, or None if the line is not one: a crash may leave an unfinished line.

    Rows that are not as ``edp`` writes them into the log ``name`` are left out, too.
    """
    try:
        row = orjson.loads(text)
    except ValueError:
        row = parse_with_nan(text)
    if not isinstance(row, dict) or type(row.get("step")) is not int or not 0 <= row["step"] <= LARGEST_STEP:
        return None
    return row if name not in CHECKS or CHECKS[name](row) else None


def parse_with_nan(text: str) -> Any:
    """Parse with Python's JSON parser, which is slower but accepts NaN. Returns None for text that is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def finite_or_none(values: Iterable[float]) -> list[float | None]:
    """Numbers for JSON, which has neither NaN nor Inf: None in their place."""
    return [value if np.isfinite(value) else None for value in values]


def is_training(row: Row) -> bool:
    """Whether training wrote the row. Later evaluations and ablations are in the same logs."""
    return row.get("kind", "training") == "training"


def is_metrics(row: Row) -> bool:
    """Whether the row has numbers for each seed, by name."""
    return isinstance(row.get("metrics"), dict) and all(map(is_number_list, row["metrics"].values()))


def is_evaluation(row: Row) -> bool:
    return isinstance(row.get("kind", ""), str) and is_score_table(row.get("scores"))


def is_time(row: Row) -> bool:
    return all(is_number(value) for name, value in row.items() if "second" in name)


def is_offline(row: Row) -> bool:
    over_last = row.get("over_last", [0, 0, 0])
    return is_number_list(row.get("values")) and is_number_list(over_last) and len(over_last) == 3


CHECKS: dict[str, Callable[[Row], bool]] = {  # of the rows of each log
    "metrics.jsonl": is_metrics,
    "evaluations.jsonl": is_evaluation,
    "validations.jsonl": is_metrics,
    "times.jsonl": is_time,
    "offline.jsonl": is_offline,
}
