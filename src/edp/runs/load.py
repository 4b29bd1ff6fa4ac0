"""What a run was trained on, and what became of it: its data and its checkpoints, found again."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from edp.training import epoch, processes
from edp.training.state import Init as Init
from edp.training.state import learnable as learnable
from edp.runs.checkpoints import Checkpoint, Checkpoints, restore_alone
from edp.data import formats
from edp.data.log import Dataset, Log, read
from edp.errors import UserError
from edp.runs.directory import Run
from edp.config.spec import Spec, tuples


def fingerprint(dataset: Dataset) -> str:
    """Tells whether the data is still what it was."""
    found = hashlib.sha256()
    for column in (dataset.obs, dataset.action, dataset.reward, dataset.next_obs, dataset.not_done, dataset.episode):
        found.update(np.ascontiguousarray(column).data)
    return found.hexdigest()


def latest(folder: Run, checkpoints: Checkpoints, like: Any, *, remove_damaged: bool = False) -> Checkpoint | None:
    """A run's last good checkpoint."""
    if folder.old_checkpoint.is_dir() and not checkpoints.steps():
        step = max((row["step"] for row in folder.metrics()), default=0)
        return Checkpoint(step, restore_alone(folder.old_checkpoint, like), {})
    return checkpoints.latest(like, remove_damaged=remove_damaged)


def from_leader(found: Checkpoint | None, like: Any) -> Checkpoint | None:
    """The first process's checkpoint in all of them."""
    said = processes.exchange(found and (found.step, found.about, found.damaged))[0]
    if said is None:
        return None
    step, about, damaged = said
    empty = lambda: jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like)  # noqa: E731
    return Checkpoint(step, processes.from_leader(found.tree if found else empty()), about, tuple(damaged))


def best_of(scores: dict[int, float], steps: Iterable[int]) -> int | None:
    """The step with the best score, of those that have one."""
    known = {step: scores[step] for step in steps if not np.isnan(scores.get(step, np.nan))}
    return max(known, key=lambda step: known[step]) if known else None


def open_data(place: str, columns: dict[str, Any], spec: Spec) -> Log:
    """The log that a run is trained on, or is to be."""
    log = formats.open_log(place, columns, spec.task.episode_limit or None)
    return replace(log, limit=spec.data.episode_limit)


def read_data(folder: Run, spec: Spec, place: str) -> Dataset:
    """The data that a run was trained on, in its units; anything else is refused."""
    columns = folder.config.get("columns")
    log = open_data(place, tuples(columns) if isinstance(columns, dict) else {}, spec)
    dataset = read(log, spec.task.episode_return, on_disk=spec.data.block > 0)
    if dataset.obs.shape[1:] + dataset.action.shape[1:] != spec.scale.dims:
        raise UserError(f"{place}: not the data that {folder.folder} was trained on")
    dataset = spec.scale.apply(dataset, log)
    if folder.config.get("data_sha256") not in (None, fingerprint(dataset)):
        raise UserError(f"{place}: not the data that {folder.folder} was trained on")
    return dataset


def load(folder: Run, step: int | str | None = None) -> tuple[Spec, Checkpoint]:
    """A run's spec and its training states.

    The last ones, or those of a step, of the "best" evaluation, or with the best value by "fqe".
    """
    spec = Spec.from_json(folder.config, folder.folder / "config.json")
    checkpoints = Checkpoints(folder.checkpoints)
    keys = epoch.seed_keys(range(spec.training.seeds))
    like = jax.eval_shape(jax.vmap(Init(spec.algorithm, spec.policy, *spec.scale.dims)), keys)
    try:
        if step in ("best", "fqe"):
            scores = folder.scores() if step == "best" else folder.offline_values()
            missing = "evaluated checkpoint" if step == "best" else f"values (edp eval {folder.folder} --offline)"
            if (step := best_of(scores, checkpoints.steps())) is None:
                raise UserError(f"{folder.folder}: no {missing} in it yet")
        if step is not None:
            if not str(step).isdecimal():
                raise UserError(f"--checkpoint must be a step, best or fqe, not {step!r}")
            return spec, checkpoints.load(int(step), like)
        found = latest(folder, checkpoints, like)
        if found is None:
            raise UserError(f"{folder.folder}: no checkpoint in it yet")
        return spec, found
    finally:
        checkpoints.close()
