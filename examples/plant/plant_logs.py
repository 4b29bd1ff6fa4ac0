"""Logs of a small plant: a tank that is kept warm and at its level, one row a minute, and ten damaged versions of it.

    python plant_logs.py --out clean.csv --days 21
    python plant_logs.py --out clean.csv --days 21 --damaged damaged/ --overwrite

Two operators take turns of eight hours. Water is drawn from the tank by day, and flows in through a valve; a heater
keeps it at 60 °C. A trip of the heater ends a shift: the plant is reset, and the log goes on. The reward of a minute is
minus its costs in cents: electricity, deviations of the level and the temperature, and 150 for a trip.
"""

import argparse
import gzip
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

NAMES = (
    "time",
    "operator",
    "shift",
    "mode",
    "level_%",
    "temp_C",
    "draw_l_min",
    "valve_%",
    "heater_%",
    "cost_ct",
    "trip",
)
START = datetime(2026, 3, 2, 6, 0)
SHIFT = 8 * 60
TRIP_COST = 150.0


def simulate(days: int, seed: int = 0) -> list[list[str]]:
    """Return the rows of a log as texts."""
    rng = np.random.default_rng(seed)
    level, temp, rows, habit = 50.0, 60.0, [], rng.normal()
    drawn = 0.0
    for minute in range(days * 24 * 60):
        time, shift = START + timedelta(minutes=minute), minute // SHIFT
        operator = ("anna", "bert")[shift % 2]
        if minute % SHIFT == 0:
            habit = rng.normal()
        day = 7 <= time.hour < 22
        drawn = 0.9 * drawn + 0.1 * ((6.0 if day else 1.0) + rng.normal() * 2)
        draw = max(0.0, drawn)
        target = 55.0 if operator == "anna" else 45.0 + 15 * math.sin(2 * math.pi * time.hour / 24)
        valve = float(np.clip(40 + 4 * (target - level) + 5 * habit + 4 * rng.normal(), 0, 100))
        heater = float(
            np.clip(50 + 8 * (60 - temp) + 6 * rng.normal() + (4 * habit if operator == "bert" else 0), 0, 100)
        )
        trip = heater > 40 and rng.random() < 0.0005
        cost = 0.02 * heater + 0.01 * abs(level - 50) + 0.1 * abs(temp - 60) + TRIP_COST * trip
        mode = "day" if day else "night"
        rows.append(
            [
                *(time.strftime("%Y-%m-%d %H:%M"), operator, str(shift), mode, f"{level:.2f}", f"{temp:.2f}"),
                *(f"{draw:.2f}", f"{valve:.1f}", f"{heater:.1f}", f"{-cost:.4f}", str(int(trip))),
            ]
        )
        level = float(np.clip(level + 0.02 * valve - 0.16 * draw + 0.05 * rng.normal(), 0, 100))
        temp += 0.012 * heater - 0.006 * (temp - 15) - 0.01 * draw + 0.02 * rng.normal() - 0.25
        if trip:
            level, temp = 50.0, 60.0
    return rows


def text_of(rows: list[list[str]], names: tuple[str, ...] = NAMES, separator: str = ",") -> str:
    return "".join(separator.join(row) + "\n" for row in [list(names), *rows])


def with_column(rows: list[list[str]], name: str, change: Callable[[int, str], str]) -> list[list[str]]:
    at = NAMES.index(name)
    return [[*row[:at], change(i, row[at]), *row[at + 1 :]] for i, row in enumerate(rows)]


def kelvin(cell: str) -> str:
    return f"{float(cell) + 273.15:.2f}"


def stuck_flag(rows: list[list[str]]) -> list[list[str]]:
    """The flag of a trip stays up for half an hour, three times."""
    third = len(rows) // 4
    marked = {row for start in (third, 2 * third, 3 * third) for row in range(start, start + 30)}
    return with_column(rows, "trip", lambda i, cell: "1" if i in marked else cell)


def write_damaged(rows: list[list[str]], folder: Path) -> None:
    """Write ten versions of a log, each with one fault."""
    folder.mkdir(parents=True, exist_ok=True)
    half = len(rows) // 2
    versions = {
        "newest_first.csv": text_of(rows[::-1]),
        "gaps.csv": text_of([row for i, row in enumerate(rows) if not (i % 997 < 20 and i > 900)]),
        "unit_change.csv": text_of(
            with_column(
                rows, "temp_C", lambda i, cell: f"{float(cell) + 273.15:.2f}" if half < i < half + 4000 else cell
            )
        ),
        "stuck_flag.csv": text_of(stuck_flag(rows)),
        "decimal_comma.csv": text_of(rows, separator=";").replace(".", ","),
        "missing_cells.csv": text_of(with_column(rows, "level_%", lambda i, cell: "" if i % 500 == 7 else cell)),
        "text_column.csv": text_of(
            with_column(rows, "draw_l_min", lambda i, cell: "Bad Input" if i % 700 == 3 else cell)
        ),
        "two_rows.csv": text_of(rows[:2]),
    }
    for name, text in versions.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "packed.csv.gz").write_bytes(gzip.compress(text_of(rows).encode(), mtime=0))
    twice = folder / "file_twice"
    twice.mkdir(exist_ok=True)
    for name in ("week.csv", "week (copy).csv"):
        (twice / name).write_text(text_of(rows), encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("clean.csv"))
    parser.add_argument("--days", type=int, default=21)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--damaged", type=Path, metavar="FOLDER")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    values = parser.parse_args(argv)
    for path in filter(None, (values.out, values.damaged)):
        if path.exists() and not values.overwrite:
            parser.error(f"{path}: already exists; choose another name, or replace it with --overwrite")
    rows = simulate(values.days, values.seed)
    values.out.write_text(text_of(rows), encoding="utf-8")
    if values.damaged:
        write_damaged(rows, values.damaged)


if __name__ == "__main__":
    main()
