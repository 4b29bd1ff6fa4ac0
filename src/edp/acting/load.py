"""Load the policy of a run."""

import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from edp.acting.actors import Actors
from edp.acting.guard import CHOICES, load_guard
from edp.acting.limits import Limits, make_limits
from edp.acting.policy import LoadedPolicy, Origin
from edp.config.spec import EvalOptions
from edp.data.signals import Encoding, name_signals
from edp.errors import UserError, unknown
from edp.files import as_path
from edp.runs.directory import Run
from edp.runs.load import load_checkpoint


def load_policy(
    run: str | Path,
    *,
    seed: int | None = None,
    checkpoint: int | str | None = None,
    draws: int = 0,
    outside: str = "warn",
    max_change: Any = None,
    deadline_ms: float | None = None,
    fallback: Any = None,
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
        max_change: the greatest change of each action from one call of ``act`` to the next, in the units of the log: a
            number for all, a sequence, or a dict by name (None: no limit). The first call after ``reset()`` has nothing
            to compare with, and is not limited.
        deadline_ms: milliseconds after which ``act`` returns ``fallback`` if there is no action yet (None: it waits).
            ``status`` counts these misses.
        fallback: what is returned then: "hold" (the default: the last action), or an action, as a sequence or a dict by
            name. It is subject to ``max_change``, too.
        **acting: options of evaluation, such as ``eas=50`` or ``initial_noise=0.0`` (default: those of the run).
    """
    if outside not in CHOICES:
        raise unknown("choice of `outside`", str(outside), CHOICES)
    opened = Run.open(as_path(run, "run"))
    spec, found = load_checkpoint(opened, checkpoint)
    for damaged in found.damaged:
        warnings.warn(f"{damaged}; the checkpoint of step {found.step} is used", stacklevel=2)
    known = [entry.name for entry in fields(EvalOptions)]
    for name in acting:
        if name not in known:
            raise unknown("option of acting", name, [*known, "outside", "max_change", "deadline_ms", "fallback"])
    signals = spec.signals or name_signals((), (), Encoding(), spec.units.dims)
    limits = make_limits(signals, spec.units, max_change, deadline_ms, fallback)
    if limits != Limits() and spec.policy.reads_histories:
        raise UserError(
            "`max_change` and `deadline_ms` are not for transformers, which remember each action they chose"
        )
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
        limits=limits,
        title=f"{run}, step {found.step:,}, seed {seed}",
    )
    policy.origin = Origin(opened, seed, found.step)
    return policy
