"""Which trial of a sweep is best, and what is left of its lead with fresh seeds."""

import math
from typing import NamedTuple

import numpy as np

from edp.errors import counted
from edp.report.markup import Cell, Table, without_empty_columns
from edp.report.statistics import mean_interval
from edp.report.sweep_results import SweepEntry, describe_trial
from edp.report.sweep_tables import digits, number_text, option_cell, shown_value, trial_note
from edp.runs.trial_results import Result

SELECTION = (
    "The value in the sweep was chosen because it was the best, and a value that is chosen so is on average too good "
    "(selection bias): luck with the seeds helps to be the best. The value with fresh seeds is the one to expect."
)


class Choice(NamedTuple):
    """The trial that came out best, and what is known of it."""

    best: Result
    fresh: Result | None  # the same settings with fresh seeds
    rival: Result | None  # the best of the others, with fresh seeds if it has them

    def is_confirmed(self, sign: int) -> bool:
        """Whether the trial is, with fresh seeds, at least as good as all others."""
        return self.fresh is not None and (self.rival is None or sign * self.fresh.value >= sign * self.rival.value)


def choose(entry: SweepEntry) -> Choice | None:
    """Find the best trial: the best with fresh seeds, or else the best of the sweep; None if none is at its end."""
    fresh = {each.trial.again: each for each in entry.again if each.state == "finished" and not math.isnan(each.value)}
    repeated = [each for each in entry.finished if each.trial.number in fresh]
    if not entry.finished or not repeated:
        return Choice(entry.finished[0], None, None) if entry.finished else None
    latest = {each.trial.number: fresh.get(each.trial.number, each) for each in entry.finished}
    best = max(repeated, key=lambda each: entry.sign * latest[each.trial.number].value)
    fresh_best = latest.pop(best.trial.number)
    rival = max(latest.values(), key=lambda each: entry.sign * each.value, default=None)
    return Choice(best, fresh_best, rival)


def verdict(entry: SweepEntry) -> list[str]:
    """Say which trial is best on each data set. It is called the winner only if fresh seeds confirm it."""
    return [text for part in entry.by_data() for text in verdict_on_one(part)]


def verdict_on_one(entry: SweepEntry) -> list[str]:
    """Say which trial is best, of trials on the same data."""
    choice, trials = choose(entry), counted(len(entry.results), "trial")
    if choice is None:
        return ["No trial has a result at its end so far."] if entry.results else ["No trial has begun."]
    name, before = describe_trial(entry, choice.best.trial), shown_value(entry, choice.best)
    if choice.fresh is None:
        done = all(each.is_done for each in entry.results)
        text = f"The best of {trials}{'' if done else ' so far'} is {name}, with a {entry.measure} of {before}."
        return [text, "It was not trained again with fresh seeds, so it is not known how much of that is luck."]
    after, chance = shown_value(entry, choice.fresh), comparison(entry, choice)
    if choice.rival is None and len(entry.results) > 1:
        text = f"Only {name} trained to its end. With fresh seeds, its {entry.measure} is {after}; in the sweep it was"
        return [f"{text} {before}. Trials that were stopped early cannot be compared with it."]
    if choice.is_confirmed(entry.sign):
        text = f"The winner is {name}. With fresh seeds, its {entry.measure} is {after}; in the sweep it was {before}."
        return [text, *filter(None, [chance])]
    return [f"No trial is confirmed as the best. {name[0].upper()}{name[1:]} had {before} in the sweep. {chance}"]


def comparison(entry: SweepEntry, choice: Choice) -> str:
    """Compare the best trial's value with fresh seeds to that of the best other trial."""
    if choice.fresh is None or choice.rival is None:
        return ""
    rival, interval = choice.rival, mean_interval(np.array(choice.fresh.per_seed))
    number = rival.trial.number if rival.trial.again is None else rival.trial.again
    text = f"trial {number} with {number_text(rival.value, digits(entry))}"
    if not choice.is_confirmed(entry.sign):
        return f"With fresh seeds it has {shown_value(entry, choice.fresh)}, and is not better than {text}."
    if not interval.low <= rival.value <= interval.high and not math.isnan(interval.low):
        return ""
    why = "one seed has no interval" if math.isnan(interval.low) else "the interval of the first includes that"
    return f"The second is {text}. Since {why}, it is not certain which of the two is better."


def fresh_table(entry: SweepEntry) -> Table:
    """List the trials that were trained again with fresh seeds: both values, and their difference."""
    columns = ["trial", *entry.varied, "in the sweep", "with fresh seeds", "difference", "state", "notes"]
    table, first = Table("Trained again with fresh seeds", columns), {each.trial.number: each for each in entry.results}
    places = digits(entry)
    for each in entry.again:
        before = first[int(each.trial.again or 0)]
        change = each.value - before.value if each.state == "finished" else math.nan
        values = [
            Cell("") if math.isnan(one.value) else Cell(shown_value(entry, one), one.value) for one in (before, each)
        ]
        table.rows.append(
            [
                Cell(str(before.trial.number), before.trial.number),
                *(option_cell(before, name) for name in entry.varied),
                *values,
                Cell("")
                if math.isnan(change)
                else Cell(f"{'+' if change >= 0 else ''}{number_text(change, places)}", change),
                Cell(each.state),
                Cell(trial_note(each)),
            ]
        )
    if table.rows:
        several = " Where several trials are trained again, the best of them is again chosen, from fewer."
        table.notes = [SELECTION + several * (len(table.rows) > 1)]
    return without_empty_columns(table)
