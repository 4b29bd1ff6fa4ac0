"""The typical day of a log, or its typical episode: the one whose traces are nearest to the median of all."""

import warnings
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from edp.data.log import Steps
from edp.data.statistics import Statistics

DAY = 86_400.0  # seconds
BINS = 48  # of a day or an episode, in which traces are compared
LONG_ENOUGH = BINS // 4  # bins of a day that must have rows, or else episodes are compared
FULL = 0.9  # only days with at least this share of the fullest day's bins are compared
MOST_PARTS = 500  # days or episodes that are compared
PURE = 0.9  # a day or an episode belongs to a label that this share of its rows has
MOST_LABELS, FEW_LABELS = 6, 3  # with a typical part of their own; few enough to name these parts
OLDEST_DATE, LAST_DATE = 1e8, 2e11  # seconds; other times are not dates
HOURS = "hour of the day"
FIRST_ROWS = 1000  # that are drawn if episodes have only one step


class Trace(NamedTuple):
    """Rows of the sample to draw, in order, and their places along the horizontal axis."""

    rows: np.ndarray
    at: np.ndarray


class Typical(NamedTuple):
    traces: list[Trace]  # one, or one for each label
    across: str  # what the horizontal axis shows
    about: str  # which day or episode it is, and why


class Parts(NamedTuple):
    """The days or episodes of a log that are compared."""

    kind: str
    rows: dict[str, np.ndarray]  # of the sample, by the name of the part
    at: np.ndarray  # the place of every row of the sample in its part: hours, or steps
    end: float  # of ``at``; what is after it is not compared
    across: str


@np.errstate(all="ignore")
def find_typical(statistics: Statistics, sample: Steps, labels: np.ndarray | None = None) -> Typical:
    """Find the typical day of a log that has times, or else its typical episode.

    ``labels`` has a text for each row of the ``sample``; it may be empty. If most days (or episodes) belong to one
    label each, a typical one is found for each label.
    """
    parts = days_of(statistics.times) or episodes_of(statistics, len(sample.rewards))
    if parts is None:
        rows = np.arange(min(len(sample.rewards), FIRST_ROWS))
        steps = rows * statistics.every
        return Typical([Trace(rows, steps)], "step", f"the first {steps[-1] + 1:,} steps")
    spread = np.array([column.std or np.nan for column in statistics.columns])

    def nearest(names: list[str]) -> str:
        found = []
        for name in names:
            rows = parts.rows[name]
            rows = rows[parts.at[rows] <= parts.end]
            found.append(binned(sample.rows(rows), parts.at[rows] / parts.end, spread))
        return names[nearest_to_median(np.array(found))]

    owners = owned_parts(parts, labels) if labels is not None else {}
    if owners:
        chosen = {label: nearest(names) for label, names in owners.items()}
        about = f"of each operator, the {parts.kind} nearest to the median {parts.kind}"
        if len(chosen) <= FEW_LABELS:
            about += f" ({', '.join(f'{label}: {name}' for label, name in chosen.items())})"
    else:
        name, count = nearest(list(parts.rows)), len(parts.rows)
        why = f", nearest to the median of {count:,} {parts.kind}s" if count > 1 else ""
        chosen, about = {"": name}, name + why
    traces = [Trace(parts.rows[name], parts.at[parts.rows[name]]) for name in chosen.values()]
    return Typical(traces, parts.across, about)


def days_of(times: np.ndarray | None) -> Parts | None:
    """Cut a log at midnight; None if it has no times, or if it is much shorter than a day."""
    if times is None:
        return None
    number, hours = np.floor(times / DAY).astype(np.int64), times % DAY / 3600
    days, covered = np.unique(np.unique(number * BINS + bins_of(hours / 24)) // BINS, return_counts=True)
    if covered.max() < LONG_ENOUGH:
        return None
    dated = times.min() > OLDEST_DATE and times.max() < LAST_DATE
    date = lambda day: datetime.fromtimestamp(day * DAY, UTC).strftime("%A %Y-%m-%d")  # noqa: E731
    rows = chosen_rows(number, spread_out(days[covered >= FULL * covered.max()]))
    named = {date(day) if dated else f"day {day}": which for day, which in rows.items()}
    return Parts("day", named, hours, 24.0, HOURS)


def episodes_of(statistics: Statistics, rows: int) -> Parts | None:
    """Cut a sample of ``rows`` rows into episodes, of which those of medium length are compared.

    None if episodes have only one step.
    """
    lengths = statistics.lengths
    if np.median(lengths) <= 1:
        return None
    stops, place = np.cumsum(lengths), np.arange(rows) * statistics.every
    number = np.searchsorted(stops, place, "right")
    at = (place - (stops - lengths)[number]).astype(np.float64)
    low, high = np.quantile(lengths, [0.25, 0.75])
    medium = [each for each in np.unique(number) if low <= lengths[each] <= high]
    chosen = chosen_rows(number, spread_out(np.array(medium or [number[0]])))
    named = {f"episode {each + 1} of {len(lengths)}": which for each, which in chosen.items()}
    return Parts("episode", named, at, float(np.median(lengths)), "step of the episode")


def chosen_rows(number: np.ndarray, chosen: np.ndarray) -> dict[int, np.ndarray]:
    """Return the rows of each chosen part, if ``number`` is the part that each row belongs to."""
    order = np.argsort(number, kind="stable")
    ends = (np.searchsorted(number[order], chosen, side) for side in ("left", "right"))
    return {int(each): order[first:last] for each, first, last in zip(chosen, *ends, strict=True)}


def spread_out(numbers: np.ndarray) -> np.ndarray:
    """Choose at most ``MOST_PARTS`` of some numbers, spread over all of them."""
    return numbers[np.unique(np.linspace(0, len(numbers) - 1, min(MOST_PARTS, len(numbers))).astype(int))]


def owned_parts(parts: Parts, labels: np.ndarray) -> dict[str, list[str]]:
    """Return the parts that belong to each label; nothing if most of them belong to none, or if there is one label."""
    owners: dict[str, list[str]] = {}
    for name, rows in parts.rows.items():
        texts, counts = np.unique(labels[rows], return_counts=True)
        if counts.max() >= PURE * counts.sum() and texts[counts.argmax()]:
            owners.setdefault(str(texts[counts.argmax()]), []).append(name)
    if len(owners) < 2 or 2 * sum(map(len, owners.values())) <= len(parts.rows):
        return {}
    frequent = sorted(owners, key=lambda label: -len(owners[label]))[:MOST_LABELS]
    return {label: owners[label] for label in sorted(frequent)}


def binned(steps: Steps, at: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Average all columns over bins of ``at``, which is from 0 to 1, in standard deviations: (bins, columns).

    Columns without changes, and bins without rows, are NaN.
    """
    values = np.column_stack([steps.observations, steps.actions, steps.rewards]) / spread
    total, count = np.zeros((2, BINS, len(spread)))
    np.add.at(total, bins_of(at), np.where(np.isfinite(values), values, 0.0))
    np.add.at(count, bins_of(at), np.isfinite(values))
    return np.where(count > 0, total / count, np.nan)


def nearest_to_median(traces: np.ndarray) -> int:
    """Return the trace, (traces, bins, columns), that differs least from the median of all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of bins without any number
        distance = np.nanmean(np.abs(traces - np.nanmedian(traces, axis=0)), axis=(1, 2))
    return int(np.argmin(np.nan_to_num(distance, nan=np.inf)))


def bins_of(at: np.ndarray) -> np.ndarray:
    return np.minimum((at * BINS).astype(int), BINS - 1)
