"""Fitted Q evaluation with random Fourier features: the mean advantage of a policy over the actions of a log.

Q(s, a) = theta · phi(s, a) is regressed again and again on reward + discount · Q(next state, policy's action there).
With fixed features each regression is one product with a matrix that is known beforehand, so the iteration converges
in seconds. Values are kept within what the log's rewards allow, so that they cannot run away.

The mean of Q(s, policy's action) - Q(s, logged action) over the rows of a log is the difference between policy and log
in the reward of a step (the performance difference lemma): the error that Q has in common for all actions cancels.
Regressions on resampled episodes show how much the log leaves open.
"""

import time

import numpy as np

from edp.acting.driven import part_of_rows
from edp.acting.features import draw_features
from edp.data.dataset import Dataset

FEATURES, RIDGE = 300, 1e-5
RESAMPLES = 10
ITERATIONS = 4.0  # time constants of the discount


class FittedQ:
    """The regressions on one log, which are the same for all policies."""

    def __init__(self, data: Dataset, discount: float, seed: int = 0):
        self.data, self.discount = data, discount
        self.features = draw_features(data.obs, data.action, count=FEATURES, seed=seed)
        self.here = self.features(data.obs, data.action)
        self.weight = resample_weights(data.episode, seed)
        ridge = RIDGE * np.eye(self.here.shape[1])
        moments = [(self.here * column[:, None]).T @ self.here / len(self.here) + ridge for column in self.weight.T]
        self.inverse = np.linalg.inv(np.stack(moments))
        self.reward = data.reward.astype(np.float64)
        self.limits = self.reward.min() / (1 - discount), self.reward.max() / (1 - discount)

    @property
    def iterations(self) -> int:
        return round(ITERATIONS / (1 - self.discount))

    @property
    def seconds(self) -> float:
        """How long the regressions of one policy take, from one that is timed."""
        start = time.perf_counter()
        self.regress(self.here, np.zeros((self.here.shape[1], RESAMPLES)))
        return (time.perf_counter() - start) * self.iterations

    def regress(self, there: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """One regression on the rewards and the values of the next states."""
        ahead = np.clip(there @ theta, *self.limits)
        target = self.reward[:, None] + self.discount * self.data.not_done[:, None] * ahead
        side = self.here.T @ (self.weight * target) / len(target)
        return np.einsum("bij,jb->ib", self.inverse, side)

    def advantages(self, action: np.ndarray, next_action: np.ndarray) -> np.ndarray:
        """Return Q(s, policy's action) - Q(s, logged action) for each row, (resamples, rows).

        ``action`` and ``next_action`` are the policy's in the states and in the next states.
        """
        there = self.features(self.data.next_obs, next_action)
        theta = np.zeros((self.here.shape[1], RESAMPLES))
        for _ in range(self.iterations):
            theta = self.regress(there, theta)
        values = (np.clip(phi @ theta, *self.limits) for phi in (self.features(self.data.obs, action), self.here))
        return np.subtract(*values).T


def resample_weights(episode: np.ndarray, seed: int) -> np.ndarray:
    """How often each row is drawn in each resample, (rows, resamples); parts of the log are drawn as a whole."""
    rng = np.random.default_rng(seed)
    part = part_of_rows(episode, rng)
    parts = part.max() + 1
    return rng.multinomial(parts, np.full(parts, 1 / parts), RESAMPLES)[:, part].T.astype(np.float64)
