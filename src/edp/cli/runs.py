"""edp runs [FOLDER …]"""

import json
import sys
from pathlib import Path
from typing import Any

from edp.cli.parser import Parser

DESCRIPTION = """List runs: what each trains, how far it is, its score (the mean of the last ten evaluations) or the
verdict of edp eval --offline, and whether it is running, finished, stopped, stopped early (by a sweep), killed or
failed. Damaged runs are listed with the error."""
NARROW = 110  # columns of a terminal, below which the table has fewer columns


def main(argv: list[str]) -> int:
    parser = Parser("edp runs", DESCRIPTION, "[FOLDER …]")
    parser.add_argument(
        "folders", type=Path, nargs="*", default=[Path("runs")], metavar="FOLDER", help="where to look (default: runs)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    values = parser.parse(argv)

    from edp.report.collect import find_runs

    rows = [run_row(path) for folder in values.folders for path in find_runs([folder])]
    if values.json:
        for row in rows:
            print(json.dumps(row))
    else:
        print_runs(rows, values.folders)
    return 0


def run_row(folder: Path) -> dict[str, Any]:
    """Return the summary of a run, as ``--json`` prints it. That of a damaged run says what is wrong."""
    from edp.cli.progress import note
    from edp.report.collect import DAMAGE, damage_text, summarise
    from edp.runs.directory import Run
    from edp.runs.scores import nan_mean

    try:
        entry = summarise(Run.open(folder))
        curve = entry.curve
        verdict = entry.last_offline.verdict if entry.last_offline else None
        score = float("nan") if curve is None else float(nan_mean(curve.rat))
        row = {
            "run": str(folder),
            "task": entry.task,
            "algorithm": entry.algorithm,
            "policy": entry.policy,
            "seeds": entry.seeds,
            "steps": entry.steps,
            "of": entry.budget,
            "rat": None if score != score else score,
            "curve": [] if curve is None else [round(float(mean), 2) for mean in curve.means],
            "verdict": verdict.word or None if verdict else None,
            "state": entry.state,
            "reason": entry.reason,
            "failed_seeds": entry.failed_seeds,
        }
        run_cells(row)  # a run that cannot be shown is damaged, too
        for text in entry.log_notes:
            note(f"{folder}: {text}")
        return row
    except DAMAGE as error:
        return {"run": str(folder), "state": "damaged", "reason": damage_text(folder, error)}


def print_runs(rows: list[dict[str, Any]], folders: list[Path]) -> None:
    """Print a table of the runs. On a narrow terminal, what went wrong is printed below it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from edp.report.markup import on_one_line

    console = Console(width=None if sys.stdout.isatty() else 160)
    if not rows:
        console.print(escape(on_one_line(f"no runs in {', '.join(map(str, folders))}")), highlight=False)
        return
    narrow = console.width < NARROW
    lines = [run_cells(row, narrow) for row in rows]
    names = [name for name in lines[0] if any(line[name] for line in lines)]
    if narrow:
        room = max(8, (console.width - 40 - 12 * ("verdict" in names)) // 3)  # for each of the texts
        short = {"no_wrap": True, "overflow": "ellipsis", "max_width": room}
        columns = [Column(name, **short) if name in ("run", "task", "method") else Column(name) for name in names]
        table = Table(*columns, box=SIMPLE_HEAD)
        table.padding = (0, 1, 0, 0)
    else:
        table = Table(*(Column(name, overflow="fold") for name in names))
    for line in lines:
        table.add_row(*(escape(on_one_line(line[name])) for name in names))
    console.print(table, highlight=False)
    for row in rows if narrow else ():
        if why := "; ".join(failure_reasons(row)):
            console.print(f"{on_one_line(Path(row['run']).name)}: {on_one_line(why)}", highlight=False, markup=False)


def run_cells(row: dict[str, Any], narrow: bool = False) -> dict[str, str]:
    """Return the cells of a run's line in the table, by column. Columns that are empty in all lines are not shown."""
    from edp.cli.terminal import sparkline

    name, state = Path(row["run"]).name if narrow else row["run"], row["state"]
    if not narrow and (why := "; ".join(failure_reasons(row))):
        state += f": {why}"
    progress = ["done"] if narrow else ["seeds", "steps"]
    names = ["task", "method", *progress, "score", "curve" if narrow else "evaluations", "verdict"]
    if row["state"] == "damaged":
        return {"run": name, **dict.fromkeys(names, ""), "state": state}
    share = f"{row['steps'] / row['of']:.0%}"
    cells = [
        row["task"],
        f"{row['algorithm']} + {row['policy']}",
        *([share] if narrow else [str(row["seeds"]), f"{row['steps']:,} of {row['of']:,}"]),
        "" if row["rat"] is None else f"{row['rat']:.1f}",
        sparkline(row["curve"], 8 if narrow else 20),
        row["verdict"] or "",
    ]
    return {"run": name, **dict(zip(names, cells, strict=True)), "state": state}


def failure_reasons(row: dict[str, Any]) -> list[str]:
    """List what went wrong with a run, if anything did."""
    failed = row.get("failed_seeds", {}).items() if row["state"] != "failed" else ()
    return [*filter(None, [row["reason"]]), *(f"seed {seed}: {why}" for seed, why in failed)]
