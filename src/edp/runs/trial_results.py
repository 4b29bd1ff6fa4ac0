"""What came of the trials of a sweep, read from their run directories."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from edp.errors import UserError
from edp.runs.directory import Run
from edp.runs.scores import curve_from_evaluations, nan_mean
from edp.runs.sweep import EARLY, Sweep, Trial


class Result(NamedTuple):
    """What came of a trial so far."""

    trial: Trial
    state: str  # waiting, running, finished, stopped early, stopped, failed, killed
    step: int = 0
    steps: int = 0  # of the whole run
    per_seed: tuple[float, ...] = ()  # the metric of each seed, NaN for a failed one
    curve: Mapping[int, float] = {}  # the metric after each evaluation: mean over seeds, by step
    reason: str = ""
    seconds: float = 0.0  # of training and evaluation

    @property
    def value(self) -> float:
        """The mean over seeds; NaN if there is none."""
        return float(nan_mean(self.per_seed)) if self.per_seed else float("nan")

    @property
    def is_done(self) -> bool:
        return self.state in ("finished", EARLY) or (self.state == "failed" and self.seeds_failed)

    @property
    def seeds_failed(self) -> bool:
        """Whether all seeds became NaN, so that training again would give the same."""
        return bool(self.per_seed) and bool(np.isnan(self.per_seed).all())


def read_result(sweep: Sweep, trial: Trial) -> Result:
    """Read what came of a trial from its run directory."""
    try:
        run = sweep.run(trial)
        return result_of(run, trial, sweep.metric) if run else Result(trial, "waiting")
    except (UserError, ValueError, TypeError, KeyError) as error:
        folder = sweep.run_folder(trial)
        text = str(error) if isinstance(error, UserError) else f"{folder}: damaged"
        raise UserError(f"{text} (remove {folder}, and trial {trial.number} is trained again)") from None


def result_of(run: Run, trial: Trial, metric: str) -> Result:
    status, config = run.status, run.config["training"]
    failed = len(status["failed_seeds"]) == config["seeds"]
    curve, per_seed = metric_curve(run, metric)
    seeds = tuple([float("nan")] * config["seeds"]) if failed else per_seed
    return Result(
        trial,
        "failed" if failed else str(status["state"]),
        int(status["step"]),
        int(config["steps"]),
        seeds,
        curve,
        str(status["reason"]),
        spent_seconds(run),
    )


def metric_curve(run: Run, metric: str) -> tuple[dict[int, float], tuple[float, ...]]:
    """The metric by step, as means over seeds, and each seed's final value.

    The final score is RAT, the mean of the last ten evaluations; other metrics have their last value.
    """
    if metric == "score":
        curve = curve_from_evaluations(run.training_evaluations())
        if curve is None:
            return {}, ()
        return dict(zip(curve.steps.tolist(), curve.means.tolist(), strict=True)), tuple(curve.rat.tolist())
    if metric == "offline":
        rows = {row["step"]: row["values"] for row in run.offline()}
    else:
        rows = {row["step"]: row["metrics"][metric] for row in run.validations() if metric in row["metrics"]}
    table = {step: [float("nan") if each is None else float(each) for each in rows[step]] for step in sorted(rows)}
    last = tuple(next(reversed(table.values()))) if table else ()
    return {step: float(nan_mean(values)) for step, values in table.items()}, last


def spent_seconds(run: Run) -> float:
    """The seconds that a run has trained, evaluated and validated, from its log of times."""
    total, before = 0.0, 0
    for row in run.times():
        if row.get("steps_per_second"):
            total += max(0, row["step"] - before) / row["steps_per_second"]
            before = row["step"]
        total += sum(float(value) for name, value in row.items() if name.endswith("_seconds"))
    return total


def ranked(results: list[Result], sign: int) -> list[Result]:
    """The trials with a value, best first: those that trained to the end before those that were stopped early."""
    known = [each for each in results if not np.isnan(each.value)]
    return sorted(known, key=lambda each: (each.state != "finished", -sign * each.value, each.trial.number))
