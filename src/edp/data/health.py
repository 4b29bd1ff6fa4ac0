"""Examining a log before training: statistics of its columns and episodes, and findings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edp.data import findings
from edp.data.checks import Rounding, checked_pieces
from edp.data.error_values import find_error_values
from edp.data.findings import Finding
from edp.data.log import LARGEST, Log, join_steps
from edp.data.other_units import find_other_units
from edp.data.statistics import Moments, Statistics, count_disagreements, summarise_columns
from edp.errors import UserError

SAMPLE = 200_000  # rows that are kept for distributions and duplicates


@dataclass
class Health(Statistics):
    """What is in a log, and what looks wrong in it."""

    findings: list[Finding] = field(default_factory=list)
    span: str = ""  # the rate of the rows, and their first and last time


@np.errstate(all="ignore")  # NaN and Inf are counted here
def examine_log(log: Log, low: Sequence[float] = (), high: Sequence[float] = ()) -> Health:
    """Read all of a log and examine it. ``low`` and ``high`` are the ranges of actions, if they are known."""
    rows, last, apart = 0, None, 0
    moments: dict[str, Moments] = {}
    rounding = Rounding()
    rewards, terminals, timeouts, kept, times = [], [], [], [], []
    every = max(1, log.size // SAMPLE)
    for steps in checked_pieces(log, finite=False):
        parts = {"observation": steps.observations, "action": steps.actions, "reward": steps.rewards[:, None]}
        for kind, part in parts.items():
            moments.setdefault(kind, Moments.of_width(part.shape[1])).add(part)
        rounding.add(np.where(np.abs(steps.observations) <= LARGEST, steps.observations, np.nan))
        rewards.append(steps.rewards.astype(np.float32))
        terminals.append(steps.terminals)
        timeouts.append(steps.timeouts)
        apart += count_disagreements(last, steps)
        chosen = slice(-rows % every, None, every)
        kept.append(steps.rows(chosen))
        if (known := log.piece_times()) is not None:
            times.append(known[chosen])
        rows, last = rows + len(steps.rewards), steps.rows(slice(-1, None))
    if not rows:
        raise UserError(f"{log.name}: no transitions in it")
    health = Health(log.name, rows)
    health.columns = [column for kind in moments for column in summarise_columns(kind, moments[kind], log, rows)]
    health.rewards = np.concatenate(rewards)
    health.sample = sample = join_steps(kept)
    health.every, health.times = every, np.concatenate(times) if times else None
    ends = np.concatenate(terminals), np.concatenate(timeouts)
    health.count_episodes(*ends)
    health.span = log.span()
    health.findings = [
        *(Finding("error", what, "training refuses it") for what in log.refused),
        *log.findings(),
        *findings.find_bad_numbers(health, log),
        *findings.find_wrong_ends(health, apart, sample.next_observations is not None),
        *([] if sample.next_observations is not None else findings.find_unknown_next(*ends)),
        *findings.find_few(rows, len(health.lengths), health.terminals + health.timeouts),
        *find_other_units(sample, every, health.columns, log),
        *findings.find_jumps(sample, every, log),
        *findings.find_useless_columns(health),
        *find_error_values(health, sample.observations, every, log),
        *findings.find_coarse_columns(rounding, log),
        *findings.find_wrong_ranges(health, low or log.low, high or log.high, log),
        *findings.find_useless_rewards(health),
        *findings.find_cheap_ends(health.rewards, ends[0]),
        *findings.find_duplicates(sample.observations, sample.actions, every),
    ]
    return health


def health_json(health: Health) -> dict[str, Any]:
    ends = lambda numbers: [float(numbers.min()), float(np.median(numbers)), float(numbers.max())]  # noqa: E731
    known = lambda value: None if isinstance(value, float) and not math.isfinite(value) else value  # noqa: E731
    return {
        "name": health.name,
        "transitions": health.rows,
        "episodes": len(health.lengths),
        "terminals": health.terminals,
        "timeouts": health.timeouts,
        "time": health.span,
        "lengths": ends(health.lengths),
        "returns": ends(health.returns),
        "columns": [{key: known(value) for key, value in column._asdict().items()} for column in health.columns],
        "findings": [finding._asdict() for finding in health.findings],
    }
