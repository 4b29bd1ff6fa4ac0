"""edp runs [FOLDER …]"""

import json
import sys
from pathlib import Path

from edp.cli.options import Parser
from edp.errors import UserError

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
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    columns = ("run", "task", "method", "seeds", "steps", "score", "evaluations", "state")
    table = Table(*(Column(name, overflow="fold") for name in columns))
    for row in found:
        table.add_row(*(escape(str(cell)) for cell in cells(row)))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table if found else f"no runs in {', '.join(map(str, values.folders))}", highlight=False)
    return 0


def run_folders(folder: Path) -> list[Path]:
    """The run directories in a folder, or the folder itself if it is one."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    if (folder / "config.json").is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/config.json"))


def checked(folder: Path) -> dict:
    """The summary of a run that can be shown; a damaged one says what is wrong."""
    try:
        row = summary(folder)
        cells(row)
        return row
    except (UserError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        return {"run": str(folder), "state": "damaged", "reason": str(error)}


def summary(folder: Path) -> dict:
    """What there is to know of a run in one line."""
    import numpy as np

    from edp import metrics
    from edp.run import Run

    run = Run.open(folder)
    config, status = run.config, run.status
    curve = metrics.curve(run.training_evaluations()) if run.training_evaluations() else None
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
        "curve": [] if curve is None else [round(float(mean), 2) for mean in metrics.known_mean(curve.scores, axis=1)],
        "state": status["state"],
        "reason": status["reason"],
        "failed_seeds": status["failed_seeds"],
    }


def cells(row: dict) -> list[str]:
    from edp.metrics import sparkline

    state = row["state"] + (f": {row['reason']}" if row["reason"] else "")
    if row["state"] == "damaged":
        return [row["run"], "", "", "", "", "", "", state]
    failed = [f"seed {seed}: {why}" for seed, why in row["failed_seeds"].items()]
    return [
        row["run"],
        row["task"],
        f"{row['algorithm']} + {row['policy']}",
        str(row["seeds"]),
        f"{row['steps']:,} of {row['of']:,}",
        "" if row["rat"] is None else f"{row['rat']:.1f}",
        sparkline(row["curve"]),
        "; ".join([state, *(failed if row["state"] != "failed" else [])]),
    ]
