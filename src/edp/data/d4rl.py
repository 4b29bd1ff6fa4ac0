"""Reading and writing D4RL's HDF5 layout, with D4RL's own semantics.

``terminals`` end the bootstrap; ``timeouts`` end the episode but not the bootstrap. Where a file has no
``next_observations``, the next row's observation stands in, and a transition whose next row belongs to another episode
(the last before a timeout, or of the file) is dropped, because its next state is unknown.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from edp.errors import UserError, first_line

ACTION_LIMIT = 0.999  # D4RL's own clipping of actions
ACTION_SLACK = 1e-3  # how far past [-1, 1] rounding may carry an action
REQUIRED = ("observations", "actions", "rewards", "terminals")
OPTIONAL = ("next_observations", "timeouts")


class Behaved(NamedTuple):
    """One behaviour policy's part of a data set."""

    name: str
    transitions: int
    episodes: int
    mean_return: float


class Dataset(NamedTuple):
    """Transitions as NumPy arrays, in the order of the file, and what is known of its episodes."""

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_obs: np.ndarray
    not_done: np.ndarray
    episode: np.ndarray  # which episode each row belongs to, counted from 0
    returns: np.ndarray  # of each whole episode
    behaviours: list[Behaved]  # what made it, if it was made by ``edp data make``
    regenerated: str = ""  # the task that it imitates, if it is a look-alike and not that task's own file


def read(path: Path, episode_limit: int | None = None, episode_return: str = "sum") -> Dataset:
    """Read and check a file; ``episode_limit`` tells where episodes end if it has no ``timeouts``.

    ``episode_return`` says what is made of the rewards of an episode (see ``episode_returns``).
    """
    arrays, attributes = load(path)
    check(arrays, path)
    terminals = arrays["terminals"].astype(bool)
    timeouts = arrays["timeouts"].astype(bool) if "timeouts" in arrays else find_timeouts(terminals, episode_limit)
    obs = arrays["observations"].astype(np.float32, copy=False)
    if "next_observations" in arrays:
        next_obs, known = arrays["next_observations"].astype(np.float32, copy=False), slice(None)
    else:
        known = ~timeouts
        known[-1] = False
        known = np.flatnonzero(known | terminals)
        next_obs = obs[np.minimum(known + 1, len(obs) - 1)]
    rewards, ends = arrays["rewards"].astype(np.float32, copy=False), terminals | timeouts
    if len(next_obs) == 0:
        raise UserError(f"{path}: no transition in it has a known next state")
    return Dataset(
        obs=obs[known],
        action=np.clip(arrays["actions"].astype(np.float32, copy=False), -ACTION_LIMIT, ACTION_LIMIT)[known],
        reward=rewards[known],
        next_obs=next_obs,
        not_done=(~terminals[known]).astype(np.float32),
        episode=(np.cumsum(ends) - ends)[known],
        returns=episode_returns(rewards, terminals, timeouts, episode_return),
        behaviours=known_behaviours(attributes),
        regenerated=str(attributes.get("regenerated", "")),
    )


def known_behaviours(attributes: dict) -> list[Behaved]:
    """What ``edp data make`` noted of the policies behind a file; nothing for files of other origin."""
    try:
        return [Behaved(**entry) for entry in json.loads(attributes["behaviours"])]
    except (KeyError, TypeError, ValueError):
        return []


def load(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """The file's arrays and attributes, or a line that says why not."""
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if not path.is_file() or not h5py.is_hdf5(path):
        raise UserError(f"{path}: not an HDF5 file (D4RL's data sets end in .hdf5; is the download complete?)")
    try:
        with h5py.File(path, "r") as file:
            entries = {key: file.get(key) for key in (*REQUIRED, *OPTIONAL)}
            found = {key: entry for key, entry in entries.items() if isinstance(entry, h5py.Dataset)}
            missing = [key for key in REQUIRED if key not in found]
            if missing:
                raise UserError(f"{path}: missing {', '.join(missing)} (has: {', '.join(sorted(file)) or 'nothing'})")
            return {key: np.asarray(entry[()]) for key, entry in found.items()}, dict(file.attrs)
    except (OSError, RuntimeError, KeyError) as error:
        raise UserError(f"{path}: damaged HDF5 file ({first_line(error)})") from None


def check(arrays: dict[str, np.ndarray], path: Path) -> None:
    """Refuse what would make training silently wrong."""
    for key, array in arrays.items():
        if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool) or np.iscomplexobj(array):
            raise UserError(f"{path}: {key} holds {array.dtype}, not numbers")
        wanted = 2 if key in ("observations", "next_observations", "actions") else 1
        if array.ndim != wanted:
            raise UserError(f"{path}: {key} has shape {array.shape}, but should have {wanted} dimension(s)")
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise UserError(f"{path}: arrays of different lengths: {', '.join(f'{k} {n}' for k, n in lengths.items())}")
    if lengths["observations"] == 0:
        raise UserError(f"{path}: no transitions in it")
    if "next_observations" in arrays and arrays["next_observations"].shape != arrays["observations"].shape:
        shapes = arrays["observations"].shape, arrays["next_observations"].shape
        raise UserError(f"{path}: observations {shapes[0]} and next_observations {shapes[1]} differ in width")
    for key, array in arrays.items():
        bad = ~(np.abs(array) <= np.finfo(np.float32).max)
        if bad.any():
            rows = bad if bad.ndim == 1 else bad.any(axis=1)
            raise UserError(f"{path}: {int(bad.sum())} NaN or Inf in {key}, the first in row {int(np.argmax(rows))}")
    outside = np.abs(arrays["actions"]) > 1 + ACTION_SLACK
    if outside.any():
        low, high = arrays["actions"].min(), arrays["actions"].max()
        row = int(np.argmax(outside.any(axis=1)))
        raise UserError(
            f"{path}: {int(outside.sum())} actions outside [-1, 1], the first in row {row} "
            f"(they span {low:.4g} to {high:.4g}): scale them to [-1, 1]"
        )


def find_timeouts(terminals: np.ndarray, limit: int | None) -> np.ndarray:
    """Where episodes of at most ``limit`` steps were cut off, from terminals alone."""
    timeouts = np.zeros(len(terminals), bool)
    if limit:
        starts = np.flatnonzero(np.concatenate([[True], terminals[:-1]]))
        for start, end in zip(starts, [*starts[1:], len(terminals)], strict=True):
            timeouts[start + limit - 1 : end : limit] = True
    return timeouts


def episode_returns(rewards: np.ndarray, terminals: np.ndarray, timeouts: np.ndarray, how: str = "sum") -> np.ndarray:
    """The return of each episode that ended within the file: the "sum" of its rewards, their "max", or "reached".

    "reached" is 1 where any reward was positive, in files whose terminals do not end episodes but mark such steps.
    """
    last = np.flatnonzero(timeouts if how == "reached" and timeouts.any() else terminals | timeouts)
    if not len(last):
        return np.zeros(0)
    starts = np.concatenate([[0], last[:-1] + 1])
    values = rewards[: last[-1] + 1].astype(np.float64)
    return (np.add if how == "sum" else np.maximum).reduceat(values > 0 if how == "reached" else values, starts) * 1.0


def write(path: Path, arrays: dict[str, np.ndarray], attributes: dict) -> None:
    """Write a file so that it is there whole or not at all."""
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        with h5py.File(part, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array, compression="gzip", compression_opts=1)
            file.attrs.update(attributes)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException as error:
        os.unlink(part)
        if isinstance(error, OSError):
            raise UserError(f"{path}: cannot be written ({error})") from None
        raise


def check_writable(path: Path) -> None:
    """Find out before long work whether its result can be kept."""
    if path.is_dir():
        raise UserError(f"{path}: is a directory; give the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(f"{path}: cannot write here ({error.strerror})") from None
