"""Trained policies out of their runs, for use: NumPy in, NumPy out."""

import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting import rollout
from edp.acting.evaluator import actors
from edp.config.spec import EvalOptions, Spec, check_acting
from edp.errors import UserError, unknown
from edp.options import check
from edp.runs.directory import Run
from edp.runs.load import load


class LoadedPolicy:
    """A policy that acts as it did when its run was evaluated.

    It draws from a stream of its own: two policies loaded with the same ``draws`` act the same.
    """

    def __init__(self, spec: Spec, models: tuple[Any, Any], options: EvalOptions, draws: int):
        self.spec, self.options, self.units = spec, options, spec.scale
        self.dims, self._way = self.units.dims, options.way
        self._models, self._leaves, self._structure = models, *jax.tree.flatten(models)  # each call would flatten them
        self._key, self._episode = jax.random.key(draws), -1
        self.reset()

    def reset(self) -> None:
        """A new episode: other draws, and nothing of what was seen (which matters to policies that remember)."""
        self._episode += 1
        self._step, self._memories, self._keys, self._count = 0, None, None, -1

    def act(self, obs: np.ndarray, reward: np.ndarray | float = 0.0) -> np.ndarray:
        """An action for one observation, or one for each row of a batch of them.

        ``reward`` is what the last action earned; only policies that count down a return look at it.
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
                raise ValueError("the number of rows may change at reset() only: this policy remembers each of them")
            self._keys, self._count = jax.random.split(jax.random.fold_in(self._key, self._episode), (1, count)), count
            self._memories = jax.vmap(lambda policy: jax.vmap(lambda _: policy.memory(1))(jnp.arange(count)))(
                self._models[0]
            )
        rewards, steps = np.empty((1, count), np.float32), np.empty((1, count), np.int32)
        rewards[:], steps[:] = reward, self._step
        inputs = self.units.observe(rows[None]), rewards, steps, self._keys
        self._memories, actions = rollout.act_flat(
            self._structure, self._leaves, self._memories, *inputs, self._way, self.options.eas
        )
        self._step += 1
        chosen = self.units.act(np.asarray(actions)[0])
        return chosen[0] if obs.ndim == 1 else chosen


def not_finite(rows: np.ndarray) -> UserError:
    """Where the first of them is: an action that is NaN must never reach a plant."""
    row, column = np.argwhere(~np.isfinite(rows))[0]
    where = f"row {row}, column {column}" if len(rows) > 1 else f"column {column}"
    return UserError(f"the observation has NaN or Inf (in float32) in {where}: fill it in, or do not act on it")


def load_policy(
    run: str | Path, *, seed: int | None = None, checkpoint: int | str | None = None, draws: int = 0, **acting: Any
) -> LoadedPolicy:
    """The policy of one of a run's seeds (the first, unless given), at its last checkpoint, or a step, or the "best".

    ``acting`` takes the options of ``edp eval``, such as ``eas=50`` or ``initial_noise=0.0``; others are the run's own.
    """
    spec, found = load(Run.open(Path(run)), checkpoint)
    for damaged in found.damaged:
        warnings.warn(f"{damaged}; that of step {found.step} is used", stacklevel=2)
    known = [entry.name for entry in fields(EvalOptions)]
    for name in acting:
        if name not in known:
            raise unknown("option of acting", name, known)
    options = check(replace(spec.evaluation, **acting))
    sampler, seeds = check_acting(spec, options), range(spec.training.seed, spec.training.seed + spec.training.seeds)
    seed = seeds[0] if seed is None else seed
    if seed not in seeds:
        raise UserError(f"{run}: has seeds {seeds[0]} to {seeds[-1]}, not {seed}")
    if seed in found.failed:
        raise UserError(f"{run}: seed {seed} failed in training ({found.failed[seed]})")
    row = slice(seed - seeds[0], seed - seeds[0] + 1)
    models = jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), actors(found.tree, options.act_with, sampler))
    return LoadedPolicy(spec, models, options, draws)
