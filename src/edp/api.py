"""The Python interface: a log in, a trained policy out."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edp.acting.policy import LoadedPolicy, load_policy
from edp.config.choice import choose
from edp.data import formats
from edp.data.log import Log
from edp.files import keep_compiled_programs
from edp.memory import limited_memory, parse_size
from edp.training import prepare


def open_log(data: str | Path, columns: Mapping[str, Any] | None = None, *, max_memory: int | str | None = None) -> Log:
    """Open a file, a folder of tables, a LeRobot data set, or a name with a prefix such as ``minari:``.

    ``columns`` gives the meaning of a table's columns. A file that is read at once (``.npz``) is refused if it needs
    more than ``max_memory``, in bytes or as ``"4GB"``, or more than is free.
    """
    with limited_memory(parse_size(str(max_memory)) if max_memory is not None else None):
        return formats.open_log(str(data), columns or {})


def write(log: Log, to: str | Path, *, overwrite: bool = False) -> str:
    """Write a log, and return where it is. The suffix or prefix of ``to`` decides the format.

    Data that exists is refused, unless ``overwrite`` is True. The data that ``log`` reads is never replaced.
    """
    return formats.write_log(str(to), log, overwrite)


def fit(
    data: Log | str | Path,
    out: str | Path,
    *,
    algo: str | None = None,
    policy: str | None = None,
    preset: str | None = None,
    env: str = "",
    columns: Mapping[str, Any] | None = None,
    on_event: Callable[[Any], None] = lambda event: None,
    **options: Any,
) -> LoadedPolicy:
    """Train a policy, as ``edp train`` does, and load it.

    Args:
        data: a log, a file or name as for ``open_log``, or the name of a task.
        out: the run directory.
        algo: the algorithm.
        policy: the policy class.
        preset: a named set of options.
        env: a Gymnasium environment to evaluate in (ID or module:ID), if ``data`` is not a task.
        columns: the meaning of a table's columns.
        on_event: called with every event of training: epochs, evaluations, validations, failures of seeds.
        **options: the options of ``edp train`` by name, for example ``steps=10_000``.
    """
    keep_compiled_programs()
    source = prepare.open_source(data, columns=columns, env=env)
    settings = prepare.resolve_settings(choose(algo, policy, preset, options), source.task)
    with prepare.start_run(source, settings, Path(out)) as ready:
        for note in ready.notes:
            warnings.warn(note, stacklevel=2)
        for event in ready.experiment.run(ready.run):
            on_event(event)
    return load_policy(out)
