"""What evaluations say: the paper's OMS and RAT, and rliable's IQM and probability of improvement, with intervals.

Scores of runs are arrays (runs, tasks): a column is a task, and a row one seed of each. Agarwal et al. (2021), "Deep
reinforcement learning at the edge of the statistical precipice", define the aggregates and their bootstrap.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

LAST = 10  # evaluations that RAT is the mean of
RESAMPLES = 2000
CONFIDENCE = 0.95
FEW_SEEDS, FEW_EPISODES = 3, 10


def known_mean(values: Any, axis: int | None = None) -> Any:
    """The mean of what is not NaN; NaN where nothing is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(np.asarray(values, float), axis=axis)


class Curve(NamedTuple):
    """The evaluations of one run while it trained."""

    steps: np.ndarray
    scores: np.ndarray  # (evaluations, seeds): means over episodes
    episodes: int

    @property
    def rat(self) -> np.ndarray:
        """Running average at training: each seed's mean of the last ten evaluations."""
        return known_mean(self.scores[-LAST:], axis=0)

    @property
    def oms(self) -> np.ndarray:
        """Online model selection: each seed's best evaluation."""
        known = np.where(np.isnan(self.scores), -np.inf, self.scores).max(axis=0)
        return np.where(np.isinf(known), np.nan, known)


def curve(rows: list[dict[str, Any]]) -> Curve:
    """The evaluations that training made."""
    scores = [known_mean(np.array(row["scores"], float), axis=1) for row in rows]
    return Curve(np.array([row["step"] for row in rows]), np.array(scores), len(rows[0]["scores"][0]))


BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Any, width: int = 20) -> str:
    """A curve in one line of text, from its lowest to its highest value; what is not known is a space."""
    values = np.asarray(values, float)
    if not len(values) or np.isnan(values).all():
        return ""
    blocks = [known_mean(block) for block in np.array_split(values, min(width, len(values)))]
    low, high = np.nanmin(blocks), np.nanmax(blocks)
    place = lambda value: round((value - low) / (high - low) * (len(BARS) - 1)) if high > low else 3  # noqa: E731
    return "".join(" " if np.isnan(value) else BARS[place(value)] for value in blocks)


class Interval(NamedTuple):
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{self.value:.1f}"
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"


def mean_interval(values: np.ndarray) -> Interval:
    """The mean over seeds and its 95 % confidence interval (Student's t); none for one seed."""
    values = np.asarray(values, float)
    values = values[~np.isnan(values)]  # seeds that failed
    if len(values) < 2:
        return Interval(float(known_mean(values)), np.nan, np.nan)
    from scipy import stats  # takes most of a second to import

    half = stats.sem(values) * stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)
    return Interval(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


def iqm(scores: np.ndarray) -> float:
    """The interquartile mean: that of the middle half of all scores."""
    from scipy import stats

    return float(stats.trim_mean(np.ravel(scores), 0.25))


def improvement(first: np.ndarray, second: np.ndarray) -> float:
    """How probably a run of the first beats one of the second on a task (ties count half), as a mean over tasks."""
    wins = [
        np.mean((x[:, None] > y[None]) + 0.5 * (x[:, None] == y[None])) for x, y in zip(first.T, second.T, strict=True)
    ]
    return float(np.mean(wins))


def bootstrap(
    function: Callable[..., float], *scores: np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """A statistic of one or several (runs, tasks) arrays, with its stratified bootstrap interval (percentiles).

    Runs are drawn again within each task, and for each array, on their own.
    """
    rng = np.random.default_rng(seed)

    def again(array: np.ndarray) -> np.ndarray:
        return np.take_along_axis(array, rng.integers(len(array), size=array.shape), axis=0)

    values = [function(*map(again, scores)) for _ in range(resamples)]
    low, high = np.percentile(values, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)])
    return Interval(function(*scores), float(low), float(high))


def cautions(seeds: int, episodes: int) -> list[str]:
    """Why a comparison of such scores would mean little."""
    found = []
    if seeds < FEW_SEEDS:
        found.append(
            f"{seeds} seed{'s' * (seeds > 1)}: too few to tell luck from merit (use {FEW_SEEDS}, better 5 to 10)"
        )
    if episodes < FEW_EPISODES:
        found.append(f"{episodes} episodes an evaluation: the score is mostly noise (use {FEW_EPISODES} or more)")
    return found
