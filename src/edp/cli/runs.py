"""edp runs [FOLDER …]"""

import json
import sys
from pathlib import Path

from edp.cli.parser import Parser

DESCRIPTION = """List runs: what each trains, how far it is, its score (the mean of the last ten evaluations), and
whether it is running, finished, stopped, killed or failed. A damaged one is listed with what is wrong."""


def main(argv: list[str]) -> int:
    parser = Parser("edp runs", DESCRIPTION, "[FOLDER …]")
    parser.add_argument(
        "folders", type=Path, nargs="*", default=[Path("runs")], metavar="FOLDER", help="where to look (default: runs)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    values = parser.parse(argv)
    found = [checked(path) for folder in values.folders for path in run_folders(folder)]
    if values.json:
        for row in found:
            print(json.dumps(row))
        return 0
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from edp.report.summary import on_one_line

    console = Console(width=None if sys.stdout.isatty() else 160)
    narrow = console.width < 110
    if narrow:
        room = max(8, (console.width - 40) // 3)  # what is left for each of the texts
        texts = [Column(name, no_wrap=True, overflow="ellipsis", max_width=room) for name in ("run", "task", "method")]
        table = Table(*texts, *(Column(name) for name in ("done", "score", "curve", "state")), box=SIMPLE_HEAD)
        table.padding = (0, 1, 0, 0)
    else:
        columns = ("run", "task", "method", "seeds", "steps", "score", "evaluations", "state")
        table = Table(*(Column(name, overflow="fold") for name in columns))
    for row in found:
        table.add_row(*(escape(on_one_line(str(cell))) for cell in cells(row, narrow)))
    console.print(table if found else f"no runs in {', '.join(map(str, values.folders))}", highlight=False)
    for row in found if narrow else ():
        if why := "; ".join(reasons(row)):
            console.print(f"{on_one_line(Path(row['run']).name)}: {on_one_line(why)}", highlight=False, markup=False)
    return 0


def run_folders(folder: Path) -> list[Path]:
    """The run directories in a folder, or the folder itself if it is one."""
    from edp.report import collect

    return collect.find([folder])


def checked(folder: Path) -> dict:
    """The summary of a run that can be shown; a damaged one says what is wrong."""
    from edp.report import collect

    try:
        row = summary(folder)
        cells(row)
        return row
    except collect.DAMAGE as error:
        return {"run": str(folder), "state": "damaged", "reason": collect.wrong_with(folder, error)}


def summary(folder: Path) -> dict:
    """What there is to know of a run in one line."""
    import numpy as np

    from edp.runs import scores
    from edp.runs.directory import Run

    run = Run.open(folder)
    config, status = run.config, run.status
    curve = scores.curve(run.training_evaluations()) if run.training_evaluations() else None
    score = None if curve is None or np.isnan(curve.rat).all() else float(np.nanmean(curve.rat))
    return {
        "run": str(folder),
        "task": run.title,
        "algorithm": config["algorithm"]["name"],
        "policy": config["policy"]["name"],
        "seeds": config["training"]["seeds"],
        "steps": status["step"],
        "of": config["training"]["steps"],
        "rat": score,
        "curve": [] if curve is None else [round(float(mean), 2) for mean in scores.known_mean(curve.scores, axis=1)],
        "state": status["state"],
        "reason": status["reason"],
        "failed_seeds": status["failed_seeds"],
    }


def cells(row: dict, narrow: bool = False) -> list[str]:
    """A line of the table. On a narrow terminal, reasons are told below it."""
    from edp.runs.scores import sparkline

    name, state = Path(row["run"]).name if narrow else row["run"], row["state"]
    if not narrow and (why := "; ".join(reasons(row))):
        state += f": {why}"
    if row["state"] == "damaged":
        return [name, *[""] * (5 if narrow else 6), state]
    share = f"{row['steps'] / row['of']:.0%}"
    return [
        name,
        row["task"],
        f"{row['algorithm']} + {row['policy']}",
        *([share] if narrow else [str(row["seeds"]), f"{row['steps']:,} of {row['of']:,}"]),
        "" if row["rat"] is None else f"{row['rat']:.1f}",
        sparkline(row["curve"], 8 if narrow else 20),
        state,
    ]


def reasons(row: dict) -> list[str]:
    """What went wrong, if anything did."""
    failed = row.get("failed_seeds", {}).items() if row["state"] != "failed" else ()
    return [*filter(None, [row["reason"]]), *(f"seed {seed}: {why}" for seed, why in failed)]
