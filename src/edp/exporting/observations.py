"""Observations on which an exported policy is compared with the JAX policy."""

from pathlib import Path

import numpy as np

from edp.acting.policy import LoadedPolicy
from edp.config.spec import lists_to_tuples
from edp.data import formats, locate
from edp.data.log import Log
from edp.data.signals import Signals
from edp.data.tasks import Task
from edp.errors import UserError
from edp.runs.load import locate_run_data


def open_data(policy: LoadedPolicy) -> Log | None:
    """The log that the policy was trained on; None if it is not there any more."""
    if policy.origin is None:
        return None
    run, columns = policy.origin.run, policy.origin.run.config.get("columns")
    try:
        place = locate_run_data(run, policy.spec, existing_file)
        return formats.open_log(place, lists_to_tuples(columns) if isinstance(columns, dict) else {}, None)
    except (UserError, OSError):
        return None


def existing_file(task: Task) -> Path:
    """The file of a task if it is there. Built-in data is not made for this."""
    path = locate.file_on_disk(task) or locate.look_alike_on_disk(task)
    if path is None:
        raise locate.MissingDataError(f"{task.name}: {task.file} is not here")
    return path


def choose_observations(policy: LoadedPolicy, log: Log | None, signals: Signals, count: int) -> tuple[np.ndarray, str]:
    """Observations of the log if it can be read, otherwise random ones; and where they come from."""
    rows, width = first_rows(log), policy.dims[0]
    if rows is not None and rows.ndim == 2 and rows.shape[1] == width and len(rows):
        rows = rows[np.linspace(0, len(rows) - 1, count).astype(int)].astype(np.float32)
        if np.isfinite(rows).all():
            return rows, "of the data"
    rng = np.random.default_rng(0)
    if signals.low:
        return rng.uniform(signals.low, signals.high, (count, width)).astype(np.float32), "within the data's ranges"
    normal = rng.standard_normal((count, width)).astype(np.float32)
    return policy.units.observations_from_network(normal), "at random"


def first_rows(log: Log | None) -> np.ndarray | None:
    """The observations of the first piece of a log."""
    try:
        return None if log is None else np.asarray(next(iter(log.pieces())).observations)
    except (UserError, OSError, StopIteration):
        return None
