"""Steps from NumPy: arrays, lists of episodes, and ``.npz`` files, with the names of D4RL's layout."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edp.data.columns import listed, printable
from edp.data.d4rl import OPTIONAL, REQUIRED, replacing
from edp.data.log import PIECE, Log, Steps, find_timeouts, in_pieces, refuse_missing
from edp.errors import UserError, first_line


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
    try:
        steps = Steps(*(None if column is None else np.asarray(column) for column in columns))  # pyright: ignore
    except ValueError as error:  # lists of different lengths
        raise UserError(f"{name}: {first_line(error)}") from None
    if timeouts is None:
        flags = steps.terminals.ndim == 1 and steps.terminals.dtype.kind in "biuf"
        found = find_timeouts(steps.terminals.astype(bool), episode_limit) if flags else steps.terminals
        steps = steps._replace(timeouts=found)
    size = len(steps.observations) if steps.observations.ndim else 0
    return Log(name, lambda: in_pieces(steps) if size > PIECE else iter([steps]), size, **about)


def from_episodes(episodes: Iterable[Mapping[str, Any]], *, name: str = "episodes", **about: Any) -> Log:
    """A log from episodes: ``observations``, ``actions``, ``rewards`` and ``terminated`` (False if it was cut off).

    With one observation more than actions, the last is the state that the episode ended in.
    """
    parts = [episode_steps(episode, f"{name}: episode {number}") for number, episode in enumerate(episodes)]
    if len({steps.next_observations is None for steps in parts}) > 1:
        raise UserError(f"{name}: some episodes have the state that they ended in, and some do not")
    return Log(name, lambda: iter(parts), sum(len(steps.rewards) for steps in parts), **about)


def episode_steps(episode: Mapping[str, Any], name: str) -> Steps:
    try:
        obs, actions, rewards = (np.asarray(episode[key]) for key in ("observations", "actions", "rewards"))
        terminated = bool(episode["terminated"])
    except KeyError as error:
        raise UserError(f"{name}: has no {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"{name}: {first_line(error)}") from None
    if rewards.ndim != 1 or obs.ndim != 2 or len(obs) not in (len(rewards), len(rewards) + 1):
        raise UserError(f"{name}: {len(obs) if obs.ndim else 'no'} observations do not go with {rewards.size} rewards")
    last = np.arange(len(rewards)) == len(rewards) - 1
    known = obs[1:] if len(obs) == len(rewards) + 1 else None
    return Steps(obs[: len(rewards)], actions, rewards, last & terminated, last & (not terminated), known)


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
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # whatever zipfile, zlib and NumPy raise
        raise UserError(f"{path}: not a {kind} ({first_line(error)})") from None
    others = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if others:
        raise UserError(f"{path}: not a {kind} ({listed(others)}: no array)")
    return arrays


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
