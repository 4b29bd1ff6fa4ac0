"""Logs from NumPy arrays and from lists of episodes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from edp.data.log import PIECE, REQUIRED, Log, Steps, find_timeouts
from edp.errors import UserError, first_line, short_repr, unknown


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
    """Make a log from whole arrays, with one row per step. ``about`` sets further fields of ``Log``."""
    columns = (observations, actions, rewards, terminals, timeouts, next_observations)
    for key, column in zip(REQUIRED, columns, strict=False):
        if column is None:
            raise UserError(f"{name}: has no {key} (if there are none, give zeros)")
    try:
        steps = Steps(*(None if column is None else np.asarray(column) for column in columns))  # pyright: ignore
    except ValueError as error:  # lists of different lengths
        raise UserError(f"{name}: {first_line(error)}") from None
    for key in ("observations", "actions"):
        refuse_one_dimension(getattr(steps, key), key, name)
    if timeouts is None:
        are_flags = steps.terminals.ndim == 1 and steps.terminals.dtype.kind in "biuf"
        derived = find_timeouts(steps.terminals.astype(bool), episode_limit) if are_flags else steps.terminals
        steps = steps._replace(timeouts=derived)
    size = len(steps.observations) if steps.observations.ndim else 0
    return Log(name, lambda: steps.in_pieces() if size > PIECE else iter([steps]), size, **about)


def from_episodes(episodes: Iterable[Mapping[str, Any]], *, name: str = "episodes", **about: Any) -> Log:
    """Make a log from dicts with ``observations``, ``actions``, ``rewards`` and ``terminated`` (False if cut off).

    With one observation more than actions, the last one is the state in which the episode ended. Alternatively,
    ``next_observations`` are the states after each step. ``truncated`` may replace or accompany ``terminated``.
    """
    if not isinstance(episodes, Iterable) or isinstance(episodes, str | Mapping):
        raise UserError(f"{name}: must be a list of dicts, not {short_repr(episodes)}")
    parts = [steps_of_episode(episode, f"{name}: episode {number}") for number, episode in enumerate(episodes)]
    if len({steps.next_observations is None for steps in parts}) > 1:
        raise UserError(f"{name}: some episodes have the state that they ended in, and some do not")
    return Log(name, lambda: iter(parts), sum(len(steps.rewards) for steps in parts), **about)


EPISODE_KEYS = ("observations", "actions", "rewards", "terminated", "truncated", "next_observations")


def steps_of_episode(episode: Mapping[str, Any], name: str) -> Steps:
    if not isinstance(episode, Mapping):
        raise UserError(f"{name}: must be a dict with {', '.join(EPISODE_KEYS[:4])}")
    for key in episode:
        if key not in EPISODE_KEYS:
            raise UserError(f"{name}: {unknown('key', str(key), EPISODE_KEYS)}")
    try:
        obs, actions, rewards = (np.asarray(episode[key]) for key in ("observations", "actions", "rewards"))
        next_obs = np.asarray(episode["next_observations"]) if "next_observations" in episode else None
    except KeyError as error:
        raise UserError(f"{name}: has no {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"{name}: {first_line(error)}") from None
    refuse_one_dimension(obs, "observations", name)
    if rewards.ndim != 1 or obs.ndim != 2 or len(obs) not in (len(rewards), len(rewards) + 1):
        raise UserError(
            f"{name}: observations have shape {obs.shape} and rewards {rewards.shape}; n rewards of shape (n,) go with "
            "n or n + 1 rows of observations"
        )
    if len(obs) == len(rewards) + 1:
        if next_obs is not None:
            raise UserError(f"{name}: has next_observations and the state that it ended in: give one of them")
        obs, next_obs = obs[:-1], obs[1:]
    terminated = is_terminated(episode, name)
    last = np.arange(len(rewards)) == len(rewards) - 1
    return Steps(obs, actions, rewards, last & terminated, last & (not terminated), next_obs)


def is_terminated(episode: Mapping[str, Any], name: str) -> bool:
    """Return whether an episode ended by itself, from ``terminated`` or ``truncated``."""
    flags = {key: episode[key] for key in ("terminated", "truncated") if key in episode}
    if not flags:
        raise UserError(f"{name}: has no terminated (True if it ended by itself, False if it was cut off)")
    for key, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise UserError(f"{name}: {key} must be one True or False for the whole episode, not {short_repr(flag)}")
    return bool(flags.get("terminated", not flags.get("truncated")))


def refuse_one_dimension(column: np.ndarray, key: str, name: str) -> None:
    if column.ndim == 1 and column.dtype.kind in "biuf":
        raise UserError(
            f"{name}: {key} has shape {column.shape}: give a row for each step, ({len(column)}, 1) for one number"
        )


def split_episodes(steps: Steps) -> Iterator[Steps]:
    """Yield the steps of each episode."""
    ends = np.flatnonzero(steps.ends)
    stops = [*ends + 1, *([len(steps.rewards)] if not len(ends) or ends[-1] + 1 < len(steps.rewards) else [])]
    start = 0
    for stop in stops:
        yield steps.rows(slice(start, int(stop)))
        start = int(stop)
