"""Units: conversion between the numbers of the data and those of the networks.

Networks see actions in [-1, 1], and observations that may be normalised. The same ``Units`` are used for
the data, in evaluations and by loaded policies, and are saved with the run.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edp.data.checks import checked_pieces
from edp.data.dataset import Dataset
from edp.data.log import LARGEST, PIECE, Log
from edp.errors import UserError, counted

ACTION_LIMIT = 0.999  # D4RL clips actions here: likelihoods of squashed policies are infinite at 1
ACTION_SLACK = 1e-3  # how far rounding may move an action out of its range, in halves of the range
NORMALISATIONS = ("none", "standard", "signal", "min-max")
SIGNAL_ROWS = 50_000  # rows from which the predictability of observations is estimated
NOISE_SCALE = 0.05  # with "signal", the std of an observation that is only noise
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Units:
    obs_shift: Numbers
    obs_scale: Numbers
    low: Numbers  # of actions
    high: Numbers

    def __post_init__(self):
        wide, narrow = (self.obs_shift, self.obs_scale), (self.low, self.high)
        for pair in (wide, narrow):
            if len(pair[0]) != len(pair[1]) or not pair[0] or not all(abs(end) <= LARGEST for end in pair[0] + pair[1]):
                raise UserError("pairs of units must be non-empty, finite in float32 and of equal length")
        if not all(scale > 0 for scale in self.obs_scale) or not all(a < b for a, b in zip(*narrow, strict=True)):
            raise UserError("units must have scales above 0, and ranges that are not empty")

    @property
    def dims(self) -> tuple[int, int]:
        """The sizes of observations and actions."""
        return len(self.obs_shift), len(self.low)

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Shift and scale of observations; centre, half width, low and high end of the ranges of actions."""
        low, high = np.array(self.low), np.array(self.high)
        columns = np.array(self.obs_shift), np.array(self.obs_scale), (low + high) / 2, (high - low) / 2, low, high
        return tuple(column.astype(np.float32) for column in columns)

    def observations_to_network(self, obs: np.ndarray) -> np.ndarray:
        """Convert observations to the numbers of the networks."""
        shift, scale, *_ = self.arrays
        return (obs.astype(np.float32) - shift) / scale

    def observations_from_network(self, obs: np.ndarray) -> np.ndarray:
        """Convert observations of the networks back to those of the data."""
        shift, scale, *_ = self.arrays
        return obs * scale + shift

    def actions_from_network(self, action: np.ndarray) -> np.ndarray:
        """Convert actions of the networks to those of the data, within their ranges."""
        _, _, centre, half, low, high = self.arrays
        return np.minimum(np.maximum(action * half + centre, low), high)

    def actions_to_network(self, action: np.ndarray) -> np.ndarray:
        """Convert actions of the data to those of the networks."""
        _, _, centre, half, *_ = self.arrays
        return (action.astype(np.float32) - centre) / half

    def convert_dataset(self, dataset: Dataset, log: Log) -> Dataset:
        """Convert the data set of a log in place."""
        for start in range(0, len(dataset.obs), PIECE):
            rows = slice(start, start + PIECE)
            dataset.obs[rows], dataset.next_obs[rows] = (
                self.observations_to_network(dataset.obs[rows]),
                self.observations_to_network(dataset.next_obs[rows]),
            )
            action = self.actions_to_network(dataset.action[rows])
            if self.outside(action).any():
                self.refuse_outside(log)
            dataset.action[rows] = np.clip(action, -ACTION_LIMIT, ACTION_LIMIT)
        return dataset

    def outside(self, action: np.ndarray) -> np.ndarray:
        """Mark the converted actions that are outside of their ranges."""
        return np.abs(action) > 1 + ACTION_SLACK

    def refuse_outside(self, log: Log) -> None:
        """Raise an error that names the row. The log is read again, because the data set lacks some of its rows."""
        found = self.first_outside(log)
        column = min(found, key=lambda each: found[each])
        row, number = found[column]
        name = log.action_names[column] if len(log.action_names) == len(self.low) else column
        raise UserError(
            f"{log.name}: an action outside of its range, first in {log.row_text(row)}: {number:.6g} in column "
            f"{name!r} is not within {self.low[column]:g} to {self.high[column]:g} (`action_low` and `action_high` set "
            "the ranges)"
        )

    def first_outside(self, log: Log, finite: bool = True) -> dict[int, tuple[int, float]]:
        """The first row and number outside of the range of each action, where there is one. This reads the log.

        If ``finite`` is False, the log may have NaN, Inf and too large numbers.
        """
        row, found = 0, {}
        for steps in checked_pieces(log, finite):
            outside = self.outside(self.actions_to_network(steps.actions))
            for column in np.flatnonzero(outside.any(axis=0)).tolist():
                at = int(np.argmax(outside[:, column]))
                found.setdefault(column, (row + at, float(steps.actions[at, column])))
            row += len(steps.rewards)
        return found

    def to_json(self) -> dict[str, list[float]]:
        return {name: list(numbers) for name, numbers in asdict(self).items()}

    @classmethod
    def from_json(cls, content: Any) -> "Units":
        if not isinstance(content, dict) or any(not isinstance(part, list) for part in content.values()):
            raise TypeError("units are lists of numbers")
        return cls(**{name: tuple(float(number) for number in numbers) for name, numbers in content.items()})


def identity_units(obs_dim: int, act_dim: int) -> Units:
    """Return units that change nothing; actions are in [-1, 1]."""
    return Units((0.0,) * obs_dim, (1.0,) * obs_dim, (-1.0,) * act_dim, (1.0,) * act_dim)


def fit_units(dataset: Dataset, normalise: str, low: Numbers, high: Numbers, name: str) -> Units:
    """Return the units of a data set. If a side of the actions' ranges is not given, it is that of the data."""
    shift, scale = normalisation(dataset.obs, normalise)
    if normalise == "signal":
        scale = scale / signal_share(dataset, shift, scale)
    data_low, data_high = extremes(dataset.action)
    width = dataset.action.shape[1]
    for side, given in (("low", low), ("high", high)):
        if given and len(given) not in (1, width):
            raise UserError(
                f"`action_{side}` has {counted(len(given), 'number')}, and {name} has {counted(width, 'action')}"
            )
    low, high = (
        tuple(map(float, limits)) if not given else given * (width if len(given) == 1 else 1)
        for given, limits in ((low, data_low), (high, data_high))
    )
    for column, (a, b) in enumerate(zip(low, high, strict=True)):
        if not a < b:
            raise UserError(
                f"{name}: the range of action {column} is empty ({a:g} to {b:g}): leave the column out, or give ranges "
                "with `action_low` and `action_high`"
            )
    return Units(tuple(map(float, shift)), tuple(map(float, scale)), low, high)


def extremes(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest number of each column."""
    parts = [array[start : start + PIECE] for start in range(0, len(array), PIECE)]
    return np.min([part.min(axis=0) for part in parts], axis=0), np.max([part.max(axis=0) for part in parts], axis=0)


def moments(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and std of each column, computed in float64 a piece at a time."""
    mean, square = np.zeros(array.shape[1]), np.zeros(array.shape[1])
    for start in range(0, len(array), PIECE):
        mean += array[start : start + PIECE].sum(axis=0, dtype=np.float64) / len(array)
    for start in range(0, len(array), PIECE):
        square += ((array[start : start + PIECE].astype(np.float64) - mean) ** 2).sum(axis=0) / len(array)
    return mean, np.sqrt(square)


def normalisation(obs: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray]:
    """Return shift and scale. A column that is constant up to rounding in float32 is mapped to almost 0."""
    if how == "none":
        return np.zeros(obs.shape[1]), np.ones(obs.shape[1])
    if how in ("standard", "signal"):
        shift, scale = moments(obs)
    else:
        low, high = (side.astype(np.float64) for side in extremes(obs))
        shift, scale = (low + high) / 2, (high - low) / 2
    step = np.spacing(np.abs(shift).astype(np.float32)).astype(np.float64)
    return shift, np.where(scale <= np.maximum(step, 1e-12), np.maximum(1.0, 1e6 * step), scale)


def signal_share(dataset: Dataset, shift: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return how well each observation can be predicted, at least ``NOISE_SCALE``; 1 if no observation can be.

    It is the share of the variance of next observations that a linear model of observations and actions explains.
    Standardising alone would turn a sensor that only shows noise into an input as large as all others.
    """
    rows = np.unique(np.linspace(0, len(dataset.obs) - 1, SIGNAL_ROWS).astype(int))
    obs, following = ((part[rows] - shift) / scale for part in (dataset.obs, dataset.next_obs))
    inputs = np.concatenate([obs, dataset.action[rows], np.ones((len(rows), 1))], axis=1, dtype=np.float64)
    weights = np.linalg.lstsq(inputs, following, rcond=1e-8)[0]
    variance = following.var(axis=0)
    explained = 1 - ((following - inputs @ weights) ** 2).mean(axis=0) / np.where(variance > 0, variance, 1)
    if explained.max() < 0.5:  # independent states, as in a bandit: nothing tells noise from signal
        return np.ones_like(explained)
    return np.clip(explained, NOISE_SCALE, 1)
