"""Random Fourier features (Rahimi and Recht 2007): regressions on them are smooth, and have a closed form."""

from typing import NamedTuple

import numpy as np


class Features(NamedTuple):
    """Random cosines of the standardised inputs, beside these themselves and 1."""

    mean: np.ndarray
    std: np.ndarray
    weight: np.ndarray
    phase: np.ndarray

    def __call__(self, *columns: np.ndarray) -> np.ndarray:
        points = (np.concatenate(columns, axis=1, dtype=np.float64) - self.mean) / self.std
        waves = np.sqrt(2 / len(self.phase)) * np.cos(points @ self.weight + self.phase)
        return np.concatenate([np.ones((len(points), 1)), points, waves], axis=1)


def draw_features(*columns: np.ndarray, count: int, seed: int = 0) -> Features:
    """Features for inputs like these rows, the columns of some arrays."""
    rng, points = np.random.default_rng(seed), np.concatenate(columns, axis=1)
    weight = rng.standard_normal((points.shape[1], count)) / np.sqrt(points.shape[1])
    return Features(points.mean(axis=0), points.std(axis=0) + 1e-6, weight, rng.uniform(0, 2 * np.pi, count))
