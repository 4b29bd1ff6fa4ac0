"""Trained policies for use: numbers in, numbers out, or names in and names out."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from edp.acting.actors import Actors
from edp.acting.describe import describe_policy
from edp.acting.guard import CHOICES, Guard, Status, load_guard
from edp.acting.named import Encoder, names_of
from edp.acting.selection import act_flat, initial_memories
from edp.config.spec import EvalOptions, Spec
from edp.data.signals import Encoding, name_signals
from edp.errors import UserError, first_line, printable, unknown
from edp.runs.directory import Run
from edp.runs.load import load_checkpoint


class Origin(NamedTuple):
    """Where a loaded policy comes from."""

    run: Run
    seed: int
    step: int


class LoadedPolicy:
    """A policy that acts as it did when its run was evaluated.

    Its random numbers depend on ``draws`` alone: two policies loaded with the same ``draws`` act the same.
    ``repr(policy)`` shows what it sees and sets. After each call of ``act``, ``status`` tells how the observation
    compares with the training data.
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
        title: str = "",
    ):
        self.spec, self.options, self.units = spec, options, spec.units
        self.dims, self._actors = self.units.dims, actors
        self.signals = spec.signals or name_signals((), (), Encoding(), self.dims)
        self.outside, self.title, self.status = outside, title, Status()
        self._guard, self._encoder = guard, Encoder(self.signals)
        self._leaves, self._structure = jax.tree.flatten(actors)
        self._key, self._episode, self._warned = jax.random.key(draws), -1, set[str]()
        self.reset()

    def __repr__(self) -> str:
        return describe_policy(self)

    @property
    def actors(self) -> Actors:
        """The models that act, stacked over one seed."""
        return self._actors

    def reset(self) -> None:
        """Start a new episode: new random numbers, and an empty memory for policies that have one."""
        self._episode += 1
        self._step, self._memories, self._keys, self._count = 0, None, None, -1

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
        names = names_of(obs)
        if names is None:
            rows, single = self._rows_of_array(obs)
        else:
            rows, single = self._encoder.rows(obs, names)
        chosen = self._act(rows, reward)
        if names is None:
            return chosen[0] if single else chosen
        columns = (float(str(number)) for number in chosen[0]) if single else chosen.T  # 0.1, and not 0.10000000149
        return dict(zip(self.signals.actions, columns, strict=True))

    def _rows_of_array(self, obs: Any) -> tuple[np.ndarray, bool]:
        try:
            with np.errstate(over="ignore"):  # what is too large becomes Inf, which is refused
                obs = np.asarray(obs, np.float32)
        except (TypeError, ValueError) as error:
            raise UserError(f"observations are numbers, or have names: {first_line(error)}") from None
        rows = obs[None] if obs.ndim == 1 else obs
        if rows.ndim != 2 or rows.shape[1] != self.dims[0]:
            raise UserError(f"observations have {self.dims[0]} numbers, not shape {obs.shape}")
        return rows, obs.ndim == 1

    def _act(self, rows: np.ndarray, reward: np.ndarray | float) -> np.ndarray:
        """The actions for some rows, each checked."""
        count = len(rows)
        if self._count != count:
            if self._memories is not None and self._step:
                raise ValueError(
                    "the number of rows may change only at reset(), because this policy remembers each row"
                )
            self._keys, self._count = jax.random.split(jax.random.fold_in(self._key, self._episode), (1, count)), count
            self._memories = initial_memories(self._actors.policies, count)
            self._good, self._good_seen = np.full((count, self.dims[1]), np.nan, np.float32), np.empty_like(rows)
        with np.errstate(over="ignore"):
            seen = self.units.observations_to_network(rows)
        outside = self._check(rows, seen)
        rewards, steps = np.empty((1, count), np.float32), np.empty((1, count), np.int32)
        rewards[:], steps[:] = reward, self._step
        self._memories, actions = act_flat(
            self._structure, self._leaves, self._memories, seen[None], rewards, steps, self._keys
        )
        self._step += 1
        found = np.asarray(actions)[0]
        chosen = self.units.actions_from_network(found)
        if not math.isfinite(np.vdot(found, found)) and not np.isfinite(found).all():  # the product alone is faster
            raise UserError(
                "the policy's action is NaN or Inf: its parameters are (the seed failed in training), or the "
                "observation is so far from the data that the network's numbers overflow"
            )
        return self._hold(chosen, seen, outside) if self.outside == "hold" else chosen

    def _check(self, rows: np.ndarray, seen: np.ndarray) -> list[int]:
        """Set the status, and do what ``outside`` says about observations outside of the training data.

        Returns the rows whose last good action is held, which see their last good observation instead.
        """
        self.status = status = self._guard.check(rows, seen) if self._guard else Status()
        if not np.isfinite(rows).all() and self.outside != "hold":
            raise self._not_finite(rows)
        if not status.outside or self.outside == "ignore":
            return []
        if self.outside == "refuse":
            raise UserError(status.why)
        held = list(status.rows) if self.outside == "hold" else []
        if held and np.isnan(self._good[held]).any():
            raise UserError(f"{status.why}, and there is no earlier action to hold")
        if held:
            self.status = status._replace(held=True)
            seen[held] = self._good_seen[held]
        self._warn_once(status)
        return held

    def _hold(self, chosen: np.ndarray, seen: np.ndarray, held: list[int]) -> np.ndarray:
        """The actions, with the last good one in the rows that are held."""
        chosen[held] = self._good[held]
        self._good, self._good_seen = chosen.copy(), seen
        return chosen

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


def load_policy(
    run: str | Path,
    *,
    seed: int | None = None,
    checkpoint: int | str | None = None,
    draws: int = 0,
    outside: str = "warn",
    **acting: Any,
) -> LoadedPolicy:
    """Load the policy of one seed of a run.

    Args:
        run: the run directory.
        seed: one of the run's seeds (default: the first).
        checkpoint: a training step, "best" for the best evaluation, "offline" for the choice of
            ``edp eval RUN --offline`` (default: the last checkpoint).
        draws: the seed of the policy's random numbers.
        outside: what to do with observations outside of the training data: "warn" (act, and warn once about each
            column), "hold" (give the last action that was given inside), "refuse" (raise UserError) or "ignore" (act).
            ``status`` of the policy tells in each case.
        **acting: options of evaluation, such as ``eas=50`` or ``initial_noise=0.0`` (default: those of the run).
    """
    if outside not in CHOICES:
        raise unknown("choice of `outside`", str(outside), CHOICES)
    opened = Run.open(Path(run))
    spec, found = load_checkpoint(opened, checkpoint)
    for damaged in found.damaged:
        warnings.warn(f"{damaged}; the checkpoint of step {found.step} is used", stacklevel=2)
    known = [entry.name for entry in fields(EvalOptions)]
    for name in acting:
        if name not in known:
            raise unknown("option of acting", name, [*known, "outside"])
    options = spec.evaluation.with_values(**acting)
    actors = Actors.from_states(spec, options, found.tree)
    seed = spec.seeds[0] if seed is None else seed
    if seed not in spec.seeds:
        raise UserError(f"{run}: has seeds {spec.seeds[0]} to {spec.seeds[-1]}, not {seed}")
    if seed in found.failed:
        raise UserError(f"{run}: seed {seed} failed in training ({found.failed[seed]})")
    row = spec.seeds.index(seed)
    models = actors.policies, actors.critics
    policies, critics = jax.tree.map(lambda leaf: jnp.asarray(leaf[row : row + 1]), models)
    policy = LoadedPolicy(
        spec,
        Actors(policies, critics, actors.selection),
        options,
        draws,
        guard=load_guard(Path(run), spec, outside),
        outside=outside,
        title=f"{run}, step {found.step:,}, seed {seed}",
    )
    policy.origin = Origin(opened, seed, found.step)
    return policy
