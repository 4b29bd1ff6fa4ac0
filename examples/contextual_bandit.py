"""A problem with a known answer: a contextual bandit whose data has two ways of acting, a good one and a bad one.

The context s is a number in [-1, 1]. Good actions lie around m(s) = 0.6 + 0.1 sin(pi s), bad ones around -m(s), half of
the data each. The reward falls off with the distance from m(s): the best policy is the good mode, and the mean of the
data is a poor action that the data never shows.
"""

import numpy as np

from edp.data.dataset import Dataset

SPREAD = 0.1  # standard deviation of a mode
RADIUS = 4 * SPREAD  # what counts as being in it


def good(context: np.ndarray) -> np.ndarray:
    """m(s)."""
    return 0.6 + 0.1 * np.sin(np.pi * context)


def make(rows: int, seed: int) -> Dataset:
    """Data of both ways of acting, as episodes of one step."""
    rng = np.random.default_rng(seed)
    context = rng.uniform(-1, 1, (rows, 1))
    action = rng.choice([-1.0, 1.0], (rows, 1)) * good(context) + SPREAD * rng.standard_normal((rows, 1))
    reward = np.exp(-2 * (action - good(context)) ** 2)[:, 0]
    columns = (np.asarray(column, np.float32) for column in (context, action, reward, context, np.zeros(rows)))
    return Dataset(*columns, episode=np.arange(rows), returns=reward, behaviours=[])


def share_in_good_mode(context: np.ndarray, action: np.ndarray) -> float:
    return float(np.mean(np.abs(action - good(context)) < RADIUS))
