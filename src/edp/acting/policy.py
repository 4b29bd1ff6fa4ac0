"""Trained policies for use: numbers in, numbers out, or names in and names out."""

import math
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, overload

import jax
import numpy as np
from numpy.typing import ArrayLike

from edp.acting.actors import Actors
from edp.acting.deadline import Worker
from edp.acting.describe import describe_policy
from edp.acting.filling import Filler
from edp.acting.guard import Guard, Status
from edp.acting.limits import Limits
from edp.acting.named import Encoder, names_of, with_index
from edp.acting.selection import act_flat, initial_memories
from edp.config.spec import EvalOptions, Spec
from edp.data.signals import Encoding, name_signals
from edp.errors import UserError, printable
from edp.runs.directory import Run


class Origin(NamedTuple):
    """Where a loaded policy comes from."""

    run: Run
    seed: int
    step: int


class LoadedPolicy:
    """A policy that acts as it did when its run was evaluated.

    Its random numbers depend on ``draws`` alone: two policies loaded with the same ``draws`` act the same.
    ``repr(policy)`` shows what it sees and sets. After each call of ``act``, ``status`` tells how the observation
    compares with the training data, and whether the action was there in time.

    A policy is for one control loop: its methods may not be called by several threads at the same time. Load it again
    for another loop. Only ``status`` may be read from everywhere.
    """

    origin: Origin | None = None

    def __init__(
        self,
        spec: Spec,
        actors: Actors,
        options: EvalOptions,
        draws: int,
        *,
        guard: Guard | None = None,
        outside: str = "warn",
        limits: Limits = Limits(),  # noqa: B008  (a tuple)
        title: str = "",
    ):
        self.spec, self.options, self.units = spec, options, spec.units
        self.dims, self._actors = self.units.dims, actors
        self.signals = spec.signals or name_signals((), (), Encoding(), self.dims)
        self.outside, self.limits, self.title, self.status = outside, limits, title, Status()
        self._guard, self._encoder = guard, Encoder(self.signals)
        self._filler = Filler(self.signals, guard)
        self._leaves, self._structure = jax.tree.flatten(actors)
        self._key, self._episode, self._warned = jax.random.key(draws), -1, set[str]()
        self._worker = Worker(limits.deadline_ms) if limits.deadline_ms else None
        self._compiled, self._count = set[int](), -1
        self.reset()

    def __repr__(self) -> str:
        return describe_policy(self)

    @property
    def actors(self) -> Actors:
        """The models that act, stacked over one seed."""
        return self._actors

    def reset(self) -> None:
        """Start a new episode: new random numbers, no last action, and an empty memory for policies that have one."""
        count = self._count
        self._episode += 1
        self._step, self._count = 0, -1
        if self._worker:
            self._start(max(1, count))

    def _start(self, count: int) -> None:
        """Get ready for ``count`` rows. With a deadline, compile the program now, and not in the first call."""
        if self._step and (self._memories is not None or self.limits != Limits()):
            raise UserError("the number of rows may change only at reset(), because this policy remembers each row")
        self._keys = jax.random.split(jax.random.fold_in(self._key, self._episode), (1, count))
        self._memories, self._count = initial_memories(self._actors.policies, count), count
        self._last = np.full((count, self.dims[1]), np.nan, np.float32)
        self._last_seen = np.zeros((count, self.dims[0]), np.float32)
        self._filler.reset(count)
        if self._worker and count not in self._compiled:
            self._worker.run(partial(self._compute, self._last_seen, 0.0, 0), None)
            self._compiled.add(count)

    @overload
    def act(self, obs: Mapping[str, Any], reward: np.ndarray | float = 0.0) -> dict[str, Any]: ...

    @overload
    def act(self, obs: ArrayLike, reward: np.ndarray | float = 0.0) -> np.ndarray: ...

    def act(self, obs: Any, reward: np.ndarray | float = 0.0) -> Any:
        """The action for an observation, or an action for each row of a batch of observations.

        Names in, names out: a mapping from the names of the log's columns to values, or a row of a DataFrame, gives a
        dict of numbers; a mapping to columns, or a DataFrame, gives a dict of arrays. Texts and times are given as they
        are in the log; other columns of the log may be there. An array of numbers gives an array.

        ``reward`` is the reward of the last action; only policies that act towards a target return use it.
        """
        start = time.perf_counter()
        obs = with_index(obs, self.signals.encoding.time_column)
        names, faults = names_of(obs), []
        bears = faults if self.outside == "hold" else None
        rows, single = self._encoder.array_rows(obs) if names is None else self._encoder.rows(obs, names, bears)
        chosen = self._act(rows, reward, start, faults)
        if names is None:
            return chosen[0] if single else chosen
        columns = (float(str(number)) for number in chosen[0]) if single else chosen.T  # 0.1, and not 0.10000000149
        return dict(zip(self.signals.actions, columns, strict=True))

    def _act(self, rows: np.ndarray, reward: np.ndarray | float, start: float, faults: list[str]) -> np.ndarray:
        """The actions for some rows: checked, in time, and near to the last ones. ``faults`` of cells are explained."""
        if self._count != len(rows):
            self._start(len(rows))
            start = time.perf_counter()  # what was compiled for this number of rows does not count
        rows = self._filler.fill(rows)
        with np.errstate(over="ignore"):
            seen = self.units.observations_to_network(rows)
        held = self._check(rows, seen, faults)
        wanted = self._in_time(partial(self._compute, seen, reward, self._step), start)
        self._step += 1
        wanted[held] = self._last[held]
        given = self.limits.limit_change(wanted, self._last, self.units)
        self._last, self._last_seen = given.copy(), seen
        changed = () if given is wanted else np.flatnonzero((given != wanted).any(axis=0))
        names = tuple(self.signals.actions[column] for column in changed)
        self.status = self.status._replace(limited=names, latency_ms=1000 * (time.perf_counter() - start))
        return given

    def _compute(self, seen: np.ndarray, reward: np.ndarray | float, step: int) -> tuple[Any, np.ndarray]:
        """New memories, and the actions as the network gives them."""
        count = len(seen)
        rewards, steps = np.empty((1, count), np.float32), np.empty((1, count), np.int32)
        rewards[:], steps[:] = reward, step
        memories, actions = act_flat(
            self._structure, self._leaves, self._memories, seen[None], rewards, steps, self._keys
        )
        return memories, np.asarray(actions)[0]

    def _in_time(self, compute: Callable[[], tuple[Any, np.ndarray]], start: float) -> np.ndarray:
        """The actions in the units of the log; or the fallback, if they are not there at the deadline."""
        try:
            self._memories, found = self._worker.run(compute, start) if self._worker else compute()
        except TimeoutError:
            self.status = self.status._replace(late=True, misses=self.status.misses + 1)
            return self._fallback()
        if not math.isfinite(np.vdot(found, found)) and not np.isfinite(found).all():  # the product alone is faster
            raise UserError(
                "the policy's action is NaN or Inf: its parameters are (the seed failed in training), or the "
                "observation is so far from the data that the network's numbers overflow"
            )
        return self.units.actions_from_network(found)

    def _fallback(self) -> np.ndarray:
        if isinstance(self.limits.fallback, tuple):
            return np.tile(np.array(self.limits.fallback, np.float32), (self._count, 1))
        if np.isnan(self._last).any():
            raise UserError(
                f"no action within {self.limits.deadline_ms:g} ms, and there is no earlier action to hold: give an "
                "action as `fallback`, or a longer `deadline_ms`"
            ) from None
        return self._last.copy()

    def _check(self, rows: np.ndarray, seen: np.ndarray, faults: list[str]) -> list[int]:
        """Set the status, and do what ``outside`` says about observations outside of the training data.

        Returns the rows whose last good action is held, which see their last good observation instead.
        """
        status, before = self._guard.check(rows, seen) if self._guard else Status(), self.status
        status = self._filler.describe(status._replace(calls=before.calls + 1, misses=before.misses))
        self.status = status = status._replace(why="; ".join(faults) or status.why)
        if not np.isfinite(rows).all() and self.outside != "hold":
            raise self._not_finite(rows)
        if not status.outside or self.outside == "ignore":
            return []
        if self.outside == "refuse":
            raise UserError(status.why)
        held = list(status.rows) if self.outside == "hold" else []
        if held and np.isnan(self._last[held]).any():
            raise UserError(f"{status.why}, and there is no earlier action to hold")
        if held:
            self.status = status._replace(held=True)
            seen[held] = self._last_seen[held]
        self._warn_once(status)
        return held

    def _warn_once(self, status: Status) -> None:
        """Warn about each number once, and about the distance once, because a control loop goes on for weeks."""
        found = set(status.columns or ["the distance"])
        if not found <= self._warned:
            self._warned |= found
            then = (
                "the last good action is held" if self.outside == "hold" else "the policy has not learned to act there"
            )
            warnings.warn(f"{status.why}; {then} (`policy.status` has this for every step)", stacklevel=5)

    def _not_finite(self, rows: np.ndarray) -> UserError:
        """The error that names the first NaN. Without it, the action would be NaN, too."""
        row, column = np.argwhere(~np.isfinite(rows))[0]
        name = printable(self.signals.observations[column])
        where = f"row {row}, column {name!r}" if len(rows) > 1 else f"column {name!r}"
        return UserError(f"the observation has NaN or Inf (in float32) in {where}: fill it in, or do not act on it")
