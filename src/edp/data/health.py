"""What is in a log, and what in it would make training worse than it needs to be. Nothing is printed here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from edp.data.log import CONSTANT, FINER, LARGEST, Log, Rounding, Steps, checked
from edp.data.units import Units
from edp.errors import UserError

SAMPLE = 200_000  # rows that are kept for distributions and duplicates
JUMP = 15.0  # times the usual change of a column, and more than its std: in most of them, another episode begins
FINE = 1 / 512  # of a column's range: float32 tells 256 values of it apart


class Finding(NamedTuple):
    """Something that people should know."""

    level: str  # "error": training refuses it; "warning": it goes wrong quietly; "note": good to know
    what: str
    effect: str  # on training, and what to do


class Column(NamedTuple):
    """One number of observations or actions."""

    kind: str
    name: str
    low: float
    mean: float
    high: float
    std: float
    not_finite: int
    first_not_finite: int | None = None  # its row, in the order of the log


@dataclass
class Tally:
    """Moments over the pieces of a log, with numbers that are no numbers left out."""

    count: np.ndarray
    mean: np.ndarray
    square: np.ndarray  # the sum of squares of what is off the mean
    low: np.ndarray
    high: np.ndarray
    first_bad: np.ndarray  # row that is no number, or -1
    rows: int = 0

    @classmethod
    def of_width(cls, width: int) -> "Tally":
        zeros = lambda: np.zeros(width)  # noqa: E731
        return cls(zeros(), zeros(), zeros(), np.full(width, np.inf), np.full(width, -np.inf), np.full(width, -1))

    def add(self, part: np.ndarray) -> None:
        """Chan, Golub and LeVeque (1983), eq. 2.1: a mean that is far from 0 costs no digits of the std."""
        part = part.astype(np.float64, copy=False)
        good = np.abs(part) <= LARGEST
        count = good.sum(axis=0)
        mean = np.where(good, part, 0.0).sum(axis=0) / np.maximum(count, 1)
        square = (np.where(good, part - mean, 0.0) ** 2).sum(axis=0)
        both = np.maximum(self.count + count, 1)
        self.square += square + (mean - self.mean) ** 2 * self.count * count / both
        self.mean = self.mean + (mean - self.mean) * count / both
        self.count = self.count + count
        self.low = np.minimum(self.low, np.where(good, part, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(good, part, -np.inf).max(axis=0))
        new = (self.first_bad < 0) & (count < len(part))
        self.first_bad = np.where(new, self.rows + good.argmin(axis=0), self.first_bad)
        self.rows += len(part)

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.square / np.maximum(self.count, 1))


@dataclass
class Health:
    name: str
    rows: int = 0
    columns: list[Column] = field(default_factory=list)
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    returns: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rewards: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    terminals: int = 0  # episodes that came to their own end
    timeouts: int = 0
    unfinished: bool = False  # the last episode has no end
    sample: Steps | None = None  # rows for pictures, spread over the log
    findings: list[Finding] = field(default_factory=list)

    def of(self, kind: str) -> list[Column]:
        return [column for column in self.columns if column.kind == kind]


@np.errstate(all="ignore")  # numbers that are none are counted here
def examine(log: Log, low: Sequence[float] = (), high: Sequence[float] = ()) -> Health:
    """Read all of a log and say what is in it; its actions have the ranges that are given, if any."""
    rows, last, apart = 0, None, 0
    tallies: dict[str, Tally] = {}
    rounding = Rounding()
    rewards, terminals, timeouts, kept = [], [], [], []
    every = max(1, log.size // SAMPLE)
    for steps in checked(log, finite=False):
        parts = {"observation": steps.observations, "action": steps.actions, "reward": steps.rewards[:, None]}
        for kind, part in parts.items():
            tallies.setdefault(kind, Tally.of_width(part.shape[1])).add(part)
        rounding.add(np.where(np.abs(steps.observations) <= LARGEST, steps.observations, np.nan))
        rewards.append(steps.rewards.astype(np.float32))
        terminals.append(steps.terminals)
        timeouts.append(steps.timeouts)
        apart += disagreements(last, steps)
        kept.append(steps.rows(slice(-rows % every, None, every)))
        rows, last = rows + len(steps.rewards), steps.rows(slice(-1, None))
    if not rows:
        raise UserError(f"{log.name}: no transitions in it")
    health = Health(log.name, rows)
    health.columns = [column for kind, tally in tallies.items() for column in named(kind, tally, log, rows)]
    health.rewards = np.concatenate(rewards)
    sample = Steps(*(None if part[0] is None else np.concatenate(part) for part in zip(*kept, strict=True)))  # pyright: ignore
    health.sample = sample
    count_episodes(health, np.concatenate(terminals), np.concatenate(timeouts))
    health.findings = [
        *(
            Finding("error", what, "training refuses it: parts of episodes would be taken for whole ones")
            for what in log.refused
        ),
        *bad_numbers(health),
        *ends_of_episodes(health, apart, sample.next_observations is not None),
        *jumps(health, sample, every),
        *columns_that_say_little(health),
        *coarse(rounding, log),
        *ranges(health, low or log.low, high or log.high),
        *rewards_that_say_little(health),
        *duplicates(sample, every),
    ]
    return health


def disagreements(last: Steps | None, steps: Steps) -> int:
    """How often the state after a step is not the one that the next step of the episode begins with."""
    if steps.next_observations is None:
        return 0
    before, after = steps.next_observations[:-1], steps.observations[1:]
    differs = (before != after).any(axis=1)
    inside = int((differs & ~steps.ends[:-1]).sum())
    if last is not None and last.next_observations is not None and not last.ends[0]:
        inside += int((last.next_observations[0] != steps.observations[0]).any())
    return inside


def named(kind: str, tally: Tally, log: Log, rows: int) -> list[Column]:
    names = {"observation": log.observation_names, "action": log.action_names, "reward": ("reward",)}[kind]
    names = names if len(names) == len(tally.low) else tuple(map(str, range(len(tally.low))))
    numbers = (np.where(tally.count, each, np.nan) for each in (tally.low, tally.mean, tally.high, tally.std))
    columns = names, *numbers, rows - tally.count, tally.first_bad
    return [
        Column(kind, name, float(low), float(mean), float(high), float(std), int(bad), int(first) if bad else None)
        for name, low, mean, high, std, bad, first in zip(*columns, strict=True)
    ]


def count_episodes(health: Health, terminals: np.ndarray, timeouts: np.ndarray) -> None:
    ends = np.flatnonzero(terminals | timeouts)
    health.unfinished = not len(ends) or ends[-1] + 1 < len(terminals)
    stops = np.append(ends, len(terminals) - 1) if health.unfinished else ends
    starts = np.concatenate([[0], stops[:-1] + 1])
    health.lengths = stops - starts + 1
    known = np.abs(health.rewards) <= LARGEST
    health.returns = np.add.reduceat(np.where(known, health.rewards, 0), starts, dtype=np.float64)
    health.terminals, health.timeouts = int(terminals.sum()), int((timeouts & ~terminals).sum())


def bad_numbers(health: Health) -> list[Finding]:
    found = []
    for kind in ("observation", "action", "reward"):
        bad = [column for column in health.of(kind) if column.not_finite]
        if bad:
            worst = max(bad, key=lambda column: column.not_finite)
            found.append(
                Finding(
                    "error",
                    f"{sum(column.not_finite for column in bad):,} NaN, Inf or too large numbers in {len(bad)} "
                    f"{kind} column(s), most in {worst.name!r}, there first in row {worst.first_not_finite}",
                    "training refuses them: fill them in, or leave such rows out",
                )
            )
    return found


def ends_of_episodes(health: Health, apart: int, has_next: bool) -> list[Finding]:
    found, episodes, lengths = [], len(health.lengths), health.lengths
    finished = lengths[:-1] if health.unfinished else lengths
    if not health.terminals and not health.timeouts:
        found.append(
            Finding(
                "warning",
                "no terminals and no timeouts: all of it is one episode",
                "returns, held-out episodes and the best episodes mean nothing; where episodes begin anew, a wrong "
                "state follows: mark their ends (timeouts, or --episode-column of a table)",
            )
        )
    elif not health.terminals:
        found.append(
            Finding(
                "note",
                "no terminals at all: every episode was cut off",
                "right for processes that go on; if an episode can fail or succeed, mark that, or nobody learns it",
            )
        )
    longest = int(lengths.max())
    at_limit = int((finished == longest).sum())
    if health.terminals and not health.timeouts and longest > 1 and at_limit > 1 and at_limit >= 0.2 * len(finished):
        found.append(
            Finding(
                "warning",
                f"{at_limit:,} of {len(finished):,} episodes have the length {longest:,}, and all are marked terminal",
                "a time limit seems to be marked as an end: values would learn that nothing comes after it. Use "
                f"--episode-limit {longest}",
            )
        )
    single = int((lengths == 1).sum())
    if single and episodes > 1:
        level = "note" if single == episodes else "warning"
        found.append(
            Finding(
                level,
                f"{single:,} of {episodes:,} episodes have one step",
                "fine for a bandit; otherwise ends are marked where there are none"
                + ("" if has_next else " (and such steps are dropped, for their next state is unknown)"),
            )
        )
    if apart:
        found.append(
            Finding(
                "warning",
                f"{apart:,} times the state after a step is not the one that the next step of the episode begins with",
                "an episode probably ends there and is not marked: returns and n-step values cross the border",
            )
        )
    return found


def jumps(health: Health, sample: Steps, every: int) -> list[Finding]:
    """Where there are no next states to compare, a leap in most columns at once is suspicious."""
    if sample.next_observations is not None or every > 1 or len(sample.rewards) < 10:
        return []
    observations = sample.observations.astype(np.float64)
    observations[~(np.abs(observations) <= LARGEST)] = np.nan
    change = np.abs(np.diff(observations, axis=0))
    known = np.isfinite(change).any(axis=0)
    observations, change = observations[:, known], change[:, known]
    usual = np.nanmedian(change, axis=0)
    moving = usual > 0
    if not moving.any():
        return []
    far = np.maximum(JUMP * usual, np.nanstd(observations, axis=0))[moving]
    leap = ((change[:, moving] > far).mean(axis=1) > 0.5) & ~sample.ends[:-1]
    if not leap.any():
        return []
    return [
        Finding(
            "warning",
            f"{int(leap.sum()):,} times most observations leap in an episode, first after row {int(np.argmax(leap))}",
            "maybe another episode begins there: without a mark, a wrong state is taken for the next one",
        )
    ]


def columns_that_say_little(health: Health) -> list[Finding]:
    found = []
    for kind, effect in (
        ("observation", "it tells the policy nothing: leave it out"),
        ("action", "there is nothing to choose: leave it out, or training refuses it for want of a range"),
    ):
        constant = [column for column in health.of(kind) if column.high - column.low <= CONSTANT * abs(column.high)]
        if constant:
            names = ", ".join(repr(column.name) for column in constant[:5]) + (", …" if len(constant) > 5 else "")
            level = "error" if kind == "action" else "note"
            found.append(Finding(level, f"{len(constant)} constant {kind} column(s): {names}", effect))
    for column in health.of("observation"):
        far = max(abs(column.high - column.mean), abs(column.mean - column.low)) / (column.std or 1.0)
        if far > 50:
            found.append(
                Finding(
                    "warning",
                    f"observation {column.name!r} reaches {far:.0f} standard deviations from its mean "
                    f"({column.low:.4g} to {column.high:.4g})",
                    "a sensor's error value? It would dominate the scaling: leave such rows out",
                )
            )
    return found


def coarse(rounding: Rounding, log: Log) -> list[Finding]:
    """Columns with a small change on a large number."""
    refused = rounding.refused(log)
    return [
        Finding("error", what, f"training refuses it: {FINER}")
        if what in refused
        else Finding("warning", what, f"the policy sees it in coarse steps: {FINER}")
        for what in rounding.coarse(log, FINE)
    ]


def ranges(health: Health, low: Sequence[float], high: Sequence[float]) -> list[Finding]:
    """How actions are scaled from their ranges, which are the data's where none are given, and what is not in those."""
    columns, found = health.of("action"), []
    for side, given in (("low", low), ("high", high)):
        if len(given) not in (0, 1, len(columns)):
            what = f"action_{side} has {len(given)} numbers, and there are {len(columns)} action(s)"
            return [Finding("error", what, "training refuses it: give one number for each, or one for all")]
    for column, a, b in zip(columns, *sides(columns, low, high), strict=True):
        what = f"action {column.name!r} spans {column.low:.6g} to {column.high:.6g}, and its range is {a:g} to {b:g}"
        if (low or high) and (not a < b or beyond(column, a, b)):
            effect = "training refuses it: widen the range (action_low, action_high), or leave such rows out"
            found.append(Finding("error", what, effect))
    wide = [column for column in columns if max(abs(column.low), abs(column.high)) > 1.001]
    if wide:
        ends = min(column.low for column in wide), max(column.high for column in wide)
        source = "the one given" if low and high else "the data's where --action-low and --action-high do not say it"
        what = f"actions are not in [-1, 1] (they span {ends[0]:.4g} to {ends[1]:.4g})"
        found.append(Finding("note", what, f"each is scaled to it and back; the range is {source}"))
    return found


def sides(columns: list[Column], low: Sequence[float], high: Sequence[float]) -> tuple[Sequence[float], ...]:
    """The ends of the range of each action."""
    each = lambda given, data: list(given) * (len(columns) if len(given) == 1 else 1) or data  # noqa: E731
    return each(low, [column.low for column in columns]), each(high, [column.high for column in columns])


def beyond(column: Column, low: float, high: float) -> bool:
    """Whether training would refuse a column's lowest or highest number."""
    units = Units((0.0,), (1.0,), (low,), (high,))
    return bool(units.outside(units.action_in(np.array([column.low, column.high]))).any())


def rewards_that_say_little(health: Health) -> list[Finding]:
    reward = health.of("reward")[0]
    if reward.high - reward.low <= CONSTANT * abs(reward.high):
        return [
            Finding(
                "warning",
                f"every reward is {reward.low:g}",
                "nothing tells good actions from bad ones: --algo bc learns to imitate, others have nothing to learn",
            )
        ]
    share = float((health.rewards != 0).mean())
    if share < 0.01:
        return [
            Finding(
                "note",
                f"rewards are sparse: {share:.2%} of the steps have one",
                "values have to travel far: --n-step, a larger --discount or IQL help",
            )
        ]
    return []


def duplicates(sample: Steps, every: int) -> list[Finding]:
    """Steps with the very same observation and action."""
    pairs = np.ascontiguousarray(np.concatenate([sample.observations, sample.actions], axis=1).astype(np.float32))
    different = len(np.unique(pairs.view(np.dtype((np.void, pairs.dtype.itemsize * pairs.shape[1])))))
    again = len(pairs) - different
    if again <= 0.01 * len(pairs):
        return []
    where = f" (of {len(pairs):,} that were looked at)" if every > 1 else ""
    return [
        Finding(
            "note" if again < 0.5 * len(pairs) else "warning",
            f"{again:,} steps{where} have an observation and an action that another one has, too",
            "they count as often as they are there; if files were put in twice, held-out episodes are no test",
        )
    ]


def to_json(health: Health) -> dict[str, Any]:
    ends = lambda numbers: [float(numbers.min()), float(np.median(numbers)), float(numbers.max())]  # noqa: E731
    known = lambda value: None if isinstance(value, float) and not math.isfinite(value) else value  # noqa: E731
    return {
        "name": health.name,
        "transitions": health.rows,
        "episodes": len(health.lengths),
        "terminals": health.terminals,
        "timeouts": health.timeouts,
        "lengths": ends(health.lengths),
        "returns": ends(health.returns),
        "columns": [{key: known(value) for key, value in column._asdict().items()} for column in health.columns],
        "findings": [finding._asdict() for finding in health.findings],
    }
