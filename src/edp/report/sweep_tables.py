"""Tables of a sweep: its trials, best first, what early stopping cut, and what all cost."""

import math

import numpy as np

from edp.errors import counted
from edp.report.markup import Cell, Table, without_empty_columns
from edp.report.statistics import FEW_EPISODES, cautions, mean_interval
from edp.report.sweep_results import SweepEntry, value_text
from edp.report.tables import option_number
from edp.runs.sweep import EARLY
from edp.runs.trial_results import Result

LARGEST_PLAIN = 1e6  # larger numbers are written with an exponent
METRIC_NOTES = {
    "score": "The score is RAT, the mean of the last ten evaluations (or of all, if there are fewer).",
    "bc_loss": "The bc_loss is the last one on held-out episodes; lower is better.",
    "offline": "The value is the last one that was estimated from the log alone.",
}
INTERVAL_NOTE = "Values are means over seeds with 95 % confidence intervals (Student's t; none for one seed)."
EARLY_NOTE = "Trials that were stopped early come after all that trained to their end, with their value at that step."
MINUTES_NOTE = "Minutes are those of training and evaluation in the runs' logs, also of trials that ran side by side."


def trial_table(entry: SweepEntry) -> Table:
    """List the trials, best first, with the values in which they differ."""
    table = Table("Trials", ["trial", *entry.varied, entry.metric, "steps", "state", "minutes", "notes"])
    for each in entry.results:
        table.rows.append(
            [
                Cell(str(each.trial.number), each.trial.number),
                *(option_cell(each, name) for name in entry.varied),
                Cell("") if math.isnan(each.value) else Cell(shown_value(entry, each), each.value),
                Cell(f"{each.step:,} of {each.steps:,}", each.step) if each.steps else Cell(""),
                Cell(each.state),
                minutes_cell(each.seconds),
                Cell(trial_note(each)),
            ]
        )
    table.notes = [*entry.notes]
    if any(not math.isnan(each.value) for each in entry.results):
        early = [EARLY_NOTE] if any(each.state == EARLY for each in entry.results) else []
        table.notes.insert(0, " ".join([METRIC_NOTES.get(entry.metric, ""), INTERVAL_NOTE, *early]).strip())
        seeds = min(len(each.per_seed) for each in entry.results if each.per_seed)
        table.notes += [f"{text[0].upper()}{text[1:]}." for text in cautions(seeds, FEW_EPISODES)]
    return without_empty_columns(table)


def option_cell(result: Result, name: str) -> Cell:
    value = result.trial.values.get(name)
    return Cell(value_text(value), None if isinstance(value, bool) else option_number(value))


def trial_note(result: Result) -> str:
    failed = sum(map(math.isnan, result.per_seed))
    seeds = f"{failed} of {counted(len(result.per_seed), 'seed')} failed" if failed else ""
    return "; ".join(filter(None, [result.reason, seeds]))


def stopping_table(entry: SweepEntry) -> Table:
    """Count at each rung the trials that reached it and those that were stopped, and the steps that this saved."""
    table = Table("What early stopping cut", ["compared after", "trials", "stopped", "went on"])
    stops = {(row["rung"], row["number"]): row["stops"] for row in entry.rungs}
    for rung in sorted({rung for rung, _ in stops}):
        decisions = [stopped for (at, _), stopped in stops.items() if at == rung]
        counts = (len(decisions), sum(decisions), len(decisions) - sum(decisions))
        table.rows.append([Cell(counted(rung, "step")), *(Cell(str(count), count) for count in counts)])
    done = [each for each in entry.results if each.state in ("finished", EARLY)]
    trained, planned = sum(each.step for each in done), sum(each.steps for each in done)
    if table.rows and planned:
        table.lead = [
            f"{counted(len(done), 'trial')} trained {trained:,} steps in all, of {planned:,} without early stopping: "
            f"{100 * (1 - trained / planned):.0f} % of the steps were saved."
        ]
    elif entry.first_rung and not table.rows:
        table.notes = [f"No trial has been compared yet: that is after {counted(entry.first_rung, 'step')}."]
    return table


def cost_table(entry: SweepEntry) -> Table:
    """Add up the minutes of all trials, by how they ended."""
    table = Table("Cost", ["trials", "number", "steps", "minutes", "minutes per trial"])
    groups: dict[str, list[Result]] = {}
    for each in entry.results:
        groups.setdefault(each.state, []).append(each)
    groups |= {"with fresh seeds": entry.again, "all": [*entry.results, *entry.again]}
    for name, members in groups.items():
        ran = [each for each in members if each.step]
        if ran:
            steps, seconds = sum(each.step for each in ran), sum(each.seconds for each in ran)
            counts = [Cell(str(len(ran)), len(ran)), Cell(f"{steps:,}", steps)]
            table.rows.append([Cell(name), *counts, minutes_cell(seconds), minutes_cell(seconds / len(ran))])
    table.notes = [MINUTES_NOTE] if table.rows else []
    return table


def minutes_cell(seconds: float) -> Cell:
    minutes = seconds / 60
    text = f"{minutes:,.1f}" if minutes >= 1 else f"{minutes:.2g}"
    return Cell(text, minutes) if 0 < minutes < math.inf else Cell("")


def shown_value(entry: SweepEntry, result: Result) -> str:
    """Write the metric of a trial: the mean over seeds, with its interval."""
    interval, places = mean_interval(np.array(result.per_seed)), digits(entry)
    text = number_text(interval.value, places)
    ends = [number_text(end, places) for end in (interval.low, interval.high)]
    return text if math.isnan(interval.low) else f"{text} [{', '.join(ends)}]"


def number_text(value: float, places: int) -> str:
    return f"{value:.{places}f}" if abs(value) < LARGEST_PLAIN else f"{value:.4g}"


def digits(entry: SweepEntry) -> int:
    """Choose the digits after the point: so many that the best value has three digits."""
    best = next((abs(each.value) for each in entry.results if math.isfinite(each.value)), 0.0)
    return min(6, max(1, 2 - math.floor(math.log10(best)))) if best else 1
