"""Findings: what in a log makes training fail, or worse than it could be."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edp.data.checks import CONSTANT, FINER, Rounding
from edp.data.log import LARGEST, Log, Steps
from edp.data.statistics import ColumnSummary, Statistics
from edp.data.units import Units
from edp.errors import counted

JUMP = 15.0  # a column jumps if it changes by more than this many median changes, and by more than its std
TOO_FEW_ROWS, FEW_ROWS, FEW_EPISODES = 100, 1000, 3
CHEAP = 10  # steps: an end that costs less than so many of them is cheap
FINE = 1 / 512  # of a column's range: with a smaller rounding error, float32 distinguishes 256 values of it


class Finding(NamedTuple):
    """Something that the user should know."""

    level: str  # "error": training refuses it; "warning": training would learn something wrong; "note": good to know
    what: str
    effect: str  # on training, and what to do


def find_bad_numbers(statistics: Statistics, log: Log) -> list[Finding]:
    findings, texts = [], log.encoding.texts
    again = {f"{name}={text}" for name in texts for text in texts[name][1:]}  # of a cell that is already counted
    owners = {f"{name}={texts[name][0]}": name for name in texts}
    for kind in ("observation", "action", "reward"):
        bad = [column for column in statistics.columns_of(kind) if column.not_finite and column.name not in again]
        if bad:
            worst = max(bad, key=lambda column: column.not_finite)
            name = owners.get(worst.name, worst.name)
            findings.append(
                Finding(
                    "error",
                    f"{counted(sum(column.not_finite for column in bad), 'NaN, Inf or too large number')} in "
                    f"{counted(len(bad), f'{kind} column')}, most in {name!r}, there first in "
                    f"{log.row_text(worst.first_not_finite or 0)}",
                    "training refuses them: fill them in, or leave such rows out (`missing` does it for tables)",
                )
            )
    return findings


def find_wrong_ends(statistics: Statistics, apart: int, has_next: bool) -> list[Finding]:
    findings, episodes, lengths = [], len(statistics.lengths), statistics.lengths
    finished = lengths[:-1] if statistics.unfinished else lengths
    if not statistics.terminals and not statistics.timeouts:
        findings.append(
            Finding(
                "warning",
                "no terminals and no timeouts: all of it is one episode",
                "returns, held-out episodes and the best episodes mean nothing, and at a hidden boundary "
                "the next episode's first state is used as the next state: mark the ends (timeouts, or "
                "`episode_column` of a table)",
            )
        )
    elif not statistics.terminals:
        findings.append(
            Finding(
                "note",
                "no terminals at all: every episode was cut off",
                "right if the process never ends; if episodes can fail or succeed, mark those ends as terminals",
            )
        )
    longest = int(lengths.max())
    at_limit = int((finished == longest).sum())
    if (
        statistics.terminals
        and not statistics.timeouts
        and longest > 1
        and at_limit > 1
        and at_limit >= 0.2 * len(finished)
    ):
        findings.append(
            Finding(
                "warning",
                f"{at_limit:,} of {len(finished):,} episodes have the length {longest:,}, and all are marked terminal",
                "a time limit seems to be marked as terminal: the values would learn that no rewards follow. Use "
                f"`episode_limit={longest}`",
            )
        )
    single = int((lengths == 1).sum())
    stuck = np.flatnonzero(lengths[1:] == 1)  # an end right after another end
    if statistics.terminals and 1 < len(stuck) < episodes - 1 and len(stuck) >= 0.9 * single:
        findings.append(
            Finding(
                "warning",
                f"an end stays marked over several rows, which makes {len(stuck):,} episodes of one step",
                "mark the first row of each end only: a flag of a fault often stays up until somebody resets it",
            )
        )
    elif single and episodes > 1:
        level = "note" if single == episodes or single < 0.05 * episodes else "warning"
        findings.append(
            Finding(
                level,
                f"{single:,} of {episodes:,} episodes {'has' if single == 1 else 'have'} one step",
                "fine for a bandit; otherwise ends are marked where there are none"
                + ("" if has_next else " (and such steps are dropped, because their next state is unknown)"),
            )
        )
    if apart:
        findings.append(
            Finding(
                "warning",
                f"{counted(apart, 'time')} the state after a step is not the one that the next step of the episode "
                "begins with",
                "an episode probably ends there without a mark: returns and n-step values then cross the boundary",
            )
        )
    return findings


def find_jumps(sample: Steps, every: int, log: Log) -> list[Finding]:
    """Look for steps in which most columns jump, if there are no next states to compare with."""
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
            f"{counted(int(leap.sum()), 'time')} most observations jump in an episode, first after "
            f"{log.row_text(int(np.argmax(leap)))}",
            "maybe another episode begins there: without a mark, its first state is used as the next state",
        )
    ]


def find_useless_columns(statistics: Statistics) -> list[Finding]:
    findings = []
    for kind, effect in (
        ("observation", "it tells the policy nothing: leave it out"),
        ("action", "a constant action has no range, so training refuses it: leave the column out"),
    ):
        constant = [
            column for column in statistics.columns_of(kind) if column.high - column.low <= CONSTANT * abs(column.high)
        ]
        if constant:
            names = ", ".join(repr(column.name) for column in constant[:5]) + (", …" if len(constant) > 5 else "")
            level = "error" if kind == "action" else "note"
            findings.append(Finding(level, f"{counted(len(constant), f'constant {kind} column')}: {names}", effect))
    return findings


def find_coarse_columns(rounding: Rounding, log: Log) -> list[Finding]:
    """Look for columns with small changes of large numbers."""
    refused = rounding.refused(log)
    return [
        Finding("error", what, f"training refuses it: {FINER}")
        if what in refused
        else Finding("warning", what, f"the policy sees it in coarse steps: {FINER}")
        for what in rounding.coarse(log, FINE)
    ]


def find_wrong_ranges(statistics: Statistics, low: Sequence[float], high: Sequence[float], log: Log) -> list[Finding]:
    """Look for actions outside of their range, which is that of the data unless it is given."""
    columns, findings = statistics.columns_of("action"), []
    for side, given in (("low", low), ("high", high)):
        if len(given) not in (0, 1, len(columns)):
            what = f"action_{side} has {counted(len(given), 'number')} for {counted(len(columns), 'action')}"
            return [Finding("error", what, "training refuses it: give one number for each, or one for all")]
    ends = range_ends(columns, low, high)
    rows = first_outside(columns, *ends, log) if low or high else {}
    for i, (column, a, b) in enumerate(zip(columns, *ends, strict=True)):
        what = f"action {column.name!r} spans {column.low:.6g} to {column.high:.6g}, and its range is {a:g} to {b:g}"
        what += f", first left in {log.row_text(rows[i][0])}, with {rows[i][1]:.6g}" if i in rows else ""
        if (low or high) and (not a < b or is_outside(column, a, b)):
            effect = "training refuses it: widen the range (`action_low`, `action_high`), or leave such rows out"
            findings.append(Finding("error", what, effect))
    wide = [column for column in columns if max(abs(column.low), abs(column.high)) > 1.001]
    if wide and not (low and high):
        span = min(column.low for column in wide), max(column.high for column in wide)
        what = f"actions are not in [-1, 1] (they span {span[0]:.4g} to {span[1]:.4g})"
        findings.append(
            Finding(
                "note",
                what,
                "each is scaled to it and back; `action_low` and `action_high` set its range (else: the data's)",
            )
        )
    return findings


def range_ends(
    columns: list[ColumnSummary], low: Sequence[float], high: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """Return the low and the high end of each action's range."""
    each = lambda given, data: list(given) * (len(columns) if len(given) == 1 else 1) or data  # noqa: E731
    return each(low, [column.low for column in columns]), each(high, [column.high for column in columns])


def first_outside(
    columns: list[ColumnSummary], low: Sequence[float], high: Sequence[float], log: Log
) -> dict[int, tuple[int, float]]:
    """The first row and number of each action that is outside of its range."""
    ends = list(zip(columns, low, high, strict=True))
    if not all(a < b for _, a, b in ends) or not any(is_outside(*each) for each in ends):
        return {}
    return Units((0.0,), (1.0,), tuple(low), tuple(high)).first_outside(log, finite=False)


def is_outside(column: ColumnSummary, low: float, high: float) -> bool:
    """Return whether training would refuse a column's lowest or highest number."""
    units = Units((0.0,), (1.0,), (low,), (high,))
    return bool(units.outside(units.actions_to_network(np.array([column.low, column.high]))).any())


def find_useless_rewards(statistics: Statistics) -> list[Finding]:
    reward = statistics.columns_of("reward")[0]
    if reward.high - reward.low <= CONSTANT * abs(reward.high):
        return [
            Finding(
                "warning",
                f"every reward is {reward.low:g}",
                "nothing tells good actions from bad ones: `algo=bc` learns to imitate, others have nothing to learn",
            )
        ]
    share = float((statistics.rewards != 0).mean())
    if share < 0.01:
        return [
            Finding(
                "note",
                f"rewards are sparse: {share:.2%} of the steps have one",
                "rewards have to be propagated over many steps: `n_step`, a larger `discount` or IQL help",
            )
        ]
    return []


def find_cheap_ends(rewards: np.ndarray, terminals: np.ndarray) -> list[Finding]:
    """Look for ends that cost about as little as any step, where every step costs: ending early then pays."""
    if not terminals.any() or terminals.all():
        return []
    end, step = (float(np.nanmean(rewards[marked], dtype=np.float64)) for marked in (terminals, ~terminals))
    if step >= 0 or end < CHEAP * step or (rewards[~terminals] > 0).mean() > 0.5:
        return []
    return [
        Finding(
            "note",
            f"a step costs {-step:.3g} on average, and a terminal {'costs' if end < 0 else 'earns'} {abs(end):.3g}: "
            "a policy that ends an episode early loses less",
            "right if such an end is a success; if it is a failure, subtract what it costs from the reward of its row",
        )
    ]


def find_duplicates(observations: np.ndarray, actions: np.ndarray, every: int) -> list[Finding]:
    """Look for steps with equal observations and actions, among one row in ``every``."""
    pairs = np.ascontiguousarray(np.concatenate([observations, actions], axis=1).astype(np.float32))
    different = len(np.unique(pairs.view(np.dtype((np.void, pairs.dtype.itemsize * pairs.shape[1])))))
    again = len(pairs) - different
    if again <= 0.01 * len(pairs):
        return []
    where = f" (of {len(pairs):,} that were looked at)" if every > 1 else ""
    return [
        Finding(
            "note" if again < 0.5 * len(pairs) else "warning",
            f"{again:,} steps{where} have the same observation and action as another step",
            "duplicates weigh more; a file included twice also puts held-out episodes into training",
        )
    ]


def find_unknown_next(terminals: np.ndarray, timeouts: np.ndarray) -> list[Finding]:
    """Look whether no row has a known next state, if those are the observations of the next rows."""
    known = terminals | ~timeouts
    known[-1] = terminals[-1]
    if known.any():
        return []
    effect = "training refuses it: each episode has one step, so episodes end where they should not"
    return [Finding("error", "no transition in it has a known next state", effect)]


def find_few(rows: int, episodes: int, marked: int) -> list[Finding]:
    """Say how much data there is, if it is too little. ``marked`` is how many ends of episodes are marked."""
    if rows < FEW_ROWS:
        what = f"{counted(rows, 'step')} in {counted(episodes, 'episode')}: too few to learn from"
        effect = f"a policy needs thousands of steps; below {FEW_ROWS:,} it learns them by heart"
        return [Finding("warning" if rows < TOO_FEW_ROWS else "note", what, effect)]
    if episodes < FEW_EPISODES and marked:
        what = f"{counted(episodes, 'episode')}: too few to hold some out"
        effect = "held-out losses would come from one episode or none: mark more ends, for example one a day"
        return [Finding("warning", what, effect)]
    return []
