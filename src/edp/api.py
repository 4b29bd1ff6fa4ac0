"""The Python interface: a log in, a trained policy out."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from edp.acting.load import load_policy
from edp.acting.policy import LoadedPolicy
from edp.data import formats
from edp.data.formats.columns import given_columns
from edp.data.log import Log
from edp.errors import UserError, short_repr
from edp.files import as_path, keep_compiled_programs
from edp.memory import limited_memory, parse_size
from edp.runs.directory import Run
from edp.runs.sweep import Sweep
from edp.runs.trial_results import Result
from edp.sweeps.plan import read_plan
from edp.sweeps.run import open_engine, resume_sweep, run_sweep, start_sweep
from edp.training.progress import progress_bar
from edp.training.request import ColumnsGiven, Request


def open_log(data: Any, columns: ColumnsGiven = None, *, max_memory: int | str | None = None) -> Log:
    """Open a file, a folder of tables, a LeRobot data set, or a name with a prefix such as ``minari:``.

    A table may also be in memory: a data frame of pandas or Polars, or a table of Arrow. ``columns`` gives the meaning
    of a table's columns: a mapping, or the name of a TOML file. A file that is read at once (``.npz``) is refused if it
    needs more than ``max_memory``, in bytes or as ``"4GB"``, or more than is free.
    """
    meaning, ranges, _ = given_columns(columns)
    with limited_memory(parse_size(str(max_memory)) if max_memory is not None else None):
        named = isinstance(data, str | Path)
        log = formats.open_log(str(data), meaning) if named else formats.open_frame(data, meaning)
    return replace(log, low=ranges.get("action_low", log.low), high=ranges.get("action_high", log.high))


def write(log: Log, to: str | Path, *, overwrite: bool = False) -> str:
    """Write a log, and return where it is. The suffix or prefix of ``to`` decides the format.

    Data that exists is refused, unless ``overwrite`` is True. The data that ``log`` reads is never replaced.
    """
    as_path(to, "to")
    if not isinstance(log, Log):
        raise UserError(f"`log` must be a log, as edp.open_log, from_arrays or record give it, not {short_repr(log)}")
    return formats.write_log(str(to), log, overwrite)


def fit(
    data: Any,
    out: str | Path,
    *,
    algo: str | None = None,
    policy: str | None = None,
    preset: str | None = None,
    env: str = "",
    columns: ColumnsGiven = None,
    resume: bool = False,
    progress: bool = True,
    on_event: Callable[[Any], None] = lambda event: None,
    **options: Any,
) -> LoadedPolicy:
    """Train a policy, as ``edp train`` does, and load it.

    Args:
        data: a log, a file, name or table in memory as for ``open_log``, or the name of a task.
        out: the run directory.
        algo: the algorithm.
        policy: the policy class.
        preset: a named set of options.
        env: a Gymnasium environment to evaluate in (ID or module:ID), if ``data`` is not a task.
        columns: the meaning of a table's columns: a mapping, or the name of a TOML file.
        resume: continue the run in ``out``, if there is one, from its last checkpoint. It must have been started with
            the same arguments, except for ``steps``. A run that has finished is only loaded.
        progress: show a bar, if this is a terminal or a notebook.
        on_event: called with every event of training: epochs, evaluations, validations, failures of seeds.
        **options: the options of ``edp train`` by name, for example ``steps=10_000``.
    """
    keep_compiled_programs()
    out = as_path(out, "out")
    options = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in options.items()}
    request = Request(data, algo, policy, preset, env, columns, options=options)
    resumes = resume and Run.is_in(out)
    if resumes and request.is_done(out):
        return load_policy(out)
    with request.resume(out) if resumes else request.start(out) as ready:
        for note in ready.notes:
            warnings.warn(note, stacklevel=2)
        with progress_bar(ready.experiment.spec) if progress else nullcontext(lambda event: None) as show:
            for event in ready.experiment.run(ready.run):
                show(event)
                on_event(event)
    return load_policy(out)


def sweep(
    plan: Mapping[str, Any] | str | Path,
    out: str | Path,
    *,
    engine: str = "ray",
    address: str = "",
    parallel: int = 0,
    resume: bool = False,
    on_results: Callable[[list[Result]], None] = lambda results: None,
) -> list[Result]:
    """Train over a space of options, as ``edp sweep`` does, and return what came of every trial.

    Args:
        plan: a TOML file, or a mapping with the same tables.
        out: the directory of the sweep. Every trial is a run directory in it.
        engine: ``"ray"``, or ``"serial"`` for one trial after another in this process.
        address: of a Ray cluster; by default, Ray is started on this machine.
        parallel: the most trials at a time; by default, as many as there are resources for.
        resume: go on with the sweep in ``out``, if there is one. It must have been started with the same plan.
        on_results: called with the results of all trials, now and then.
    """
    keep_compiled_programs()
    out = as_path(out, "out")
    read, started = read_plan(plan), None
    if resume and Sweep.is_in(out):
        there, started = resume_sweep(out)
        if there.content != read.content:
            raise UserError(f"{out}: was started with another plan: resume it with the same, or choose another `out`")
    with open_engine(engine, read, parallel=parallel, address=address) as opened:
        started = started or start_sweep(read, out)
        return run_sweep(read, started, opened, on_results, lambda text: warnings.warn(text, stacklevel=2))
