"""Statistics of scores over seeds: confidence intervals, and rliable's IQM and probability of improvement.

Scores are arrays (runs, tasks): a column is a task, and a row holds one seed of each task. Agarwal et al. (2021), "Deep
reinforcement learning at the edge of the statistical precipice", define the aggregates and their bootstrap.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from edp.errors import counted
from edp.runs.scores import nan_mean

RESAMPLES = 2000
CONFIDENCE = 0.95
FEW_SEEDS, FEW_EPISODES = 3, 10


class Interval(NamedTuple):
    """A statistic and its confidence interval, which is NaN if there is too little data for one."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{self.value:.1f}"
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"


def mean_interval(values: np.ndarray) -> Interval:
    """Compute the mean over seeds and its 95 % confidence interval (Student's t). Failed seeds are NaN and ignored."""
    values = np.asarray(values, float)
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Interval(float(nan_mean(values)), np.nan, np.nan)
    from scipy import stats  # takes most of a second to import

    half = stats.sem(values) * stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)
    return Interval(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


def iqm(scores: np.ndarray) -> float:
    """Compute the interquartile mean: the mean of the middle half of all scores."""
    from scipy import stats

    return float(stats.trim_mean(np.ravel(scores), 0.25))


def probability_of_improvement(first: np.ndarray, second: np.ndarray) -> float:
    """Estimate how probably a run of the first method beats a run of the second on a task, as a mean over tasks.

    Ties count half.
    """
    wins = [
        np.mean((x[:, None] > y[None]) + 0.5 * (x[:, None] == y[None])) for x, y in zip(first.T, second.T, strict=True)
    ]
    return float(np.mean(wins))


def bootstrap_interval(
    function: Callable[..., float], *scores: np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Compute a statistic of (runs, tasks) arrays and its stratified bootstrap interval (percentiles).

    Runs are resampled within each task, independently for each task and each array.
    """
    rng = np.random.default_rng(seed)

    def resample(array: np.ndarray) -> np.ndarray:
        return np.take_along_axis(array, rng.integers(len(array), size=array.shape), axis=0)

    values = [function(*map(resample, scores)) for _ in range(resamples)]
    low, high = np.percentile(values, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)])
    return Interval(function(*scores), float(low), float(high))


def cautions(seeds: int, episodes: int) -> list[str]:
    """List the reasons why a comparison of scores from so few seeds or episodes says little."""
    reasons = []
    if seeds < FEW_SEEDS:
        few = counted(seeds, "seed")
        reasons.append(f"{few}: too few for a reliable comparison (use {FEW_SEEDS}, better 5 to 10)")
    if episodes < FEW_EPISODES:
        few = counted(episodes, "episode")
        reasons.append(f"{few} per evaluation: the score is mostly noise (use {FEW_EPISODES} or more)")
    return reasons
