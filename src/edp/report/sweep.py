"""The part of a report that is about a sweep: tables and figures, in the order in which they are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from edp.report.markup import Table
from edp.report.sweep_figures import option_figures, parallel_figure
from edp.report.sweep_importance import importance_table
from edp.report.sweep_results import SweepEntry
from edp.report.sweep_tables import cost_table, stopping_table, trial_table
from edp.report.sweep_winner import fresh_table, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIONS_NOTE = (
    "A point is a trial, at the mean over its seeds; the line through it reaches from the lowest to the highest seed. "
    "Hollow points did not train to their end, so they cannot be compared with the others directly."
)
PARALLEL_NOTE = "A line is a trial, the darker the better. Lines of trials that did not train to their end are dashed."
GAP_NOTE = " Lines have gaps where trials do not have an option."


class Part(NamedTuple):
    """A table with figures, by name. Either may be empty."""

    table: Table
    figures: Mapping[str, "Figure"] = {}
    wide: bool = False  # the figure needs the width of the page


def sweep_parts(entry: SweepEntry, with_figures: bool = True) -> list[Part]:
    """Build all that is shown of a sweep."""
    if entry.damage:
        return [Part(Table("Trials", [], notes=[f"The sweep cannot be shown: {entry.damage}."]))]
    parts = [Part(replace(trial_table(entry), lead=verdict(entry))), Part(fresh_table(entry))]
    if with_figures:
        parts += figure_parts(entry)
    if len(entry.varied) > 1:
        parts.append(Part(importance_table(entry)))
    parts += [Part(stopping_table(entry)), Part(cost_table(entry))]
    return [part for part in parts if part.table.rows or part.table.notes or part.table.lead]


def figure_parts(entry: SweepEntry) -> list[Part]:
    """Draw the figures of a sweep, each with a note that explains it."""
    options, parallel, parts = option_figures(entry), parallel_figure(entry), []
    if options:
        parts.append(Part(Table("Each option", [], notes=[OPTIONS_NOTE]), options))
    if parallel:
        gaps = any(name not in each.trial.values for each in entry.results for name in entry.varied)
        note = PARALLEL_NOTE + GAP_NOTE * gaps
        parts.append(Part(Table("All options together", [], notes=[note]), {"options": parallel}, wide=True))
    return parts


def sweep_tables(sweeps: Mapping[str, Sequence[Part]]) -> list[Table]:
    """List the tables of sweeps, each with the name of its sweep in its title."""
    tables = [(name, part.table) for name, parts in sweeps.items() for part in parts]
    return [replace(table, title=f"Sweep {name}: {table.title[0].lower()}{table.title[1:]}") for name, table in tables]


def sweep_figures(sweeps: Mapping[str, Sequence[Part]]) -> "dict[str, Figure]":
    """List the figures of sweeps by the names of their files."""
    return {
        f"sweep-{name}-{key}": figure
        for name, parts in sweeps.items()
        for part in parts
        for key, figure in part.figures.items()
    }
