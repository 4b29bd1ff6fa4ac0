"""The paper's tables, with the numbers of runs beside the paper's; where there is no run, the cell is empty."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edp.data import tasks
from edp.data.paper import TABLES
from edp.metrics import mean_interval
from edp.report.collect import Entry
from edp.report.summary import Cell, Table, interval_cell, number_cell


class Ours(NamedTuple):
    """Which runs a column of the paper is compared with, and by which measure."""

    algorithm: str
    policy: str
    by: str = "rat"
    options: tuple[tuple[str, Any], ...] = ()  # that the run must have been trained with, by their names in its config


DIFFUSION, GAUSSIAN = "diffusion", "gaussian"
CHAIN = (("policy.train_action", "chain"),)
APPROXIMATE = (("policy.train_action", "approximate"),)
DPM, DDPM = (("policy.sampler", "dpm"),), (("policy.sampler", "ddpm"),)
ALL = (("data.best", 1.0),)
OVERALL = {
    "BC": Ours("bc", GAUSSIAN, options=ALL),
    "10%BC": Ours("bc", GAUSSIAN, options=(("data.best", 0.1),)),
    "DT": Ours("dt", "transformer"),
    "AWAC": Ours("awac", GAUSSIAN),
    "OneStep": Ours("onestep", GAUSSIAN),
    "CQL": Ours("cql", GAUSSIAN),
    "TD3+BC FF": Ours("td3bc", "deterministic", options=(("evaluation.eas", 1),)),
    "TD3+BC EDP": Ours("td3bc", DIFFUSION, options=APPROXIMATE + DPM),
    "CRR FF": Ours("crr", GAUSSIAN),
    "CRR EDP": Ours("crr", DIFFUSION),
    "IQL FF": Ours("iql", GAUSSIAN),
    "IQL EDP": Ours("iql", DIFFUSION),
}
EDP = OVERALL["TD3+BC EDP"]
COLUMNS: dict[str, dict[str, Ours]] = {
    "overall": OVERALL,
    "reproduce": {"DQL (JAX)": Ours("td3bc", DIFFUSION, "oms", CHAIN + DDPM), "EDP": EDP._replace(by="oms")},
    "best_and_average": {
        "TD3 average": EDP,
        "TD3 best": EDP._replace(by="oms"),
        "CRR average": OVERALL["CRR EDP"],
        "CRR best": OVERALL["CRR EDP"]._replace(by="oms"),
        "IQL average": OVERALL["IQL EDP"],
        "IQL best": OVERALL["IQL EDP"]._replace(by="oms"),
    },
    "td3_eas": {
        "TD3 + EDP": EDP,
        "TD3 + EAS": Ours("td3bc", "deterministic", options=(("evaluation.eas", "several"),)),
        "TD3": OVERALL["TD3+BC FF"],
    },
    "action_approximation": {
        "DDPM": Ours("td3bc", DIFFUSION, options=CHAIN + DDPM),
        "action approximation": Ours("td3bc", DIFFUSION, options=APPROXIMATE + DDPM),
    },
}
TITLES = {
    "overall": "The paper's table of all algorithms (average scores)",
    "reproduce": "The paper's comparison with Diffusion-QL (best scores)",
    "best_and_average": "The paper's best and average scores of EDP",
    "td3_eas": "The paper's TD3 with energy-based action selection",
    "action_approximation": "The paper's effect of action approximation",
    "speed": "The paper's speed",
}
SLIPS = {
    "overall": "The paper's column of feed-forward CRR repeats that of CQL, but for AntMaze.",
    "best_and_average": "The paper's column “TD3 best” repeats other rows in kitchen, pen and AntMaze, and EDP with "
    "IQL has a best below its average in two rows of locomotion.",
}
PRESETS = {"edp": "EDP", "edp-without-dpm": "EDP without DPM", "edp-without-ap": "EDP without AP", "dql": "DQL (JAX)"}


def tables(entries: list[Entry], bench: Path | None = None) -> list[Table]:
    """Every table of scores, and, with the result of ``edp bench``, that of speed."""
    found = [table(name, entries) for name in COLUMNS]
    return [*found, speed(bench)] if bench else found


def table(name: str, entries: list[Entry]) -> Table:
    """The paper's numbers, each with ours behind it."""
    content, ours = TABLES[name], COLUMNS[name]
    heads = [head for column in content["columns"] for head in (column, *(["ours"] if column in ours else []))]
    made = Table(TITLES[name], ["task", *heads])
    for task, numbers in content["rows"].items():
        cells = [Cell(task)]
        for column, number in zip(content["columns"], numbers, strict=True):
            cells.append(number_cell(number))
            if column in ours:
                cells.append(ours_cell(ours[column], task, entries))
        made.rows.append(cells)
    for domain, numbers in content["averages"].items():
        made.rows.append(average_row(made, domain, numbers, content["columns"], ours))
    if name in SLIPS:
        made.notes.append(SLIPS[name])
    made.notes.append(
        "Ours: runs here with these methods, over their seeds, whatever their number of steps; empty: none."
    )
    return made


def ours_cell(wanted: Ours, task: str, entries: list[Entry]) -> Cell:
    curves = [entry.curve for entry in entries if matches(entry, wanted, task) and entry.curve is not None]
    if not curves:
        return Cell("")
    return interval_cell(mean_interval(np.concatenate([getattr(curve, wanted.by) for curve in curves])))


def matches(entry: Entry, wanted: Ours, task: str) -> bool:
    if entry.damage or entry.config.get("task") != task or entry.config.get("regenerated"):
        return False
    if (entry.algorithm, entry.policy) != (wanted.algorithm, wanted.policy):
        return False
    for place, value in wanted.options:
        part, name = place.split(".")
        found = entry.config[part].get(name)
        if found != value and not (value == "several" and isinstance(found, int) and found > 1):
            return False
    return True


def average_row(made: Table, domain: str, numbers: list, columns: list[str], ours: dict[str, Ours]) -> list[Cell]:
    """The paper's averages of a domain; ours where every task of it has a run."""
    members = [row for row in made.rows if (known := tasks.TASKS.get(row[0].text)) and known.domain == domain]
    cells = [Cell(f"{domain}, average")]
    for column, number in zip(columns, numbers, strict=True):
        cells.append(number_cell(number))
        if column in ours:
            values = [row[len(cells)].value for row in members]
            cells.append(number_cell(None if None in values else float(np.mean(values))))  # pyright: ignore
    return cells


def speed(bench: Path) -> Table:
    """Steps a second, the paper's on its GPU and ours as ``edp bench --json`` measured them."""
    content = TABLES["speed"]
    made = Table(TITLES["speed"], ["variant", *(f"{row}{who}" for row in content["rows"] for who in ("", ", ours"))])
    rates = bench_rates(bench)
    for i, column in enumerate(content["columns"]):
        preset = next((name for name, title in PRESETS.items() if title == column), "")
        cells = [Cell(column)]
        for row, what in zip(content["rows"], ("training", "acting"), strict=True):
            cells += [number_cell(content["rows"][row][i]), number_cell(rates.get((preset, what)))]
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
