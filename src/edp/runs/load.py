"""Runs read back from disk: a run's spec, its checkpoints and its data."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from edp.algorithms import InitialState
from edp.config.spec import Spec, lists_to_tuples
from edp.data import formats
from edp.data.dataset import Dataset, fingerprint, read_dataset
from edp.data.log import Log
from edp.data.tasks import Task
from edp.envs.make import import_env
from edp.errors import UserError
from edp.runs.about import checkpoint_steps, read_about
from edp.runs.agreement import check_agreement, recorded_config
from edp.runs.checkpoints import Checkpoint, Checkpoints, restore_schema_2
from edp.runs.directory import Run
from edp.runs.logs import find_lost_rows
from edp.runs.rows import Row


class NoCheckpointError(UserError):
    """The run has no checkpoint of the kind that was asked for."""

    def __init__(self, run: Run, kind: str):
        self.run, self.kind = run, kind
        missing = {"best": "evaluated checkpoint", "offline": "judged checkpoint"}.get(kind, "checkpoint")
        super().__init__(f"{run.folder}: no {missing} in it yet")


def read_spec(run: Run) -> Spec:
    return Spec.from_json(run.config, run.folder / "config.json")


def load_checkpoint(run: Run, step: int | str | None = None) -> tuple[Spec, Checkpoint]:
    """A run's spec and one of its checkpoints.

    ``step`` is a training step, "best" for the best evaluation, "offline" for the choice of ``edp eval --offline``, or
    None for the last good checkpoint.
    """
    spec = read_spec(run)
    checkpoints = Checkpoints(run.checkpoints, config=recorded_config(spec, run.config))
    like, notes = state_shapes(spec), ()
    try:
        if step in ("best", "offline"):
            known = checkpoints.steps()
            best = best_step(run.scores(), known) if step == "best" else offline_step(run.offline(), known)
            if best is None:
                raise NoCheckpointError(run, str(step))
            step, notes = best, find_lost_rows(run).notes if step == "best" else ()
        if step is not None:
            if not str(step).isdecimal():
                raise UserError(f"`checkpoint` must be a step, best or offline, not {step!r}")
            return spec, checkpoints.load(int(step), like)._replace(damaged=notes)
        checkpoint = load_latest(run, checkpoints, like)
        if checkpoint is None:
            raise NoCheckpointError(run, "last")
        return spec, checkpoint
    finally:
        checkpoints.close()


def check_config(run: Run, spec: Spec) -> None:
    """Refuse a config that is not that of the last checkpoint whose metadata can be read."""
    for step in reversed(checkpoint_steps(run.checkpoints)):
        where = run.checkpoints / str(step)
        try:
            recorded = read_about(where).get("config")
        except UserError:  # damaged; it is reported when it is loaded
            continue
        if recorded is not None:
            check_agreement(where, recorded, recorded_config(spec, run.config))
        return


def state_shapes(spec: Spec) -> Any:
    """The structure of a run's training states, stacked over seeds, without any numbers."""
    init = InitialState(spec.algorithm, spec.policy, *spec.units.dims)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), spec.training.seeds))
    return jax.eval_shape(jax.vmap(init), keys)


def load_latest(
    run: Run, checkpoints: Checkpoints, like: Any, *, last: int | None = None, remove_damaged: bool = False
) -> Checkpoint | None:
    """The last good checkpoint of a run of any schema, at step ``last`` or before it."""
    if run.old_checkpoint.is_dir() and not checkpoints.steps():
        step = max((row["step"] for row in run.metrics()), default=0)
        return Checkpoint(step, restore_schema_2(run.old_checkpoint, like), {})
    return checkpoints.latest(like, last=last, remove_damaged=remove_damaged)


def best_step(scores: dict[int, float], steps: Iterable[int]) -> int | None:
    """The step with the highest score among ``steps``; None if none of them has one."""
    known = {step: scores[step] for step in steps if not np.isnan(scores.get(step, np.nan))}
    return max(known, key=lambda step: known[step]) if known else None


def offline_step(rows: list[Row], steps: Iterable[int]) -> int | None:
    """The last judged step, or one that is better than it by more than the noise; None if none of ``steps`` is judged.

    ``rows`` are those of ``edp eval --offline``. Each has the gain of its step over the last one, with an interval.
    """
    judged = {row["step"]: row["over_last"] for row in rows if row["step"] in steps and "over_last" in row}
    better = {step: mean for step, (low, mean, _) in judged.items() if low > 0}
    return max(better, key=lambda step: better[step]) if better else max(judged, default=None)


def read_run_data(run: Run, spec: Spec, place: str, log: Log | None = None) -> Dataset:
    """The data set of a run, in its units, from a place or from an open log.

    Refuses data that the run was not trained on.
    """
    columns = run.config.get("columns")
    columns = lists_to_tuples(columns) if isinstance(columns, dict) else {}
    log = log or formats.open_log(place, columns, spec.task.episode_limit or None)
    log = replace(log, limit=spec.data.episode_limit)
    dataset = read_dataset(log, spec.task.episode_return, on_disk=spec.data.block > 0)
    if dataset.obs.shape[1:] + dataset.action.shape[1:] == spec.units.dims:
        dataset = spec.units.convert_dataset(dataset, log)
        if run.config.get("data_sha256") in (None, fingerprint(dataset)):
            return dataset
    raise UserError(f"{place or log.name}: not the data that {run.folder} was trained on")


def locate_run_data(run: Run, spec: Spec, find_file: Callable[[Task], Path], advice: str | None = None) -> str:
    """Where the data of a run is now: where it was, or, for a registered task, where its file is."""
    recorded = str(run.config.get("file") or "")
    if recorded and formats.exists(recorded):
        return recorded
    if spec.task.own:
        where = f"is no longer at {recorded}" if recorded else "was never in a file"
        advice = ": give its new place with `data`" if advice is None else advice
        raise UserError(f"{run.folder}: its data {where}{advice}")
    return str(find_file(spec.task))


def with_environment(spec: Spec, env: str, run: Run) -> Spec:
    """The spec with its environment. An environment in the user's code is used only if the user names it again."""
    trained = (run.config.get("own_task") or {}).get("env", spec.task.env)
    if env and not spec.task.own:
        raise UserError(f"`env` is for your own data, and {spec.task.name} has an environment")
    if env:
        import_env(env)
        return replace(spec, task=replace(spec.task, env=env))
    if trained != spec.task.env:
        raise UserError(f"{run.folder}: was trained with `env={trained}`, which is your own code: give it again")
    return spec
