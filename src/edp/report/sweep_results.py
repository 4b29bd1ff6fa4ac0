"""Read the directory of a sweep for a report. What is damaged becomes a note and does not stop the report."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from edp.errors import counted
from edp.report.ablations import are_drawable
from edp.report.collect import DAMAGE, damage_text
from edp.runs.rows import Row
from edp.runs.sweep import RUNGS, TRIALS, Sweep, Trial
from edp.runs.trial_results import Result, ranked, read_result

METRIC_NAMES = {"score": "score", "bc_loss": "bc_loss on held-out episodes", "offline": "value estimated from the log"}


class Range(NamedTuple):
    """The numbers from which the plan draws an option."""

    low: float
    high: float
    log: bool


@dataclass(eq=False)
class SweepEntry:
    """One sweep."""

    folder: Path
    name: str
    damage: str = ""  # why the sweep cannot be shown; empty for a good one
    metric: str = "score"
    sign: int = 1  # -1 if lower values are better
    first_rung: int = 0  # steps after which trials are compared for the first time; 0 without early stopping
    varied: list[str] = field(default_factory=list)  # options that differ between trials
    ranges: dict[str, Range] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)  # best first, then those without a value
    again: list[Result] = field(default_factory=list)  # of settings that were trained again, with fresh seeds
    rungs: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: dict[int, Row] = field(default_factory=dict)  # by trial: what says on which data it is trained

    @property
    def measure(self) -> str:
        return METRIC_NAMES.get(self.metric, self.metric)

    @property
    def finished(self) -> list[Result]:
        """The trials that trained to their end and have a value, best first."""
        return [each for each in self.results if each.state == "finished" and not math.isnan(each.value)]

    def by_data(self) -> "list[SweepEntry]":
        """The parts of the sweep whose trials are on the same data; others are not compared with each other."""
        data = {each.trial.number: json.dumps(self.data.get(each.trial.number)) for each in self.results}
        parts = []
        for one in dict.fromkeys(data.values()):
            numbers = [number for number, other in data.items() if other == one]
            again = [each for each in self.again if each.trial.again in numbers]
            parts.append(replace(self, results=[r for r in self.results if r.trial.number in numbers], again=again))
        return parts or [self]


def find_sweeps(folders: list[Path]) -> list[Path]:
    """List the sweeps among these folders."""
    return list(dict.fromkeys(folder for folder in folders if Sweep.is_in(folder)))


def read_sweeps(folders: list[Path]) -> list[SweepEntry]:
    """Read the sweeps among these folders. Those with the same name are named by their paths."""
    entries = [read_sweep(folder) for folder in find_sweeps(folders)]
    names = Counter(entry.name for entry in entries)
    for entry in entries:
        entry.name = entry.name if names[entry.name] == 1 else str(entry.folder)
    return entries


def read_sweep(folder: Path) -> SweepEntry:
    """Read all that a report shows of a sweep."""
    entry = SweepEntry(folder, folder.absolute().name)
    try:
        fill(entry, Sweep.open(folder))
    except DAMAGE as error:
        entry.damage = damage_text(folder, error).removeprefix(f"{folder}/")
    return entry


def fill(entry: SweepEntry, sweep: Sweep) -> None:
    entry.metric, entry.sign = sweep.metric, sweep.sign
    entry.first_rung = int(sweep.plan["stopping"]["first"])
    entry.ranges = planned_ranges(sweep.plan)
    trials = {trial.number: trial for trial in reversed(read_log(entry, sweep, TRIALS))}  # the first of each number
    trials = {number: trials[number] for number in sorted(trials)}
    entry.rungs = [row for row in read_log(entry, sweep, RUNGS) if type(row.get("stops")) is bool]
    known = {row["number"] for row in entry.rungs} | {
        trial.again for trial in trials.values() if type(trial.again) is int
    }
    results = [read_trial(sweep, trial, known) for trial in trials.values()]
    first = [each for each in results if each.trial.again is None]
    entry.data = {each.trial.number: sweep.data_of(each.trial) for each in first}
    order = sorted(
        ranked(first, entry.sign), key=lambda each: list(entry.data.values()).index(entry.data[each.trial.number])
    )
    entry.results = [*order, *(each for each in first if math.isnan(each.value))]
    numbers = [each.trial.number for each in first]
    entry.again = [each for each in results if each.trial.again is not None and each.trial.again in numbers]
    lost = len(results) - len(first) - len(entry.again)
    if lost:
        entry.notes.append(f"{counted(lost, 'trial')} with fresh seeds left out: what they repeat is not in {TRIALS}.")
    entry.varied = differing_options([each.trial for each in first])


def read_log(entry: SweepEntry, sweep: Sweep, name: str) -> list[Any]:
    """Read the trials or the decisions of early stopping, and add a note if some lines cannot be read."""
    path = sweep.folder / name
    rows = sweep.trials() if name == TRIALS else sweep.rungs()
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    lines = sum(bool(line.strip()) for line in text.splitlines())
    if len(rows) < lines:
        entry.notes.append(f"{lines - len(rows)} of {lines} lines of {name} cannot be read.")
    return list(rows)


def read_trial(sweep: Sweep, trial: Trial, known: set[Any]) -> Result:
    """Read what came of a trial. One that is ``known`` to have run and has no run directory says so."""
    try:
        result = read_result(sweep, trial)
    except DAMAGE as error:
        return Result(trial, "damaged", reason=damage_text(sweep.run_folder(trial), error))
    if result.state == "waiting" and trial.number in known:
        return result._replace(state="damaged", reason="its run directory is missing")
    return result


def planned_ranges(plan: Row) -> dict[str, Range]:
    """Read the ranges of the plan, by option. An option may have one in each of several spaces."""
    content = plan.get("content")
    space = content.get("space") if isinstance(content, dict) else None
    ranges: dict[str, Range] = {}
    for table in space if isinstance(space, list) else [space]:
        for spelled, given in table.items() if isinstance(table, dict) else ():
            if isinstance(given, dict) and are_numbers([given.get("low"), given.get("high")]):
                name, log = spelled.replace("-", "_"), given.get("log") is True and given["low"] > 0
                other = ranges.get(name, Range(given["low"], given["high"], log))
                low, high = min(other.low, given["low"]), max(other.high, given["high"])
                ranges[name] = Range(low, high, (log or other.log) and low > 0)
    return ranges


def differing_options(trials: list[Trial]) -> list[str]:
    """List the options that do not have one value in all trials; all options of a single trial."""
    names = dict.fromkeys(name for trial in trials for name in trial.values)
    differ = lambda name: len({repr(trial.values.get(name)) for trial in trials}) > 1  # noqa: E731
    return [name for name in names if len(trials) == 1 or differ(name)]


def are_numbers(values: Iterable[Any]) -> bool:
    """Whether all values are numbers that can be drawn."""
    return all(type(value) in (int, float) and are_drawable([value]) for value in values)


def value_text(value: Any) -> str:
    """Write the value of an option as in the file of a sweep."""
    if isinstance(value, list | tuple):
        return ",".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def describe_trial(entry: SweepEntry, trial: Trial) -> str:
    """Name a trial, with the values in which it differs from others."""
    values = [f"{name} {value_text(trial.values[name])}" for name in entry.varied if name in trial.values]
    return f"trial {trial.number}" + (f" ({', '.join(values)})" if values else "")
