"""Read run directories. An error in a run is recorded in its entry and does not stop the report."""

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from edp.errors import UserError, counted, first_line
from edp.runs.directory import Run
from edp.runs.logs import find_lost_rows
from edp.runs.rows import Row, is_training, parse_line
from edp.runs.scores import Curve, curve_from_evaluations, is_number_list, nan_mean, number_table

MOST_POINTS, FEWEST_POINTS = 300, 40  # points of a curve of losses or speeds
POINTS_IN_ALL = 150_000  # of all such curves, roughly, so that a page with ten thousand curves still opens
MOST = 40  # quantities of a run, at most
LARGEST_LOOK = 2_000_000  # bytes of look.json, at most
PARTS = ("algorithm", "policy", "data", "training", "evaluation")  # of a config
DAMAGE = (
    *(UserError, KeyError, TypeError, ValueError, IndexError, AttributeError, OSError, RecursionError),
    ArithmeticError,
)


@dataclass
class Series:
    """Numbers over training steps: the mean of the seeds, and the lowest and highest seed."""

    steps: list[int]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass
class Entry:
    """One run directory."""

    folder: Path
    name: str = ""  # unique among the runs that are shown together
    damage: str = ""  # why the run cannot be shown; empty for a good run
    task: str = ""
    algorithm: str = ""
    policy: str = ""
    seeds: int = 0
    steps: int = 0
    budget: int = 0
    state: str = ""
    reason: str = ""
    failed_seeds: dict[str, str] = field(default_factory=dict)
    config: Row = field(default_factory=dict)
    curve: Curve | None = None
    losses: dict[str, Series] = field(default_factory=dict)
    held_out: dict[str, Series] = field(default_factory=dict)
    speed: Series | None = None
    notes: list[str] = field(default_factory=list)
    log_notes: list[str] = field(default_factory=list)  # rows of logs that cannot be read or are missing; also in notes
    actions: Row = field(default_factory=dict)  # the policy's actions beside the data's, if the run has them
    look: Row = field(default_factory=dict)  # content of look.json, which acting/inspect.py writes

    @property
    def method(self) -> str:
        return f"{self.algorithm} + {self.policy}"


def find_runs(folders: list[Path]) -> list[Path]:
    """List the run directories among these folders and directly inside them."""
    runs: list[Path] = []
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder")
        if (folder / "config.json").exists() or (folder / "status.json").exists():
            runs.append(folder)
        else:
            runs += sorted(path for path in folder.iterdir() if path.is_dir() and holds_run(path))
    return list(dict.fromkeys(runs))


def holds_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("config.json", "status.json", "metrics.jsonl"))


def read_runs(folders: list[Path]) -> list[Entry]:
    """Read all runs in these folders. Each is named by as much of its path as makes the name unique."""
    runs = find_runs(folders)
    parts = {folder: folder.absolute().parts for folder in runs}
    entries = []
    for folder in runs:
        others = [parts[other] for other in runs if other != folder]
        length = next(
            (n for n in range(1, len(parts[folder])) if parts[folder][-n:] not in {other[-n:] for other in others}),
            len(parts[folder]),
        )
        with no_garbage_collection():
            entry = read_run(folder, len(runs))
        entry.name = "/".join(parts[folder][-length:])
        entries.append(entry)
    return entries


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Switch the collector off: searching millions of parsed numbers for cycles would double the reading time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def read_run(folder: Path, runs: int = 1) -> Entry:
    """Read all that a report shows of a run. With many ``runs`` in a report, curves have fewer points."""
    entry = Entry(folder)
    try:
        run = Run.open(folder)
        metrics = read_rows(entry, run, "metrics.jsonl")
        fill_summary(entry, run, run.status_after(metrics[-1]["step"] if metrics else 0))
        fill_series(entry, run, metrics, runs)
    except DAMAGE as error:
        entry.damage = damage_text(folder, error)
    return entry


def summarise(run: Run) -> Entry:
    """Read what a run trained, its state and its scores. A damaged run raises one of ``DAMAGE``."""
    entry = Entry(run.folder)
    fill_summary(entry, run, run.status)
    return entry


def damage_text(folder: Path, error: Exception) -> str:
    """Say why a run cannot be shown."""
    if isinstance(error, UserError):
        return str(error).removeprefix(f"{folder}: ")
    return f"not in the format of this version ({type(error).__name__}: {first_line(error)})"


def fill_summary(entry: Entry, run: Run, status: Row) -> None:
    """Set what a run trained, its state, and the scores of its evaluations."""
    config = run.config
    for part in (*PARTS, "own_task"):
        if not isinstance(config.get(part, {}) or {}, dict) or (part in PARTS and not config.get(part)):
            raise TypeError(f"{part} is no object")
    entry.config, entry.task = config, run.title
    entry.algorithm, entry.policy = str(config["algorithm"]["name"]), str(config["policy"]["name"])
    entry.seeds, entry.budget = int(config["training"]["seeds"]), int(config["training"]["steps"])
    entry.steps, entry.state, entry.reason = int(status["step"]), str(status["state"]), str(status["reason"])
    entry.failed_seeds = {str(seed): str(why) for seed, why in dict(status["failed_seeds"]).items()}
    entry.notes += [f"seed {seed} failed: {why}" for seed, why in entry.failed_seeds.items()]
    evaluations = read_rows(entry, run, "evaluations.jsonl")
    training = [row for row in evaluations if is_training(row)]
    entry.curve = curve_from_evaluations(training, entry.seeds)
    unread = len(training) - (len(entry.curve.steps) if entry.curve else 0)
    if unread:
        entry.notes.append(f"{counted(unread, 'evaluation')} could not be read")
    for text in find_lost_rows(run).notes:
        add_log_note(entry, text.removeprefix(f"{run.folder}/"))


def fill_series(entry: Entry, run: Run, metrics: list[Row], runs: int) -> None:
    """Set losses, speed and what is known of the policy's actions."""
    validations, times = (read_rows(entry, run, f"{name}.jsonl") for name in ("validations", "times"))
    quantities = len(quantities_in(metrics)) + len(quantities_in(validations)) + 1
    points = max(FEWEST_POINTS, min(MOST_POINTS, POINTS_IN_ALL // (runs * quantities)))
    entry.losses = loss_series(metrics, points)
    entry.held_out = loss_series(validations, points)
    entry.look = read_look(entry, run)
    compared = (row["actions"] for row in reversed(validations) if has_histogram(row.get("actions")))
    entry.actions = next(compared, entry.look.get("actions") or {})
    timed = [row for row in times if type(row.get("steps_per_second")) in (int, float)]
    steps, speeds = [row["step"] for row in timed], [[row["steps_per_second"]] for row in timed]
    entry.speed = thinned_series(steps, speeds, points) if speeds else None


def read_rows(entry: Entry, run: Run, name: str) -> list[Row]:
    """Read the rows of a log, and add a note if some lines cannot be read."""
    lines = run.lines(name)
    rows = [row for text in lines if (row := parse_line(text, name))]
    if len(rows) < len(lines):
        add_log_note(entry, f"{len(lines) - len(rows)} of {len(lines)} lines of {name} cannot be read")
    return rows


def add_log_note(entry: Entry, text: str) -> None:
    entry.notes.append(text)
    entry.log_notes.append(text)


def has_histogram(actions: Any) -> bool:
    return isinstance(actions, dict) and isinstance(actions.get("data"), dict) and "histogram" in actions["data"]


def read_look(entry: Entry, run: Run) -> Row:
    """Read look.json, and add a note if it cannot be read or is of another step than the run's last."""
    if not run.look.exists():
        return {}
    try:
        if run.look.stat().st_size > LARGEST_LOOK:
            raise ValueError("too large")
        look = json.loads(run.look.read_text(encoding="utf-8"))
        if not isinstance(look, dict):
            raise TypeError("not an object")
    except (OSError, ValueError, TypeError, RecursionError):
        entry.notes.append(f"{run.look.name} could not be read")
        return {}
    if look.get("step") != entry.steps:
        entry.notes.append(f"its episode was recorded after {look.get('step')} steps")
    return look


def loss_series(rows: list[Row], points: int) -> dict[str, Series]:
    """Build a series for each quantity that was logged."""
    rows, series = [row for row in rows if isinstance(row.get("metrics"), dict)], {}
    for name in quantities_in(rows):
        steps, values = [row["step"] for row in rows], [row["metrics"].get(name) for row in rows]
        if number_table(values, 2) is None:
            valid = [is_number_list(value) for value in values]
            steps, values = list(compress(steps, valid)), list(compress(values, valid))
        if values:
            series[str(name)] = thinned_series(steps, values, points)
    return series


def quantities_in(rows: list[Row]) -> list[str]:
    metrics = (row["metrics"] for row in rows if isinstance(row.get("metrics"), dict))
    return list(dict.fromkeys(name for each in metrics for name in each))[:MOST]


def thinned_series(at: list[int], values: list[list[float | None]], points: int) -> Series:
    """Build a series of at most ``points`` points from a row of seeds for each step: means over neighbouring steps."""
    table, steps = number_table(values, 2), np.array(at)
    if table is None:  # some rows lack seeds
        width = max(map(len, values))
        table = np.array([[*numbers, *[None] * (width - len(numbers))] for numbers in values], float)
    starts = np.unique(np.linspace(0, len(steps), min(points, len(steps)), endpoint=False).astype(int))
    ends = [int(step) for step in steps[np.append(starts[1:], len(steps)) - 1]]
    known = ~np.isnan(table)
    total, count = (np.add.reduceat(part, starts, axis=0) for part in (np.where(known, table, 0.0), known.astype(int)))
    return seed_series(ends, np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))


def seed_series(steps: list[int], table: np.ndarray) -> Series:
    """Build a series from numbers (steps, seeds)."""
    return Series(steps, *(rounded(numbers) for numbers in seed_spread(table)))


def seed_spread(table: np.ndarray) -> np.ndarray:
    """Compute mean, lowest and highest over seeds, (3, points), of numbers (points, seeds); NaN is ignored."""
    return np.array([nan_mean(table, 1), np.fmin.reduce(table, axis=1), np.fmax.reduce(table, axis=1)])


def rounded(values: np.ndarray) -> list[float | None]:
    """Round to four digits, which are more than a screen shows, for JSON; None stands for NaN."""
    return [float(f"{value:.4g}") if abs(value) < 1e300 else None for value in values]
