"""Tables of runs: scores of every method on every task beside the paper's, and what differs between runs."""

import json
import shlex
from typing import Any, NamedTuple

import numpy as np

from edp.data import tasks
from edp.report.collect import PARTS, Entry
from edp.report.log_tables import held_out_table, value_table, verdict_table
from edp.report.markup import Cell, Table, number_cell, without_empty_columns
from edp.report.published import published_scores_like
from edp.report.statistics import Interval, mean_interval
from edp.runs.sweep import is_again

SEED_OPTIONS = ("training.seeds", "training.seed")
VERSIONS = ("packages", "python", "device", "commit")
COMPARED_PARTS = (*PARTS, *VERSIONS, "file")  # parts of a config
PUBLISHED_COLUMNS = ("paper: average", "paper: best")


class Group(NamedTuple):
    """Runs of the same method, with the same options, on the same task."""

    task: str
    method: str  # with the options that differ, where a method was run with several
    entries: list[Entry]


def result_tables(entries: list[Entry]) -> list[Table]:
    """Build the tables that every report begins with: scores, and what there is of runs without an environment."""
    tables = [without_empty_columns(score_table(entries)), method_table(entries)]
    tables += [verdict_table(entries), value_table(entries), held_out_table(entries)]
    return [table for table in tables if table.rows or table.notes]


def group_runs(entries: list[Entry]) -> list[Group]:
    methods: dict[tuple[str, str, str], dict[str, list[Entry]]] = {}
    for entry in entries:
        if not entry.damage:
            same_method = methods.setdefault((entry.task, entry.algorithm, entry.policy), {})
            same_method.setdefault(json.dumps(method_options(entry), sort_keys=True), []).append(entry)
    groups = []
    for (task, algorithm, policy), same_method in sorted(methods.items()):
        options = [method_options(members[0]) for members in same_method.values()]
        differing = [name for name in options[0] if len({repr(each.get(name)) for each in options}) > 1]
        for members, each in zip(same_method.values(), options, strict=True):
            detail = ", ".join(f"{name.partition('.')[2]} {option_text(each.get(name))}" for name in differing[:3])
            groups.append(Group(task, f"{algorithm} + {policy}" + (f" ({detail})" if detail else ""), members))
    return groups


def method_options(entry: Entry) -> dict[str, Any]:
    flat = flat_options({key: entry.config.get(key) for key in PARTS})
    seeds = {"sweep.seeds": "fresh" if is_again(entry.folder) else "first"}  # those that chose it do not count twice
    return seeds | {name: value for name, value in flat.items() if name not in SEED_OPTIONS}


def score_table(entries: list[Entry]) -> Table:
    """Build the table of RAT and OMS of every method on every task, over all seeds of its runs that have scores."""
    columns = ["task", "method", "RAT", "OMS", *PUBLISHED_COLUMNS, "steps", "seeds", "evaluations"]
    table = Table("Scores", columns)
    groups = group_runs([entry for entry in entries if has_scores(entry)])
    for task, method, members in groups:
        curves = [entry.curve for entry in members if entry.curve is not None]
        rat, oms = (score_interval(members, measure) for measure in ("rat", "oms"))
        published = published_scores_like(members[0])
        seeds = sum(curve.scores.shape[1] for curve in curves)
        table.rows.append(
            [
                Cell(task),
                Cell(method),
                interval_cell(rat),
                interval_cell(oms),
                number_cell(published.rat),
                number_cell(published.oms),
                range_cell(sorted({int(curve.steps[-1]) for curve in curves})),
                Cell(str(seeds), seeds),
                range_cell(sorted({len(curve.steps) for curve in curves})),
            ]
        )
    table.notes = score_notes(entries, groups) if groups else []
    return table


def has_scores(entry: Entry) -> bool:
    return not entry.damage and entry.curve is not None and not np.isnan(entry.curve.scores).all()


def score_notes(entries: list[Entry], groups: list[Group]) -> list[str]:
    """Explain the table of scores."""
    notes = [
        "RAT is the mean of the last ten evaluations (or of all, if there are fewer), OMS the best one; both are means "
        "over seeds with their 95 % confidence intervals (Student's t; none for one seed). Steps are those of the last "
        "evaluation.",
    ]
    returns = sorted({group.task for group in groups if score_kind(group.entries) == "return"})
    if len(returns) == len({group.task for group in groups}):
        notes.append("Scores are returns.")
    elif returns:
        notes.append(f"Scores are normalised, except on {', '.join(returns)}, where they are returns.")
    missing = [entry.name for entry in entries if not entry.damage and entry.has_environment and not has_scores(entry)]
    if missing:
        notes.append(f"Without a score so far: {', '.join(missing)}.")
    return notes


def score_interval(entries: list[Entry], measure: str) -> Interval | None:
    """Compute the mean of ``rat`` or ``oms`` over all seeds of some runs; None if there are no evaluations."""
    curves = [entry.curve for entry in entries if entry.curve is not None]
    return mean_interval(np.concatenate([getattr(curve, measure) for curve in curves])) if curves else None


def score_kind(runs: list[Entry]) -> str:
    """Name what a score is: a normalised score, or the return where the user's data has no reference returns."""
    ends = [entry.own_task.get(name) for entry in runs for name in ("min_return", "max_return")]
    return "return" if ends == list(tasks.UNSCALED) * len(runs) else "normalised score"


def method_table(entries: list[Entry]) -> Table:
    """Build the table of RAT with a row for each task and a column for each method; empty for a single method."""
    scores = {(task, method): score_interval(members, "rat") for task, method, members in group_runs(entries)}
    scores = {key: rat for key, rat in scores.items() if rat is not None and not np.isnan(rat.value)}
    names, methods = (list(dict.fromkeys(key[i] for key in sorted(scores))) for i in (0, 1))
    table = Table("Methods side by side", ["RAT", *methods], across=True)
    if len(methods) > 1:
        cells = [[interval_cell(scores.get((task, method))) for method in methods] for task in names]
        table.rows = [[Cell(task), *row] for task, row in zip(names, cells, strict=True)]
    return table


def interval_cell(interval: Interval | None) -> Cell:
    if interval is None or np.isnan(interval.value):
        return Cell("")
    return Cell(str(interval), round(interval.value, 3))


def range_cell(numbers: list[int]) -> Cell:
    """Show the lowest and the highest of sorted numbers."""
    return Cell(" to ".join(f"{number:,}" for number in dict.fromkeys((numbers[0], numbers[-1]))), numbers[-1])


def run_table(entries: list[Entry]) -> Table:
    """List every run; damaged ones with the error."""
    table = Table("Runs", ["run", "task", "method", "seeds", "steps", "state", "notes"])
    for entry in entries:
        if entry.damage:
            table.rows.append([Cell(entry.name), *[Cell("")] * 4, Cell("damaged"), Cell(entry.damage)])
            continue
        state = entry.state + (f": {entry.reason}" if entry.reason else "")
        share = f"{entry.steps:,} of {entry.budget:,}"
        cells = [Cell(entry.name), Cell(entry.task), Cell(entry.method), Cell(str(entry.seeds), entry.seeds)]
        table.rows.append([*cells, Cell(share, entry.steps), Cell(state), Cell("; ".join(entry.notes))])
    return without_empty_columns(table)


def difference_table(entries: list[Entry]) -> Table:
    """List the options and versions that are not the same in all runs."""
    known = [entry for entry in entries if not entry.damage]
    flat = {entry.name: flat_options({key: entry.config.get(key) for key in COMPARED_PARTS}) for entry in known}
    names = dict.fromkeys(name for values in flat.values() for name in values)
    differing = [name for name in names if len({repr(values.get(name)) for values in flat.values()}) > 1]
    table = Table("What differs between the runs", ["run", *differing])
    if differing:
        table.rows = [
            [Cell(run), *(Cell(option_text(values.get(name)), option_number(values.get(name))) for name in differing)]
            for run, values in flat.items()
        ]
    elif len(known) > 1:
        table.notes = ["Nothing: all have the same options and versions."]
    return table


def flat_options(value: Any, prefix: str = "") -> dict[str, Any]:
    """Turn nested dictionaries into one, with keys joined by dots."""
    if isinstance(value, dict):
        return {
            name: leaf for key, part in value.items() for name, leaf in flat_options(part, f"{prefix}{key}.").items()
        }
    return {prefix.rstrip("."): value}


def option_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def option_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None


def common_versions(entries: list[Entry]) -> str:
    """List the versions that are the same in all runs."""
    known = [flat_options({key: entry.config.get(key) for key in VERSIONS}) for entry in entries if not entry.damage]
    same = {name: value for name, value in (known or [{}])[0].items() if all(each.get(name) == value for each in known)}
    return ", ".join(f"{name.removeprefix('packages.')} {option_text(value)}" for name, value in same.items() if value)


def run_commands(entries: list[Entry]) -> list[tuple[str, str]]:
    """List the command that made each run, beside the run's name."""
    commands = []
    for entry in entries:
        words = entry.config.get("command") if not entry.damage else None
        if isinstance(words, list) and words:
            commands.append((entry.name, shlex.join(map(str, words))))
    return commands
