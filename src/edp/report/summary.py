"""Tables of runs: scores of every method on every task beside the paper's, and what differs between runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from edp.data import tasks
from edp.report.collect import PARTS, Entry
from edp.report.columns import printed_scores
from edp.runs.scores import Interval, mean_interval


class Cell(NamedTuple):
    """A number as it is shown, and as it is sorted."""

    text: str
    value: float | None = None


@dataclass
class Table:
    """For a page, for Markdown and for LaTeX alike."""

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    across: bool = False  # its columns are alike, and can be sorted, too

    def of_numbers(self, column: int) -> bool:
        return any(row[column].value is not None for row in self.rows)


class Group(NamedTuple):
    """Runs of the same method, with the same options, on the same task."""

    task: str
    method: str  # with what sets it apart, where a method was run with several options
    entries: list[Entry]


OF_SEEDS = ("training.seeds", "training.seed")


def grouped(entries: list[Entry]) -> list[Group]:
    methods: dict[tuple[str, str, str], dict[str, list[Entry]]] = {}
    for entry in entries:
        if not entry.damage:
            alike = methods.setdefault((entry.task, entry.algorithm, entry.policy), {})
            alike.setdefault(json.dumps(options_of(entry), sort_keys=True), []).append(entry)
    found = []
    for (task, algorithm, policy), alike in sorted(methods.items()):
        options = [options_of(group[0]) for group in alike.values()]
        apart = [name for name in options[0] if len({repr(each.get(name)) for each in options}) > 1]
        for group, each in zip(alike.values(), options, strict=True):
            detail = ", ".join(f"{name.partition('.')[2]} {shown(each.get(name))}" for name in apart[:3])
            found.append(Group(task, f"{algorithm} + {policy}" + (f" ({detail})" if detail else ""), group))
    return found


def options_of(entry: Entry) -> dict[str, Any]:
    flat = flatten({key: entry.config.get(key) for key in PARTS})
    return {name: value for name, value in flat.items() if name not in OF_SEEDS}


def scores(entries: list[Entry]) -> Table:
    """RAT and OMS of every method on every task, over all seeds of its runs."""
    columns = ["task", "method", "RAT", "OMS", "paper: average", "paper: best", "steps", "seeds", "evaluations"]
    table = Table("Scores", columns)
    for task, method, group in grouped(entries):
        curves = [entry.curve for entry in group if entry.curve is not None]
        rat, oms = (over_seeds(group, name) for name in ("rat", "oms"))
        printed = printed_scores(group[0])
        steps = sorted({entry.steps for entry in group})
        seeds = sum(curve.scores.shape[1] for curve in curves) if curves else sum(entry.seeds for entry in group)
        counts = sorted({len(curve.steps) for curve in curves}) or [0]
        table.rows.append(
            [
                Cell(task),
                Cell(method),
                interval_cell(rat),
                interval_cell(oms),
                number_cell(printed.rat),
                number_cell(printed.oms),
                range_cell(steps),
                Cell(str(seeds), seeds),
                range_cell(counts),
            ]
        )
    table.notes = [
        "RAT is the mean of the last ten evaluations (or of all, if there are fewer), OMS the best one; both are means "
        "over seeds with their 95 % confidence intervals (Student's t; none for one seed).",
    ]
    own = sorted({group[0].task for _, _, group in grouped(entries) if measure(group) == "return"})
    if own:
        table.notes.append(f"Scores are normalised, but for {', '.join(own)}: those are returns.")
    return table


def range_cell(numbers: list[int]) -> Cell:
    """Of several runs, from the least to the most."""
    return Cell(" to ".join(f"{number:,}" for number in dict.fromkeys((numbers[0], numbers[-1]))), numbers[-1])


def over_seeds(group: list[Entry], name: str) -> Interval | None:
    """The mean of ``rat`` or ``oms`` over all seeds of some runs."""
    curves = [entry.curve for entry in group if entry.curve is not None]
    return mean_interval(np.concatenate([getattr(curve, name) for curve in curves])) if curves else None


def measure(runs: list[Entry]) -> str:
    """What a score is: that of D4RL or Minari, or, where data of one's own has no references, the return."""
    ends = [(entry.config.get("own_task") or {}).get(name) for entry in runs for name in ("min_return", "max_return")]
    return "return" if ends == list(tasks.UNSCALED) * len(runs) else "normalised score"


def side_by_side(entries: list[Entry]) -> Table:
    """RAT with a row for each task and a column for each method, if there are several of both, or of methods."""
    found = {(task, method): over_seeds(group, "rat") for task, method, group in grouped(entries)}
    found = {key: rat for key, rat in found.items() if rat is not None and not np.isnan(rat.value)}
    tasks_, methods = (list(dict.fromkeys(key[i] for key in sorted(found))) for i in (0, 1))
    table = Table("Methods side by side", ["RAT", *methods], across=True)
    if len(methods) > 1:
        cells = [[interval_cell(found.get((task, method))) for method in methods] for task in tasks_]
        table.rows = [[Cell(task), *row] for task, row in zip(tasks_, cells, strict=True)]
    return table


def interval_cell(found: Interval | None) -> Cell:
    if found is None or np.isnan(found.value):
        return Cell("")
    return Cell(str(found), round(found.value, 3))


def number_cell(value: float | None) -> Cell:
    return Cell("") if value is None else Cell(f"{value:.1f}", value)


def tables(entries: list[Entry], between: Sequence[Table] = ()) -> list[Table]:
    """What every report begins with, ``between`` before the list of runs."""
    first = without_empty(scores(entries), ("paper: average", "paper: best"))
    found = [first, side_by_side(entries), *between, runs(entries)]
    return [table for table in found if table.rows or table.notes]


def without_empty(table: Table, names: Sequence[str]) -> Table:
    """The table without those of these columns that say nothing."""
    kept = [i for i, name in enumerate(table.columns) if name not in names or any(row[i].text for row in table.rows)]
    rows = [[row[i] for i in kept] for row in table.rows]
    return replace(table, columns=[table.columns[i] for i in kept], rows=rows)


def runs(entries: list[Entry]) -> Table:
    """Every run, damaged ones with what is wrong."""
    table = Table("Runs", ["run", "task", "method", "seeds", "steps", "state", "notes"])
    for entry in entries:
        if entry.damage:
            table.rows.append([Cell(entry.name), *[Cell("")] * 4, Cell("damaged"), Cell(entry.damage)])
            continue
        state = entry.state + (f": {entry.reason}" if entry.reason else "")
        share = f"{entry.steps:,} of {entry.budget:,}"
        cells = [Cell(entry.name), Cell(entry.task), Cell(entry.method), Cell(str(entry.seeds), entry.seeds)]
        table.rows.append([*cells, Cell(share, entry.steps), Cell(state), Cell("; ".join(entry.notes))])
    return table


VERSIONS = ("packages", "python", "device", "commit")
SHOWN = (*PARTS, *VERSIONS, "file")


def differences(entries: list[Entry]) -> Table:
    """Options and versions, but only those that are not the same in all runs."""
    known = [entry for entry in entries if not entry.damage]
    flat = {entry.name: flatten({key: entry.config.get(key) for key in SHOWN}) for entry in known}
    names = dict.fromkeys(name for values in flat.values() for name in values)
    differing = [name for name in names if len({repr(values.get(name)) for values in flat.values()}) > 1]
    table = Table("What differs between the runs", ["run", *differing])
    if differing:
        table.rows = [
            [Cell(run), *(Cell(shown(values.get(name)), as_number(values.get(name))) for name in differing)]
            for run, values in flat.items()
        ]
    elif len(known) > 1:
        table.notes = ["Nothing: all have the same options and versions."]
    return table


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {name: leaf for key, part in value.items() for name, leaf in flatten(part, f"{prefix}{key}.").items()}
    return {prefix.rstrip("."): value}


def shown(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def as_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None


def versions(entries: list[Entry]) -> str:
    """What all runs were made with, as far as it is the same."""
    known = [flatten({key: entry.config.get(key) for key in VERSIONS}) for entry in entries if not entry.damage]
    same = {name: value for name, value in (known or [{}])[0].items() if all(each.get(name) == value for each in known)}
    return ", ".join(f"{name.removeprefix('packages.')} {shown(value)}" for name, value in same.items() if value)


def commands(entries: list[Entry]) -> list[tuple[str, str]]:
    """How each run was made."""
    found = []
    for entry in entries:
        words = entry.config.get("command") if not entry.damage else None
        if isinstance(words, list) and words:
            found.append((entry.name, " ".join(quoted(str(word)) for word in words)))
    return found


def quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


def markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", row_text(table.columns), row_text(["---"] * len(table.columns))]
    lines += [row_text([cell.text for cell in row]) for row in table.rows]
    return "\n".join([*lines, "", *map(marked, table.notes), ""])


MARKS = {**{char: f"\\{char}" for char in "\\|*`"}, "&": "&amp;", "<": "&lt;"}


def row_text(cells: list[str]) -> str:
    return f"| {' | '.join(map(marked, cells))} |"


def marked(text: str) -> str:
    """Text stays text: nothing in it is taken for Markdown's marks, or for HTML."""
    return "".join(MARKS.get(char, char) for char in on_one_line(text)).replace("](", "]\\(")


def on_one_line(text: str) -> str:
    """Without line breaks and what else no terminal or page should be sent."""
    return "".join(char if char.isprintable() else " " * (char in "\n\t") for char in text)


SPECIAL = {
    "\\": r"\textbackslash{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "—": "---",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
WIDE = 8  # columns that fit on a page


def latex(table: Table) -> str:
    """A table in the style of the paper's (booktabs); a wide one is made as small as the page (graphicx)."""
    kinds = ["r" if table.of_numbers(i) else "l" for i in range(len(table.columns))]
    small, end = ([r"\resizebox{\textwidth}{!}{%"], ["}"]) if len(kinds) > WIDE else ([], [])
    lines = [
        r"\begin{table}",
        rf"\caption{{{escaped(table.title)}}}",
        *small,
        rf"\begin{{tabular}}{{{''.join(kinds)}}}",
    ]
    lines += [r"\toprule", " & ".join(map(escaped, table.columns)) + r" \\", r"\midrule"]
    lines += [" & ".join(escaped(cell.text) for cell in row) + r" \\" for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}", *end, r"\end{table}"]
    lines += [f"% {on_one_line(note)}" for note in table.notes]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    done = "".join(SPECIAL.get(char, char) for char in on_one_line(text))
    return (
        f"{{{done[0]}}}{done[1:]}" if done.startswith(("[", "*")) else done
    )  # or it would be the row's end's argument
