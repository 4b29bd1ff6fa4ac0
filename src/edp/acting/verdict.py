"""Is a policy better than the log? Two estimates of the difference, each with an interval, and a plain sentence.

The quantity is the reward of a step, averaged over stretches of the log; it is 0 after the process has ended. Both
estimates are of the *difference* between policy and log: replays in a model (``replay``), and fitted Q evaluation
(``fitted_q``). Only if both say the same, and the first by more than its noise, there is an answer.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

SPAN = 0.025, 0.975  # quantiles of the bootstrap
DRAWS = 2000
FEW_EPISODES = 8  # with fewer, the bootstrap is over stretches of the log
MUCH_OUTSIDE = 0.05  # a share of steps outside of the log that is worth saying


class Interval(NamedTuple):
    low: float
    mean: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3g} ({self.low:+.3g} to {self.high:+.3g})"


class Gains(NamedTuple):
    """What a policy earned more than the log in each replayed stretch, by each member of the model."""

    lower: np.ndarray  # (members, n), as a pessimist counts steps that are outside of the log
    upper: np.ndarray  # the same, as an optimist does
    steps: np.ndarray  # (n), of each stretch
    episode: np.ndarray  # (n), of each stretch

    @property
    def interval(self) -> Interval:
        return bootstrap_interval(self.lower, self.upper, self.steps, self.episode)

    def to_json(self) -> dict[str, Any]:
        """Rounded numbers, with which the policies of several runs can be compared."""
        rounded = np.vectorize(lambda number: float(f"{number:.6g}"))
        return {name: rounded(part).tolist() for name, part in self._asdict().items()}

    @classmethod
    def from_json(cls, content: Any) -> "Gains":
        return cls(**{name: np.array(content[name], float) for name in cls._fields})


class Verdict(NamedTuple):
    word: str  # better, worse or cannot tell
    sentence: str
    policy: float
    log: float
    difference: Interval  # by replays
    fitted_q: Interval  # the same difference by fitted Q evaluation
    outside: float  # the share of the replays' steps that are far from everything in the log
    unit: str
    operators: Mapping[str, float]  # the mean reward of each operator's steps

    def to_json(self) -> dict[str, Any]:
        """The numbers for the row of a run."""
        lists = {"difference": list(self.difference), "fitted_q": list(self.fitted_q)}
        return {**self._asdict(), **lists, "operators": dict(self.operators)}


def give_verdict(
    difference: Interval, fitted_q: Interval, outside: float, log: float, unit: str, operators: Mapping[str, float]
) -> Verdict:
    word = decide(difference, fitted_q)
    sentence = explain(word, difference, fitted_q, outside, unit)
    return Verdict(word, sentence, log + difference.mean, log, difference, fitted_q, outside, unit, operators)


def bootstrap_interval(
    lower: np.ndarray, upper: np.ndarray, steps: np.ndarray, episode: np.ndarray, seed: int = 0
) -> Interval:
    """The 95 % interval of a sum per step, over episodes and over the members of an ensemble.

    ``lower`` and ``upper`` have the sums in each part of the log by each member, (members, n), as a pessimist and as an
    optimist counts them; ``steps`` are the steps of each part. The mean is the pessimist's.
    """
    rng = np.random.default_rng(seed)
    names, index = np.unique(episode, return_inverse=True)
    if len(names) < FEW_EPISODES:
        names = index = np.arange(len(episode))
    weight = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), DRAWS)[:, index].astype(float)
    member = rng.integers(len(lower), size=DRAWS)
    low, high = ((weight * part[member]).sum(axis=1) / (weight @ steps) for part in (lower, upper))
    mean = float(lower.mean(axis=0).sum() / steps.sum())
    return Interval(float(np.quantile(low, SPAN[0])), mean, float(np.quantile(high, SPAN[1])))


def sums_by_episode(episode: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of ``values`` over the rows of each episode, (members, episodes), and the numbers of these rows."""
    starts = np.flatnonzero(np.diff(episode, prepend=-1))
    return np.add.reduceat(values, starts, axis=1), np.diff(starts, append=len(episode))


def decide(difference: Interval, fitted_q: Interval) -> str:
    """Better only if both intervals are above 0; worse if the first is below 0 and the second does not contradict."""
    if difference.low > 0 and fitted_q.low > 0:
        return "better"
    return "worse" if difference.high < 0 and fitted_q.low < 0 else "cannot tell"


def explain(word: str, difference: Interval, fitted_q: Interval, outside: float, unit: str) -> str:
    low, mean, high = (f"{number:+.3g}" for number in difference)
    if word != "cannot tell":
        return f"The policy is {word} than the log: {mean} {unit} (95 % interval {low} to {high})."
    if difference.low > 0 or difference.high < 0:
        why = f"the two estimates disagree ({difference} by replays, {fitted_q} by fitted Q evaluation)"
    elif outside > MUCH_OUTSIDE:
        why = f"in {outside:.0%} of its steps it would be far from everything in the log"
    else:
        why = f"the difference is within its noise ({difference} {unit})"
    return f"Cannot tell whether the policy is better than the log: {why}."


def gain_over(first: Gains, second: Gains) -> Interval:
    """What one policy earns more than another in a step. Both replayed the same stretches in the same model.

    The first counts as a pessimist does and the second as an optimist does for the low end, and the other way round for
    the high end.
    """
    lower, upper = first.lower - second.upper, first.upper - second.lower
    both = bootstrap_interval(lower, upper, first.steps, first.episode)
    return both._replace(mean=first.interval.mean - second.interval.mean)
