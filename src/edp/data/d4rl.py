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
    terminals = arrays.pop("terminals").astype(bool, copy=False)
    timeouts = arrays.pop("timeouts") if "timeouts" in arrays else find_timeouts(terminals, episode_limit)
    timeouts = timeouts.astype(bool, copy=False)
    known = slice(None) if "next_observations" in arrays else with_known_next(terminals, timeouts)
    if isinstance(known, np.ndarray) and not len(known):
        raise UserError(f"{path}: no transition in it has a known next state")
    rewards = arrays.pop("rewards").astype(np.float32, copy=False)
    returns = episode_returns(rewards, terminals, timeouts, episode_return)
    ends = terminals | timeouts
    episode = (np.cumsum(ends, dtype=np.int32) - ends)[known]
    reward, not_done = rewards[known], (~terminals[known]).astype(np.float32)
    del rewards, terminals, timeouts, ends  # large files should fit where there is little more room than for them
    obs, action = (arrays.pop(key).astype(np.float32, copy=False) for key in ("observations", "actions"))
    if isinstance(known, slice):
        next_obs = arrays.pop("next_observations").astype(np.float32, copy=False)
    else:
        next_obs = obs.take(known + 1, axis=0, mode="clip")  # after a terminal it is not used
    action = take_in_place(action, known)
    return Dataset(
        obs=take_in_place(obs, known),
        action=np.clip(action, -ACTION_LIMIT, ACTION_LIMIT, out=action),
        reward=reward,
        next_obs=next_obs,
        not_done=not_done,
        episode=episode,
        returns=returns,
        behaviours=known_behaviours(attributes),
        regenerated=str(attributes.get("regenerated", "")),
    )


def with_known_next(terminals: np.ndarray, timeouts: np.ndarray) -> np.ndarray:
    """Rows whose next state is the next row's, or does not matter."""
    known = ~timeouts
    known[-1] = False
    return np.flatnonzero(known | terminals)


def take_in_place(array: np.ndarray, rows: np.ndarray | slice, block: int = 65_536) -> np.ndarray:
    """``array[rows]`` for increasing ``rows``, moved to the front of the array instead of copied."""
    if isinstance(rows, slice):
        return array[rows]
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        array[start : start + len(part)] = array[part]
    return array[: len(rows)]


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
    largest = np.finfo(np.float32).max
    for key, array in arrays.items():
        if not (array.min() >= -largest and array.max() <= largest):  # also where there is a NaN
            bad = ~(np.abs(array) <= largest)
            rows = bad if bad.ndim == 1 else bad.any(axis=1)
            raise UserError(f"{path}: {int(bad.sum())} NaN or Inf in {key}, the first in row {int(np.argmax(rows))}")
    low, high = arrays["actions"].min(), arrays["actions"].max()
    if max(-low, high) > 1 + ACTION_SLACK:
        outside = np.abs(arrays["actions"]) > 1 + ACTION_SLACK
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
    starts, rewards = np.concatenate([[0], last[:-1] + 1]), rewards[: last[-1] + 1]
    if how == "sum":
        return np.add.reduceat(rewards, starts, dtype=np.float64)
    return np.maximum.reduceat(rewards > 0 if how == "reached" else rewards, starts).astype(np.float64)


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
