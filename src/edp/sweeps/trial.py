"""One trial of a sweep: an ordinary run, which is resumed if it was begun, and may be stopped early."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edp.acting.evaluator import Evaluation
from edp.acting.rollout import StoppedError
from edp.acting.validation import Validation
from edp.config.spec import DataOptions
from edp.errors import UserError, first_line
from edp.runs.directory import Run, RunExistsError
from edp.runs.rows import Row
from edp.runs.sweep import DATA, EARLY, PATIENCE, Sweep, Trial
from edp.runs.trial_results import metric_curve, read_result
from edp.sweeps.halving import Halving
from edp.sweeps.offline import OfflineValues
from edp.sweeps.plan import as_request
from edp.training.loop import TrainingError
from edp.training.prepare import Ready

# Values that say what data it is, and those that may change how it is scaled.
SCALED = (*DATA, "algo", "policy", "preset", *(entry.name for entry in fields(DataOptions)))


class Outcome(NamedTuple):
    """How a call of ``run_trial`` ended."""

    number: int
    state: str  # finished, stopped early, stopped, failed
    reason: str = ""


def run_trial(
    folder: Path,
    number: int,
    stopping: Callable[[], bool] = lambda: False,
    on_event: Callable[[Any], None] = lambda event: None,
) -> Outcome:
    """Train a trial to its end, until early stopping ends it, or until ``stopping()``."""
    sweep = Sweep.open(folder)
    trial = sweep.trial(number)
    wait_until_free(sweep.run_folder(trial))
    if read_result(sweep, trial).is_done:
        return Outcome(number, read_result(sweep, trial).state)
    try:
        with open_run(sweep, trial) as ready:
            failures: list[str] = []
            state = train(sweep, trial, ready, stopping, on_event, failures)
            return Outcome(number, state, f"an evaluation has no score ({failures[-1]})" if failures else "")
    except StoppedError:
        return Outcome(number, "stopped")
    except RunExistsError as error:
        return Outcome(number, "failed", f"{error.folder}: exists, and is not a run; move it away")
    except (UserError, TrainingError) as error:
        return Outcome(number, "failed", first_line(error))


def open_run(sweep: Sweep, trial: Trial) -> AbstractContextManager[Ready]:
    """Start the run of a trial, or resume it."""
    out, request = sweep.run_folder(trial), as_request(lists_to_tuples(sweep.values(trial)))
    command = ["edp", "sweep", "--resume", str(sweep.folder)]
    if Run.is_in(out):
        return request.resume(out, command)
    return request.start(out, command, data_sha256(sweep, trial))


def data_sha256(sweep: Sweep, trial: Trial) -> str:
    """The hash that a trial's data must have: that of a trial on the same data that has begun; empty without any.

    The hash is that of scaled data, so only trials count whose data is scaled in the same way.
    """

    def scaled(each: Trial) -> Row:
        return {name: value for name, value in sweep.values(each).items() if name in SCALED}

    for other in sweep.trials():
        run = sweep.run(other) if scaled(other) == scaled(trial) else None
        if run and run.config.get("data_sha256"):
            return str(run.config["data_sha256"])
    return ""


def train(
    sweep: Sweep,
    trial: Trial,
    ready: Ready,
    stopping: Callable[[], bool],
    on_event: Callable[[Any], None],
    failures: list[str],
) -> str:
    """Train, and decide after each evaluation whether the trial goes on. Returns the state at the end.

    Reasons why an evaluation has no score at all are added to ``failures``.
    """
    experiment, run, plan = ready.experiment, ready.run, sweep.plan
    halving = Halving(sweep, plan["stopping"]["first"], plan["stopping"]["factor"])
    steps = experiment.spec.training.steps
    offline = OfflineValues(ready) if sweep.metric == "offline" else None

    def ends_early() -> bool:
        """A crash may have come between an evaluation and its decision, so all evaluations are looked at."""
        if offline:
            offline.judge(run, [*halving.rungs(steps), steps])
        return halving.stops(trial, metric_curve(run, sweep.metric)[0], steps)

    if not ends_early():
        with closing(experiment.run(run, stopping)) as events:
            for event in events:
                on_event(event)
                if isinstance(event, Evaluation) and np.isnan(event.scores).all():
                    failures += event.failures[:1]
                if isinstance(event, Evaluation | Validation) and ends_early():
                    break
            else:
                return "finished"
    run.set_status(EARLY, experiment.step, failed_seeds=experiment.failed)
    return EARLY


def wait_until_free(folder: Path) -> None:
    """Wait for the process of a sweep that was killed, which may train for some more seconds."""
    end = time.monotonic() + PATIENCE
    while Run.is_in(folder) and Run(folder).is_claimed and time.monotonic() < end:
        time.sleep(0.2)


def lists_to_tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
