"""The transitions that training uses, read from a log.

If a log has no ``next_observations``, the next row's observation is used. A row is dropped if its next state is
unknown, because the next row belongs to another episode (after a timeout) or the log ends.
"""

import hashlib
import math
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from edp.data.checks import FINER, Rounding, checked_pieces
from edp.data.log import BehaviourSummary, Log, Steps, join_steps
from edp.errors import UserError
from edp.files import cache_folder
from edp.memory import check_fits, free_memory


class Dataset(NamedTuple):
    """Transitions as NumPy arrays in the order of the log, and the returns of its episodes."""

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_obs: np.ndarray
    not_done: np.ndarray
    episode: np.ndarray  # the number of each row's episode, counted from 0
    returns: np.ndarray  # of each whole episode
    behaviours: list[BehaviourSummary]  # as in Log
    regenerated: str = ""  # as in Log
    operator: np.ndarray | None = None  # the number of each row's operator; -1: unknown
    operator_names: tuple[str, ...] = ()


def read_dataset(log: Log, episode_return: str = "sum", on_disk: bool = False) -> Dataset:
    """Read all transitions of a log into memory, or ``on_disk`` into files that are deleted with the process.

    ``episode_return`` says how an episode's rewards make its return (see ``episode_returns``).
    """
    column = partial(GrowingArray, size=log.size, on_disk=on_disk)
    rewards, terminals, timeouts = column((), np.float32), column((), bool), column((), bool)

    def with_copies(pieces: Iterable[Steps]) -> Iterator[Steps]:
        for steps in pieces:
            for whole, part in ((rewards, steps.rewards), (terminals, steps.terminals), (timeouts, steps.timeouts)):
                whole.add(part)
            yield steps

    columns: dict[str, GrowingArray] = {}
    rounding, free = Rounding(), free_memory()
    try:
        for steps, episode in with_next_observations(with_copies(checked_pieces(log))):
            if not on_disk:  # what has been read counts: the log's size may be wrong
                check_fits(sum(column.used_bytes for column in columns.values()), f"{log.name}: needs at least", free)
            rounding.add(steps.observations)
            parts = {
                "obs": steps.observations,
                "action": steps.actions,
                "reward": steps.rewards,
                "next_obs": steps.next_observations,
                "not_done": ~steps.terminals,
                "episode": episode,
            }
            if steps.operators is not None:
                parts["operator"] = steps.operators
            for name, part in parts.items():
                kind = {"episode": np.int32, "operator": np.int16}.get(name, np.float32)
                columns.setdefault(name, column(part.shape[1:], kind)).add(part)
    except MemoryError:
        raise UserError(f"{log.name}: too large for the memory (with `block` it stays on disk)") from None
    if not columns:
        why = "no transition in it has a known next state" if terminals.used else "no transitions in it"
        raise UserError(f"{log.name}: {why}")
    for what in rounding.refused(log):
        raise UserError(f"{log.name}: {what}: {FINER}")
    returns = episode_returns(rewards.whole(), terminals.whole(), timeouts.whole(), episode_return)
    arrays = {name: column.whole() for name, column in columns.items()}
    about = {"behaviours": log.behaviours, "regenerated": log.regenerated, "operator_names": log.operator_names}
    return Dataset(**arrays, returns=returns, **about)


def read_steps(log: Log) -> Steps:
    """Read all steps of a log, without making transitions."""
    try:
        parts = list(checked_pieces(log))
        if not parts:
            raise UserError(f"{log.name}: no transitions in it")
        return join_steps(parts)
    except MemoryError:
        raise UserError(f"{log.name}: too large for the memory") from None


def with_next_observations(pieces: Iterable[Steps]) -> Iterator[tuple[Steps, np.ndarray]]:
    """Yield the rows whose next state is known or not needed, with that state, and the number of each row's episode."""
    held, first = None, 0  # the last row so far, which waits for its next state; the number of its episode
    for steps in pieces:
        if steps.next_observations is not None:
            ends = np.cumsum(steps.ends, dtype=np.int32)
            yield steps, first + ends - steps.ends
            first += int(ends[-1])
            continue
        steps = steps if held is None else join_steps([held, steps])
        held = steps.rows(slice(-1, None))
        yield from rows_with_known_next(steps.rows(slice(-1)), steps.observations[1:], first)
        first += int(steps.ends[:-1].sum())
    if held is not None:
        yield from rows_with_known_next(held.rows(held.terminals), held.observations[held.terminals], first)


def rows_with_known_next(steps: Steps, next_observations: np.ndarray, first: int) -> Iterator[tuple[Steps, np.ndarray]]:
    known = ~steps.timeouts | steps.terminals  # after a terminal the next state is not used
    if known.any():
        episode = first + np.cumsum(steps.ends, dtype=np.int32) - steps.ends
        kept = slice(None) if known.all() else known
        yield steps._replace(next_observations=next_observations).rows(kept), episode[kept]


def episode_returns(rewards: np.ndarray, terminals: np.ndarray, timeouts: np.ndarray, how: str = "sum") -> np.ndarray:
    """Return each ended episode's return: the "sum" of its rewards, their "max", or whether the goal was "reached".

    "reached" is 1 if any reward was positive. It is for files whose terminals mark steps at the goal and do not end
    episodes.
    """
    last = np.flatnonzero(timeouts if how == "reached" and timeouts.any() else terminals | timeouts)
    if not len(last):
        return np.zeros(0)
    starts, rewards = np.concatenate([[0], last[:-1] + 1]), rewards[: last[-1] + 1]
    if how == "sum":
        return np.add.reduceat(rewards, starts, dtype=np.float64)
    return np.maximum.reduceat(rewards > 0 if how == "reached" else rewards, starts).astype(np.float64)


def fingerprint(dataset: Dataset) -> str:
    """Return a hash of all transitions, which tells whether the data of a run has changed."""
    digest = hashlib.sha256()
    for column in (dataset.obs, dataset.action, dataset.reward, dataset.next_obs, dataset.not_done, dataset.episode):
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


class GrowingArray:
    """An array to which rows are added, in memory or in a file."""

    def __init__(self, shape: tuple[int, ...], kind: Any, size: int, on_disk: bool):
        self.shape, self.kind, self.used = shape, np.dtype(kind), 0
        self.file = temporary_file() if on_disk else None
        try:
            self.array = np.empty((0 if on_disk else size, *shape), kind)
        except (MemoryError, ValueError):  # a damaged file may claim any size
            self.array = np.empty((0, *shape), kind)

    def add(self, part: np.ndarray) -> None:
        if self.file is not None:
            try:
                np.ascontiguousarray(part, self.kind).tofile(self.file)
            except OSError as error:
                raise UserError(f"{cache_folder()}: no room for data to stream ({error.strerror or error})") from None
        else:
            needed = self.used + len(part)
            if needed > len(self.array):
                self.array.resize((max(needed, len(self.array) * 3 // 2), *self.shape), refcheck=False)
            self.array[self.used : needed] = part
        self.used += len(part)

    @property
    def used_bytes(self) -> int:
        return self.used * math.prod(self.shape) * self.kind.itemsize

    def whole(self) -> np.ndarray:
        if self.file is None:
            return self.array[: self.used]
        self.file.flush()
        if not self.used:
            return np.empty((0, *self.shape), self.kind)
        with self.file:  # the mapping keeps the file open
            return np.memmap(self.file, self.kind, "r+", shape=(self.used, *self.shape))


def temporary_file() -> Any:
    """Open a file in the cache folder that is deleted with the process."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot keep data to stream here ({error.strerror})") from None
