"""Scores of a run: means that ignore NaN, and the learning curve with the paper's two measures, RAT and OMS."""

from typing import Any, NamedTuple

import numpy as np

LAST = 10  # evaluations that RAT averages
LARGEST_INTEGER = 2**1023  # in JSON, integers have no limit
LARGEST_SCORE = 1e12  # a larger number is an error of the environment, and counts as NaN


def nan_mean(values: Any, axis: int | None = None) -> Any:
    """Compute the mean of all values that are not NaN; it is NaN where there are none."""
    table = np.asarray(values, float)
    known = ~np.isnan(table)
    count = known.sum(axis=axis)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values have an infinite mean
        total = np.where(known, table, 0.0).sum(axis=axis)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)[()]


class Curve(NamedTuple):
    """The evaluations that one run made while it trained."""

    steps: np.ndarray
    scores: np.ndarray  # (evaluations, seeds): means over episodes
    episodes: int

    @property
    def rat(self) -> np.ndarray:
        """Running average at training: each seed's mean of the last ten evaluations."""
        return nan_mean(self.scores[-LAST:], axis=0)

    @property
    def oms(self) -> np.ndarray:
        """Online model selection: each seed's best evaluation."""
        highest = np.where(np.isnan(self.scores), -np.inf, self.scores).max(axis=0)
        return np.where(np.isinf(highest), np.nan, highest)

    @property
    def means(self) -> np.ndarray:
        """The mean over seeds of each evaluation."""
        return nan_mean(self.scores, axis=1)


def curve_from_evaluations(rows: list[dict[str, Any]], seeds: int | None = None) -> Curve | None:
    """Build the curve from rows of ``evaluations.jsonl``; None if no row has scores of ``seeds`` seeds.

    Rows whose scores are malformed, or are of another number of episodes than the last row's, are left out.
    ``seeds`` defaults to the number of seeds in the last row.
    """
    if seeds is None:
        seeds = len(rows[-1]["scores"]) if rows else 0
    valid, table = rows, number_table([row.get("scores") for row in rows], 3)  # (evaluations, seeds, episodes)
    if table is None or table.shape[1] != seeds:
        valid = [row for row in rows if is_score_table(row.get("scores"), seeds)]
        episodes = len(valid[-1]["scores"][0]) if valid else 0
        valid = [row for row in valid if len(row["scores"][0]) == episodes]
        table = np.array([row["scores"] for row in valid], float)
    if not valid:
        return None
    table[~(np.abs(table) < LARGEST_SCORE)] = np.nan
    return Curve(np.array([row["step"] for row in valid]), nan_mean(table, 2), table.shape[2])


def number_table(values: list, dims: int) -> np.ndarray | None:
    """Convert nested lists of numbers to an array of ``dims`` axes in one go; None if they do not fit in one."""
    try:
        table = np.array(values, float)
    except (ValueError, TypeError, OverflowError):
        return None
    return table if table.ndim == dims and table.size else None


def is_score_table(values: Any, seeds: int | None = None) -> bool:
    """Whether this is a list of ``seeds`` lists of numbers, all of the same length. None stands for any number."""
    if not isinstance(values, list) or seeds not in (None, len(values)) or not all(map(is_number_list, values)):
        return False
    return len({len(scores) for scores in values}) == 1


def is_number_list(values: Any) -> bool:
    """Whether this is a list of at least one number; None stands for NaN."""
    if not isinstance(values, list) or not values:
        return False
    usual = {float, type(None)}.issuperset(map(type, values))  # a loop in C: reports check millions of numbers
    return usual or all(value is None or is_number(value) for value in values)


def is_number(value: Any) -> bool:
    """Whether this is a number that fits in a float."""
    return type(value) is float or (type(value) is int and abs(value) < LARGEST_INTEGER)
