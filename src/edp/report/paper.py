"""The paper's tables, with the numbers of runs beside the paper's; where there is no run, the cell is empty."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np

from edp.config.presets import DOMAINS
from edp.data import tasks
from edp.report.collect import Entry
from edp.report.columns import COLUMNS, Ours, matches
from edp.report.published import TABLES
from edp.report.summary import Cell, Table, interval_cell, number_cell
from edp.runs.scores import mean_interval

TITLES = {
    "domains": "Table 1: Diffusion-QL and EDP by domain (best scores)",
    "overall": "Table 2: all algorithms (average scores)",
    "action_approximation": "Table 3: the effect of action approximation (best scores, K = 100)",
    "hyperparameters": "Table 4: hyper-parameters",
    "reproduce": "Table 5: Diffusion-QL and EDP (best scores)",
    "best_and_average": "Table 6: best and average scores of EDP",
    "td3_eas": "Table 7: TD3 with energy-based action selection",
    "speed": "Figure 2: speed",
}
SLIPS = {
    "overall": "The paper's column of feed-forward CRR repeats that of CQL, but for AntMaze.",
    "best_and_average": "The paper's column “TD3 best” repeats other rows in kitchen, pen and AntMaze; EDP with IQL "
    "has a best below its average in two rows of locomotion; and its average of “IQL best” in AntMaze is not that of "
    "the rows, which is 80.8.",
}
PEN = (
    "Pen is v0 in some of the paper's tables and v1 in others; each is compared with runs on the version that it names."
)
OURS = (
    "Ours: runs here with these methods and options on the task's own file, over their seeds, whatever their number of "
    "steps; empty: none."
)
PRESETS = {"edp": "EDP", "edp-without-dpm": "EDP without DPM", "edp-without-ap": "EDP without AP", "dql": "DQL (JAX)"}
# Of the paper's table of hyper-parameters: its columns, and the names of the options.
OPTIONS = {
    "learning rate": "lr",
    "gradient norm clipping": "clip",
    "loss weight": "loss_weight",
    "epochs": "steps",
    "batch size": "batch_size",
}
EPOCH = 1000  # steps


def tables(entries: list[Entry], bench: Path | None = None) -> list[Table]:
    """Every table of the paper in its order, and, with the result of ``edp bench``, its speeds."""
    overall, approximation, *others = (table(name, entries) for name in COLUMNS)
    found = [by_domain(others[0]), overall, approximation, hyperparameters(), *others]
    return [*found, speed(bench)] if bench else found


def table(name: str, entries: list[Entry]) -> Table:
    """The paper's numbers, each with ours behind it; averages follow the tasks of their domain."""
    content, ours = TABLES[name], COLUMNS[name]
    heads = [head for column in content["columns"] for head in (column, *(["ours"] if column in ours else []))]
    made, members = Table(f"The paper's {TITLES[name]}", ["task", *heads]), []
    for task, following in pairwise([*content["rows"], ""]):
        cells = [Cell(task)]
        for column, number in zip(content["columns"], content["rows"][task], strict=True):
            cells.append(number_cell(number))
            if column in ours:
                cells.append(ours_cell(ours[column], task, entries))
        made.rows.append(cells)
        members.append(cells)
        if (domain := domain_of(task)) != domain_of(following):
            if domain in content["averages"]:
                made.rows.append(average_row(members, domain, content["averages"][domain], content["columns"], ours))
            members = []
    with_pen = any(task.startswith("pen") for task in content["rows"])
    made.notes = [note for note in (SLIPS.get(name), with_pen and PEN, OURS) if note]
    return made


def domain_of(task: str) -> str:
    return tasks.TASKS[task].domain if task else ""


def by_domain(reproduced: Table) -> Table:
    """The averages of the comparison with Diffusion-QL alone."""
    rows = [[Cell(row[0].text.removesuffix(AVERAGE)), *row[1:]] for row in reproduced.rows if is_average(row)]
    return Table(f"The paper's {TITLES['domains']}", ["domain", *reproduced.columns[1:]], rows, [OURS])


def hyperparameters() -> Table:
    """The paper's, and what ``edp train`` does unless it is told otherwise."""
    content = TABLES["hyperparameters"]
    heads = [head for column in content["columns"] for head in (column, "ours")]
    made = Table(f"The paper's {TITLES['hyperparameters']}", ["domain", *heads])
    for domain, numbers in content["rows"].items():
        cells = [Cell(domain)]
        for column, number in zip(content["columns"], numbers, strict=True):
            own = DOMAINS[domain][OPTIONS[column]] / (EPOCH if column == "epochs" else 1)
            cells += [Cell(f"{value:g}", value) for value in (number, own)]
        made.rows.append(cells)
    made.notes.append("Ours: what `edp train` uses for tasks of the domain, unless it is told otherwise.")
    return made


def ours_cell(wanted: Ours, task: str, entries: list[Entry]) -> Cell:
    curves = [entry.curve for entry in entries if matches(entry, wanted, task) and entry.curve is not None]
    if not curves:
        return Cell("")
    return interval_cell(mean_interval(np.concatenate([getattr(curve, wanted.by) for curve in curves])))


AVERAGE = ", average"


def is_average(row: list[Cell]) -> bool:
    return row[0].text.endswith(AVERAGE)


def average_row(
    members: list[list[Cell]], domain: str, numbers: list, columns: list[str], ours: dict[str, Ours]
) -> list[Cell]:
    """The paper's averages of a domain; ours where every task of it has a run."""
    cells = [Cell(f"{domain}{AVERAGE}")]
    for column, number in zip(columns, numbers, strict=True):
        cells.append(number_cell(number))
        if column in ours:
            values = [row[len(cells)].value for row in members]
            cells.append(number_cell(None if None in values else float(np.mean(values))))  # pyright: ignore
    return cells


def speed(bench: Path) -> Table:
    """Steps a second, the paper's on its GPU and ours as ``edp bench --json`` measured them."""
    content = TABLES["speed"]
    made = Table(
        f"The paper's {TITLES['speed']}",
        ["variant", *(f"{row}{who}" for row in content["rows"] for who in ("", ", ours"))],
    )
    rates = bench_rates(bench)
    for i, column in enumerate(content["columns"]):
        preset = next((name for name, title in PRESETS.items() if title == column), "")
        cells = [Cell(column)]
        for row, what in zip(content["rows"], ("training", "acting"), strict=True):
            printed = content["rows"][row][i]
            cells += [Cell(f"{printed:g}", printed), number_cell(rates.get((preset, what)))]
        made.rows.append(cells)
    made.notes.append("The paper's machine had a GPU; compare ratios within a column, not the columns.")
    return made


def bench_rates(bench: Path) -> dict[tuple[str, str], float]:
    from edp.errors import UserError

    try:
        rows = json.loads(bench.read_text())["variants"]
        return {(row["name"], row["what"]): float(row["steps_per_second"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError(f"{bench}: not a result of edp bench --json ({error})") from None
