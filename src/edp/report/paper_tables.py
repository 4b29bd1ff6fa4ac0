"""The paper's tables, with the numbers of runs beside the paper's; where there is no run, the cell is empty."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from edp.config.presets import DOMAINS
from edp.data import tasks
from edp.report.collect import Entry
from edp.report.markup import Cell, Table, number_cell, without_empty_columns
from edp.report.published import COLUMNS, PUBLISHED_TABLES, PaperColumn, belongs_to
from edp.report.tables import interval_cell, score_interval

Rates = Mapping[tuple[str, str], float]  # steps a second by (variant, "training" or "acting")

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
    "overall": "The paper's column of feed-forward CRR repeats that of CQL, except on AntMaze.",
    "best_and_average": "The paper's column “TD3 best” repeats other rows in kitchen, pen and AntMaze; EDP with IQL "
    "has a best below its average in two rows of locomotion; and its average of “IQL best” in AntMaze is not that of "
    "the rows, which is 80.8.",
}
PEN = (
    "Pen is v0 in some of the paper's tables and v1 in others; each is compared with runs on the version that it names."
)
OURS = (
    "Ours: runs with these methods and options on the task's own file, over all their seeds, with any number of steps. "
    "Tasks without such a run are left out."
)
NO_RUNS = (
    "None of these runs can be put beside the paper's numbers: that takes a run on D4RL's own file of a task, with the "
    "paper's settings (--preset edp)."
)
AVERAGE = ", average"  # ends the name of a row of averages
VARIANTS = {"EDP": "edp", "EDP without DPM": "edp-without-dpm", "EDP without AP": "edp-without-ap", "DQL (JAX)": "dql"}
# Columns of the paper's table of hyper-parameters, and the names of our options.
HYPERPARAMETERS = {
    "learning rate": "lr",
    "gradient norm clipping": "clip",
    "loss weight": "loss_weight",
    "epochs": "steps",
    "batch size": "batch_size",
}
EPOCH = 1000  # steps


def paper_tables(entries: list[Entry], rates: Rates | None = None) -> list[Table]:
    """Build the tables of the paper that have a run beside them and, if ``rates`` were measured, that of speeds."""
    overall, approximation, *others = (paper_table(name, entries) for name in COLUMNS)
    scores = [with_runs(table) for table in (domain_table(others[0]), overall, approximation, *others)]
    tables = [table for table in scores if table.rows]
    if tables:
        tables = sorted([*tables, hyperparameter_table()], key=lambda table: table.title)
    else:
        tables = [Table("The paper's tables", [], notes=[NO_RUNS])]
    return [*tables, speed_table(rates)] if rates is not None else tables


def with_runs(table: Table) -> Table:
    """Keep the rows that have a run, and the columns that are not empty in them."""
    ours = [i for i, column in enumerate(table.columns) if column == "ours"]
    rows = [row for row in table.rows if any(row[i].text for i in ours)]
    return without_empty_columns(replace(table, rows=rows))


def paper_table(name: str, entries: list[Entry]) -> Table:
    """Build a table with the paper's numbers, ours after each; averages follow the tasks of their domain."""
    content, ours = PUBLISHED_TABLES[name], COLUMNS[name]
    heads = [head for column in content["columns"] for head in (column, *(["ours"] if column in ours else []))]
    table, members = Table(f"The paper's {TITLES[name]}", ["task", *heads]), []
    for task, following in pairwise([*content["rows"], ""]):
        cells = [Cell(task)]
        for column, number in zip(content["columns"], content["rows"][task], strict=True):
            cells.append(number_cell(number))
            if column in ours:
                cells.append(ours_cell(ours[column], task, entries))
        table.rows.append(cells)
        members.append(cells)
        if (domain := domain_of(task)) != domain_of(following):
            if domain in content["averages"]:
                table.rows.append(average_row(members, domain, content["averages"][domain], content["columns"], ours))
            members = []
    with_pen = any(task.startswith("pen") for task in content["rows"])
    table.notes = [note for note in (SLIPS.get(name), with_pen and PEN, OURS) if note]
    return table


def domain_of(task: str) -> str:
    return tasks.TASKS[task].domain if task else ""


def ours_cell(column: PaperColumn, task: str, entries: list[Entry]) -> Cell:
    runs = [entry for entry in entries if belongs_to(entry, column, task)]
    return interval_cell(score_interval(runs, column.measure))


def average_row(
    members: list[list[Cell]], domain: str, numbers: list, columns: list[str], ours: dict[str, PaperColumn]
) -> list[Cell]:
    """Build the row with the paper's averages of a domain, and ours where every task of the domain has a run."""
    cells = [Cell(f"{domain}{AVERAGE}")]
    for column, number in zip(columns, numbers, strict=True):
        cells.append(number_cell(number))
        if column in ours:
            values = [row[len(cells)].value for row in members]
            cells.append(number_cell(None if None in values else float(np.mean(values))))  # pyright: ignore
    return cells


def domain_table(reproduced: Table) -> Table:
    """Build the table of the averages alone from the comparison with Diffusion-QL."""
    averages = [row for row in reproduced.rows if row[0].text.endswith(AVERAGE)]
    rows = [[Cell(row[0].text.removesuffix(AVERAGE)), *row[1:]] for row in averages]
    return Table(f"The paper's {TITLES['domains']}", ["domain", *reproduced.columns[1:]], rows, [OURS])


def hyperparameter_table() -> Table:
    """Build the table of the paper's hyper-parameters with those of the preset ``edp`` beside them."""
    content = PUBLISHED_TABLES["hyperparameters"]
    heads = [head for column in content["columns"] for head in (column, "ours")]
    table = Table(f"The paper's {TITLES['hyperparameters']}", ["domain", *heads])
    for domain, numbers in content["rows"].items():
        cells = [Cell(domain)]
        for column, number in zip(content["columns"], numbers, strict=True):
            ours = DOMAINS[domain][HYPERPARAMETERS[column]] / (EPOCH if column == "epochs" else 1)
            cells += [Cell(f"{value:g}", value) for value in (number, ours)]
        table.rows.append(cells)
    table.notes.append("Ours: the values of --preset edp for tasks of the domain.")
    return table


def speed_table(rates: Rates) -> Table:
    """Build the table of steps a second: the paper's on its GPU, and ours as measured."""
    content = PUBLISHED_TABLES["speed"]
    table = Table(
        f"The paper's {TITLES['speed']}",
        ["variant", *(f"{row}{who}" for row in content["rows"] for who in ("", ", ours"))],
    )
    for i, column in enumerate(content["columns"]):
        cells = [Cell(column)]
        for row, activity in zip(content["rows"], ("training", "acting"), strict=True):
            printed = content["rows"][row][i]
            cells += [Cell(f"{printed:g}", printed), number_cell(rates.get((VARIANTS.get(column, ""), activity)))]
        table.rows.append(cells)
    table.notes.append("The paper's machine had a GPU; compare ratios within a column, not different columns.")
    return without_empty_columns(table)
