"""Gymnasium spaces of several parts, flattened to one row of numbers.

The parts of a dict come in the order of the space's keys (Gymnasium sorts them by name: ``achieved_goal``,
``desired_goal``, ``observation``), arrays row by row, discrete values as one-hot numbers. The order is that of
``gymnasium.spaces.flatten``, so ``gymnasium.wrappers.FlattenObservation`` gives the same rows.
"""

from typing import Any

import numpy as np
from gymnasium import spaces

from edp.errors import UserError


def check_space(space: spaces.Space, what: str) -> None:
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else getattr(space, "spaces", ())
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for part in parts:
            check_space(part, what)
    elif not isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiBinary | spaces.MultiDiscrete):
        raise UserError(f"{what} hold {type(space).__name__}, which are not numbers")


def flatten_values(space: spaces.Space, value: Any, count: int) -> np.ndarray:
    """Flatten ``count`` values at once."""
    if isinstance(space, spaces.Dict):
        return np.concatenate([flatten_values(part, value[key], count) for key, part in space.spaces.items()], axis=1)
    if isinstance(space, spaces.Tuple):
        parts = zip(space.spaces, value, strict=True)
        return np.concatenate([flatten_values(part, each, count) for part, each in parts], axis=1)
    value = np.asarray(value)
    if isinstance(space, spaces.Discrete):
        return one_hot(value.reshape(count) - space.start, int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        value, sizes, starts = value.reshape(count, -1), space.nvec.ravel(), np.ravel(space.start)
        return np.concatenate([one_hot(value[:, i] - starts[i], int(n)) for i, n in enumerate(sizes)], axis=1)
    return value.reshape(count, spaces.flatdim(space))


def one_hot(value: np.ndarray, size: int) -> np.ndarray:
    if value.size and not (value.min() >= 0 and value.max() < size):
        raise ValueError(f"a discrete value is not below {size}")
    return (value[:, None] == np.arange(size)[None]).astype(np.float32)


def part_names(space: spaces.Space, prefix: str = "") -> list[str]:
    """Name each number of a flattened observation."""
    if isinstance(space, spaces.Dict):
        return [name for key, part in space.spaces.items() for name in part_names(part, f"{prefix}{key}.")]
    if isinstance(space, spaces.Tuple):
        return [name for i, part in enumerate(space.spaces) for name in part_names(part, f"{prefix}{i}.")]
    return [f"{prefix}{i}" for i in range(spaces.flatdim(space))]
