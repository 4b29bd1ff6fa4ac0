"""Tables of runs on logs: whether the policy is better than the log, and the losses on held-out episodes."""

from edp.report.collect import Entry
from edp.report.markup import Cell, Table, exact_cell, without_empty_columns
from edp.report.offline import Verdict
from edp.report.series import DISTANCE, Series
from edp.runs.scores import nan_mean

LOSS = "bc_loss"
ABOUT = ["run", "data", "method", "after"]
VERDICT_NOTE = "Estimated from the data alone. The difference is the policy's value less the log's, with its interval."
VALUE_NOTE = (
    "Estimated from the data alone, as a mean over seeds, by a version that gave no verdict. It is for ranking "
    "checkpoints and runs on the same data."
)
LOSS_NOTE = (
    "bc_loss tells how well the policy imitates the log: much more on held-out episodes than in training means "
    "overfitting. The action distance of the policy from the log is in standard deviations: 0 if they act the same, "
    "1.4 if the actions are as if drawn from the log at random. Neither tells how well the policy would act"
)


def about_cells(entry: Entry, step: int) -> list[Cell]:
    return [Cell(entry.name), Cell(entry.task), Cell(entry.method), Cell(entry.made_after(step), step)]


def verdict_table(entries: list[Entry]) -> Table:
    """List the verdicts on the policies: a sentence for each, and the numbers behind it."""
    numbers = ["policy", "log", "difference", "operators", "unit"]
    table = Table("Better than the log?", [*ABOUT, "verdict", *numbers])
    for entry in entries:
        value = entry.last_offline
        if not entry.damage and value and value.verdict:
            table.rows.append([*about_cells(entry, value.step), *verdict_cells(value.verdict)])
            table.lead.append(f"{entry.name}: {value.verdict.sentence}")
    table.notes = [VERDICT_NOTE] if table.rows else []
    return without_empty_columns(table)


def verdict_cells(verdict: Verdict) -> list[Cell]:
    low, mean, high = verdict.difference or (None, None, None)
    difference = Cell("") if mean is None else Cell(f"{mean:+.4g} [{low:+.4g}, {high:+.4g}]", mean)
    operators = Cell(", ".join(f"{name} {number:.4g}" for name, number in verdict.operators.items()))
    return [
        Cell(verdict.word),
        exact_cell(verdict.policy),
        exact_cell(verdict.log),
        difference,
        operators,
        Cell(verdict.unit),
    ]


def value_table(entries: list[Entry]) -> Table:
    """List the values of the policies that have no verdict."""
    table = Table("Values estimated from the data", [*ABOUT, "value"])
    for entry in entries:
        value = entry.last_offline
        if not entry.damage and value and not value.verdict:
            table.rows.append([*about_cells(entry, value.step), exact_cell(nan_mean(value.values))])
    table.notes = [VALUE_NOTE] if table.rows else []
    return table


def held_out_table(entries: list[Entry]) -> Table:
    """List the last losses on held-out episodes of runs without scores."""
    table = Table("Losses on held-out episodes", [*ABOUT, f"{LOSS} in training", f"{LOSS} held out", DISTANCE])
    for entry in entries:
        if not entry.damage and entry.curve is None and LOSS in entry.held_out:
            step = entry.held_out[LOSS].steps[-1]
            shown = (entry.losses.get(LOSS), entry.held_out[LOSS], entry.held_out.get(DISTANCE))
            table.rows.append([*about_cells(entry, step), *(exact_cell(value_at(series, step)) for series in shown)])
    if table.rows:
        valued = any(entry.offline for entry in entries)
        table.notes = [LOSS_NOTE + ("." if valued else "; edp eval RUN --offline estimates that.")]
    return without_empty_columns(table)


def value_at(series: Series | None, step: int) -> float | None:
    """Look up the mean of a series at the last of its steps that is not after this one."""
    before = [mean for at, mean in zip(series.steps, series.mean, strict=True) if at <= step] if series else []
    return before[-1] if before else None
