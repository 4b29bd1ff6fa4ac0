"""Trained policies for use: NumPy in, NumPy out."""

import math
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.actors import Actors
from edp.acting.selection import act_flat, initial_memories
from edp.config.spec import EvalOptions, Spec
from edp.errors import UserError, unknown
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
    """

    origin: Origin | None = None

    def __init__(self, spec: Spec, actors: Actors, options: EvalOptions, draws: int):
        self.spec, self.options, self.units = spec, options, spec.units
        self.dims, self._actors = self.units.dims, actors
        self._leaves, self._structure = jax.tree.flatten(actors)
        self._key, self._episode = jax.random.key(draws), -1
        self.reset()

    @property
    def actors(self) -> Actors:
        """The models that act, stacked over one seed."""
        return self._actors

    def reset(self) -> None:
        """Start a new episode: new random numbers, and an empty memory for policies that have one."""
        self._episode += 1
        self._step, self._memories, self._keys, self._count = 0, None, None, -1

    def act(self, obs: np.ndarray, reward: np.ndarray | float = 0.0) -> np.ndarray:
        """The action for an observation, or an action for each row of a batch of observations.

        ``reward`` is the reward of the last action; only policies that act towards a target return use it.
        """
        obs = np.asarray(obs, np.float32)
        rows = obs[None] if obs.ndim == 1 else obs
        if rows.ndim != 2 or rows.shape[1] != self.dims[0]:
            raise ValueError(f"observations have {self.dims[0]} numbers, not shape {obs.shape}")
        if not np.isfinite(rows).all():
            raise not_finite(rows)
        count = len(rows)
        if self._count != count:
            if self._memories is not None and self._step:
                raise ValueError(
                    "the number of rows may change only at reset(), because this policy remembers each row"
                )
            self._keys, self._count = jax.random.split(jax.random.fold_in(self._key, self._episode), (1, count)), count
            self._memories = initial_memories(self._actors.policies, count)
        rewards, steps = np.empty((1, count), np.float32), np.empty((1, count), np.int32)
        rewards[:], steps[:] = reward, self._step
        inputs = self.units.observations_to_network(rows[None]), rewards, steps, self._keys
        self._memories, actions = act_flat(self._structure, self._leaves, self._memories, *inputs)
        self._step += 1
        found = np.asarray(actions)[0]
        chosen = self.units.actions_from_network(found)
        if not math.isfinite(np.vdot(found, found)) and not np.isfinite(found).all():  # the product alone is faster
            raise UserError(
                "the policy's action is NaN or Inf: its parameters are (the seed failed in training), or the "
                "observation is so far from the data that the network's numbers overflow"
            )
        return chosen[0] if obs.ndim == 1 else chosen


def not_finite(rows: np.ndarray) -> UserError:
    """The error that names the first NaN. Without it, the action would be NaN, too."""
    row, column = np.argwhere(~np.isfinite(rows))[0]
    where = f"row {row}, column {column}" if len(rows) > 1 else f"column {column}"
    return UserError(f"the observation has NaN or Inf (in float32) in {where}: fill it in, or do not act on it")


def load_policy(
    run: str | Path, *, seed: int | None = None, checkpoint: int | str | None = None, draws: int = 0, **acting: Any
) -> LoadedPolicy:
    """Load the policy of one seed of a run.

    Args:
        run: the run directory.
        seed: one of the run's seeds (default: the first).
        checkpoint: a training step, "best" for the best evaluation, "fqe" for the best value by fitted Q evaluation
            (default: the last checkpoint).
        draws: the seed of the policy's random numbers.
        **acting: options of evaluation, such as ``eas=50`` or ``initial_noise=0.0`` (default: those of the run).
    """
    opened = Run.open(Path(run))
    spec, found = load_checkpoint(opened, checkpoint)
    for damaged in found.damaged:
        warnings.warn(f"{damaged}; the checkpoint of step {found.step} is used", stacklevel=2)
    known = [entry.name for entry in fields(EvalOptions)]
    for name in acting:
        if name not in known:
            raise unknown("option of acting", name, known)
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
    policy = LoadedPolicy(spec, Actors(policies, critics, actors.selection), options, draws)
    policy.origin = Origin(opened, seed, found.step)
    return policy
