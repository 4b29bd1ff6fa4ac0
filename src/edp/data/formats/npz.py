"""Steps from NumPy: arrays, lists of episodes, and ``.npz`` files, with the names of D4RL's layout."""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edp.data.formats.columns import listed, printable
from edp.data.formats.hdf5 import OPTIONAL, REQUIRED
from edp.data.log import PIECE, Log, Steps, find_timeouts, in_pieces, refuse_missing
from edp.errors import UserError, first_line, unknown
from edp.files import replacing


def from_arrays(
    observations: Any,
    actions: Any,
    rewards: Any,
    terminals: Any,
    timeouts: Any = None,
    next_observations: Any = None,
    *,
    episode_limit: int | None = None,
    name: str = "arrays",
    **about: Any,
) -> Log:
    """A log from whole arrays, one row a step. See ``Log`` for what may be told about it."""
    columns = (observations, actions, rewards, terminals, timeouts, next_observations)
    for key, column in zip(REQUIRED, columns, strict=False):
        if column is None:
            raise UserError(f"{name}: has no {key} (where there are none, give one 0 for each step)")
    try:
        steps = Steps(*(None if column is None else np.asarray(column) for column in columns))  # pyright: ignore
    except ValueError as error:  # lists of different lengths
        raise UserError(f"{name}: {first_line(error)}") from None
    for key in ("observations", "actions"):
        refuse_one_dimension(getattr(steps, key), key, name)
    if timeouts is None:
        flags = steps.terminals.ndim == 1 and steps.terminals.dtype.kind in "biuf"
        found = find_timeouts(steps.terminals.astype(bool), episode_limit) if flags else steps.terminals
        steps = steps._replace(timeouts=found)
    size = len(steps.observations) if steps.observations.ndim else 0
    return Log(name, lambda: in_pieces(steps) if size > PIECE else iter([steps]), size, **about)


def from_episodes(episodes: Iterable[Mapping[str, Any]], *, name: str = "episodes", **about: Any) -> Log:
    """A log from episodes: ``observations``, ``actions``, ``rewards`` and ``terminated`` (False if it was cut off).

    With one observation more than actions, the last is the state that the episode ended in; ``next_observations`` are
    the states after each step. ``truncated`` may be there beside ``terminated``, or instead of it.
    """
    parts = [episode_steps(episode, f"{name}: episode {number}") for number, episode in enumerate(episodes)]
    if len({steps.next_observations is None for steps in parts}) > 1:
        raise UserError(f"{name}: some episodes have the state that they ended in, and some do not")
    return Log(name, lambda: iter(parts), sum(len(steps.rewards) for steps in parts), **about)


EPISODE = ("observations", "actions", "rewards", "terminated", "truncated", "next_observations")


def episode_steps(episode: Mapping[str, Any], name: str) -> Steps:
    if not isinstance(episode, Mapping):
        raise UserError(f"{name}: must be a dict with {', '.join(EPISODE[:4])}")
    for key in episode:
        if key not in EPISODE:
            raise UserError(f"{name}: {unknown('key', str(key), EPISODE)}")
    try:
        obs, actions, rewards = (np.asarray(episode[key]) for key in ("observations", "actions", "rewards"))
        known = np.asarray(episode["next_observations"]) if "next_observations" in episode else None
    except KeyError as error:
        raise UserError(f"{name}: has no {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"{name}: {first_line(error)}") from None
    refuse_one_dimension(obs, "observations", name)
    if rewards.ndim != 1 or obs.ndim != 2 or len(obs) not in (len(rewards), len(rewards) + 1):
        raise UserError(f"{name}: {len(obs) if obs.ndim else 'no'} observations do not go with {rewards.size} rewards")
    if len(obs) == len(rewards) + 1:
        if known is not None:
            raise UserError(f"{name}: has next_observations and the state that it ended in: give one of them")
        obs, known = obs[:-1], obs[1:]
    terminated = came_to_its_end(episode, name)
    last = np.arange(len(rewards)) == len(rewards) - 1
    return Steps(obs, actions, rewards, last & terminated, last & (not terminated), known)


def came_to_its_end(episode: Mapping[str, Any], name: str) -> bool:
    """Whether an episode was not cut off, from either of its flags."""
    flags = {key: episode[key] for key in ("terminated", "truncated") if key in episode}
    if not flags:
        raise UserError(f"{name}: has no terminated (True if it came to its own end, False if it was cut off)")
    for key, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise UserError(f"{name}: {key} must be one True or False for the whole episode, not {shortened(flag)}")
    return bool(flags.get("terminated", not flags.get("truncated")))


def shortened(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def refuse_one_dimension(column: np.ndarray, key: str, name: str) -> None:
    if column.ndim == 1 and column.dtype.kind in "biuf":
        raise UserError(f"{name}: {key} has shape {column.shape}: one row a step, so ({len(column)}, 1) for one number")


def open_npz(path: Path, episode_limit: int | None = None) -> Log:
    arrays = read_npz(path)
    missing = [key for key in REQUIRED if key not in arrays]
    if missing:
        raise UserError(f"{path}: missing {', '.join(missing)} (has: {listed(sorted(arrays))})")
    columns = {key: arrays[key] for key in (*REQUIRED, *OPTIONAL) if key in arrays}
    for key, column in columns.items():
        if not column.ndim:
            raise UserError(f"{path}: {key} is one number, not a column")
    others = tuple(printable(name) for name in sorted(arrays.keys() - columns.keys()))
    return from_arrays(**columns, episode_limit=episode_limit, name=str(path), left_out=others)


def read_npz(path: Path, kind: str = "file of arrays") -> dict[str, np.ndarray]:
    """A file's arrays."""
    refuse_missing(path, kind)
    if not zipfile.is_zipfile(path):
        raise UserError(f"{path}: not a {kind} (it is no .npz file, or not a whole one)")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: numbers_of(file, name) for name in file.files}
    except Exception as error:  # whatever zipfile, zlib and NumPy raise
        raise UserError(f"{path}: not a {kind} ({first_line(error)})") from None
    others = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if others:
        raise UserError(f"{path}: not a {kind} ({listed(others)}: no array)")
    return arrays


def numbers_of(file: Any, name: str) -> np.ndarray:
    """One of a file's arrays. NumPy's own advice on those of Python objects is to run them as code."""
    try:
        return file[name]
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
    raise ValueError(f"'{printable(name)}' holds Python objects: save it as numbers, or the file without it")


def write_npz(path: Path, steps: Steps) -> None:
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **{key: column for key, column in steps._asdict().items() if column is not None})


def episodes_of(steps: Steps) -> Iterator[Steps]:
    """A log's episodes, each by itself."""
    ends = np.flatnonzero(steps.ends)
    stops = [*ends + 1, *([len(steps.rewards)] if not len(ends) or ends[-1] + 1 < len(steps.rewards) else [])]
    start = 0
    for stop in stops:
        yield steps.rows(slice(start, int(stop)))
        start = int(stop)
