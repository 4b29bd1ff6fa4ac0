"""Observations on which an exported policy is compared with the JAX policy."""

from pathlib import Path

import numpy as np

from edp.acting.policy import LoadedPolicy
from edp.config.spec import lists_to_tuples
from edp.data import formats, locate
from edp.data.tasks import Task
from edp.errors import UserError
from edp.exporting.signals import Signals
from edp.runs.load import locate_run_data


def find_observations(policy: LoadedPolicy, signals: Signals, count: int) -> tuple[np.ndarray, str]:
    """Observations of the run's data if it is still there, otherwise random ones; and where they come from."""
    try:
        rows = read_observations(policy)
    except (UserError, OSError, StopIteration):
        rows = np.zeros((0, policy.dims[0]))
    usable = rows.ndim == 2 and rows.shape[1] == policy.dims[0] and len(rows) > 0
    rows = rows[np.linspace(0, len(rows) - 1, count).astype(int)].astype(np.float32) if usable else rows
    if usable and np.isfinite(rows).all():
        return rows, "of the data"
    rng = np.random.default_rng(0)
    if signals.observed_range:
        return rng.uniform(*signals.observed_range, (count, policy.dims[0])).astype(np.float32), "within their ranges"
    normal = rng.standard_normal((count, policy.dims[0])).astype(np.float32)
    return policy.units.observations_from_network(normal), "at random"


def read_observations(policy: LoadedPolicy) -> np.ndarray:
    """The observations of the first piece of the run's data."""
    if policy.origin is None:
        return np.zeros((0, policy.dims[0]))
    run, spec = policy.origin.run, policy.spec
    columns = run.config.get("columns")
    place = locate_run_data(run, spec, existing_file)
    log = formats.open_log(place, lists_to_tuples(columns) if isinstance(columns, dict) else {}, None)
    return np.asarray(next(iter(log.pieces())).observations)


def existing_file(task: Task) -> Path:
    """The file of a task if it is there. Built-in data is not made for this."""
    path = locate.file_on_disk(task) or locate.look_alike_on_disk(task)
    if path is None:
        raise locate.MissingDataError(f"{task.name}: {task.file} is not here")
    return path
