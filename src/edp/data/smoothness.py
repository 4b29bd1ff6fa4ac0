"""How much of a log's actions and rewards is new at each step, and how much follows from the step before."""

import numpy as np

from edp.data.dataset import Dataset

ROWS = 20_000  # rows that are looked at
ROWS_PER_INPUT = 20  # with fewer rows for each input of a regression, its residuals say little


def noise_share(dataset: Dataset) -> float:
    """Estimate the share of the actions' variance, given the state, that is independent noise.

    It is the ratio of two residual variances of linear regressions of the action, as a mean over the action's
    dimensions: on the state, the state before and the action before; and on the state only. A policy that draws its
    actions at random has a share near 1. People, and controllers with a memory, move smoothly: their share is near 0.
    Returns 1 if the data has too few rows to tell.
    """
    later = np.flatnonzero(dataset.episode[1:] == dataset.episode[:-1]) + 1
    if len(later) < ROWS_PER_INPUT * (2 * dataset.obs.shape[1] + dataset.action.shape[1]):
        return 1.0
    rows = np.sort(np.random.default_rng(0).choice(later, min(ROWS, len(later)), replace=False))
    state, before = (standardised(dataset.obs[part]) for part in (rows, rows - 1))
    action, last = (np.asarray(dataset.action[part], np.float64) for part in (rows, rows - 1))
    left = residual_variance(action, state)
    new = residual_variance(action, np.hstack([state, before, last]))
    varies = left > 1e-9 * np.maximum(1.0, action.var(axis=0))
    return float(np.mean(new[varies] / left[varies])) if varies.any() else 1.0


def reward_changes(dataset: Dataset) -> float:
    """The share of the steps in which the reward differs from the one before it, without first steps of episodes."""
    same = dataset.episode[1:] == dataset.episode[:-1]
    return float(np.mean((np.diff(dataset.reward) != 0)[same])) if same.any() else 1.0


def standardised(columns: np.ndarray) -> np.ndarray:
    columns = np.asarray(columns, np.float64)
    scale = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def residual_variance(values: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """The variance of each column of ``values`` that a linear function of ``inputs`` does not explain (unbiased)."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    weights, _, rank, _ = np.linalg.lstsq(inputs, values, rcond=None)
    return ((values - inputs @ weights) ** 2).sum(axis=0) / (len(values) - rank)
