"""What run directories say, in a form that can be drawn; a damaged one says that it is."""

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from edp.errors import UserError, first_line
from edp.runs.directory import Run
from edp.runs.rows import Row, parse_line
from edp.runs.scores import Curve

POINTS, FEWEST = 300, 40  # of a curve of losses or speeds
POINTS_IN_ALL = 150_000  # of such curves of all runs, more or less: a page of ten thousand curves has to open, too
MOST = 40  # quantities of a run
LARGEST = 2_000_000  # bytes of what was seen of a policy
LARGEST_SCORE = 1e12  # beyond it, something is wrong


@dataclass
class Series:
    """Numbers over training steps: the middle of the seeds, and their spread."""

    steps: list[int]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass
class Entry:
    """One run directory."""

    folder: Path
    name: str = ""  # by which it is told from the others
    damage: str = ""  # why it cannot be shown, if it cannot
    task: str = ""
    algorithm: str = ""
    policy: str = ""
    seeds: int = 0
    steps: int = 0
    budget: int = 0
    state: str = ""
    reason: str = ""
    config: Row = field(default_factory=dict)
    curve: Curve | None = None
    losses: dict[str, Series] = field(default_factory=dict)
    held_out: dict[str, Series] = field(default_factory=dict)
    speed: Series | None = None
    notes: list[str] = field(default_factory=list)
    looks: Row = field(default_factory=dict)  # what the policy does in states of the data, if the run says
    seen: Row = field(default_factory=dict)  # what somebody saw who looked at it (see look.py)

    @property
    def method(self) -> str:
        return f"{self.algorithm} + {self.policy}"


def find(folders: list[Path]) -> list[Path]:
    """The run directories among these folders and in them."""
    found: list[Path] = []
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder")
        if (folder / "config.json").exists() or (folder / "status.json").exists():
            found.append(folder)
        else:
            found += sorted(path for path in folder.iterdir() if path.is_dir() and holds_run(path))
    return list(dict.fromkeys(found))


def holds_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("config.json", "status.json", "metrics.jsonl"))


def read_all(folders: list[Path]) -> list[Entry]:
    """All runs, each with a name of its own: as much of its path as it takes."""
    found = find(folders)
    parts = {folder: folder.absolute().parts for folder in found}
    entries = []
    for folder in found:
        others = [parts[other] for other in found if other != folder]
        length = next(
            (n for n in range(1, len(parts[folder])) if parts[folder][-n:] not in {other[-n:] for other in others}),
            len(parts[folder]),
        )
        with no_garbage():
            entry = read(folder, len(found))
        entry.name = "/".join(parts[folder][-length:])
        entries.append(entry)
    return entries


@contextmanager
def no_garbage() -> Iterator[None]:
    """Millions of numbers are read that refer to nothing: to look for circles among them would take as long again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def read(folder: Path, runs: int = 1) -> Entry:
    """One of so many runs; whatever is wrong with it is a part of the result."""
    entry = Entry(folder)
    try:
        fill(entry, Run.open(folder), runs)
    except DAMAGE as error:
        entry.damage = wrong_with(folder, error)
    return entry


DAMAGE = (
    *(UserError, KeyError, TypeError, ValueError, IndexError, AttributeError, OSError, RecursionError),
    ArithmeticError,
)
PARTS = ("algorithm", "policy", "data", "training", "evaluation")  # of a config


def wrong_with(folder: Path, error: Exception) -> str:
    """Why a run cannot be shown."""
    if isinstance(error, UserError):
        return str(error).removeprefix(f"{folder}: ")
    return f"not as this version writes it ({type(error).__name__}: {first_line(error)})"


def fill(entry: Entry, run: Run, runs: int) -> None:
    config, status = run.config, run.status
    for part in (*PARTS, "own_task"):
        if not isinstance(config.get(part, {}) or {}, dict) or (part in PARTS and not config.get(part)):
            raise TypeError(f"{part} is no object")
    entry.config, entry.task = config, run.title
    entry.algorithm, entry.policy = str(config["algorithm"]["name"]), str(config["policy"]["name"])
    entry.seeds, entry.budget = int(config["training"]["seeds"]), int(config["training"]["steps"])
    entry.steps, entry.state, entry.reason = int(status["step"]), str(status["state"]), str(status["reason"])
    entry.notes += [f"seed {seed} failed: {why}" for seed, why in dict(status["failed_seeds"]).items()]
    evaluations, metrics, validations, times = (rows_in(entry, run, f"{name}.jsonl") for name in LOGS)
    training = [row for row in evaluations if row.get("kind", "training") == "training"]
    entry.curve, broken = curve_of(training, entry.seeds)
    if broken:
        entry.notes.append(f"{broken} evaluation(s) could not be read")
    quantities = len(quantities_in(metrics)) + len(quantities_in(validations)) + 1
    points = max(FEWEST, min(POINTS, POINTS_IN_ALL // (runs * quantities)))
    entry.losses = losses_of(metrics, points)
    entry.held_out = losses_of(validations, points)
    entry.seen = seen_in(entry, run)
    held = (row["actions"] for row in reversed(validations) if has_histogram(row.get("actions")))
    entry.looks = next(held, entry.seen.get("actions") or {})
    timed = [row for row in times if type(row.get("steps_per_second")) in (int, float)]
    steps, speeds = [row["step"] for row in timed], [[row["steps_per_second"]] for row in timed]
    entry.speed = series(steps, speeds, points) if speeds else None


LOGS = ("evaluations", "metrics", "validations", "times")


def rows_in(entry: Entry, run: Run, name: str) -> list[Row]:
    """The rows of a log; lines that are none are noted."""
    lines = run.lines(name)
    rows = [row for text in lines if (row := parse_line(text))]
    if len(rows) < len(lines):
        entry.notes.append(f"{len(lines) - len(rows)} of {len(lines)} lines of {name} cannot be read")
    return rows


def has_histogram(actions: Any) -> bool:
    return isinstance(actions, dict) and isinstance(actions.get("data"), dict) and "histogram" in actions["data"]


def seen_in(entry: Entry, run: Run) -> Row:
    if not run.look.exists():
        return {}
    try:
        if run.look.stat().st_size > LARGEST:
            raise ValueError("too large")
        seen = json.loads(run.look.read_text())
        if not isinstance(seen, dict):
            raise TypeError("not an object")
    except (OSError, ValueError, TypeError, RecursionError):
        entry.notes.append(f"{run.look.name} could not be read")
        return {}
    if seen.get("step") != entry.steps:
        entry.notes.append(f"looked at after {seen.get('step')} steps")
    return seen


def curve_of(rows: list[Row], seeds: int) -> tuple[Curve | None, int]:
    """The evaluations of training, and how many of the rows are none."""
    good, table = rows, as_table([row.get("scores") for row in rows], 3)  # (evaluations, seeds, episodes)
    if table is None or table.shape[1] != seeds:
        good = [row for row in rows if are_scores(row.get("scores"), seeds)]
        episodes = len(good[-1]["scores"][0]) if good else 0
        good = [row for row in good if len(row["scores"][0]) == episodes]
        table = np.array([row["scores"] for row in good], float)
    if not good:
        return None, len(rows)
    table[~(np.abs(table) < LARGEST_SCORE)] = np.nan
    return Curve(np.array([row["step"] for row in good]), mean_of(table, 2), table.shape[2]), len(rows) - len(good)


def are_scores(values: Any, seeds: int) -> bool:
    """A list for each seed, of as many numbers."""
    if not isinstance(values, list) or len(values) != seeds or not all(are_numbers(each) for each in values):
        return False
    return len({len(each) for each in values}) == 1


def losses_of(rows: list[Row], points: int) -> dict[str, Series]:
    """Each quantity of training, as means over neighbouring epochs where there are many."""
    rows, found = [row for row in rows if isinstance(row.get("metrics"), dict)], {}
    for name in quantities_in(rows):
        steps, values = [row["step"] for row in rows], [row["metrics"].get(name) for row in rows]
        if as_table(values, 2) is None:
            good = [are_numbers(value) for value in values]
            steps, values = list(compress(steps, good)), list(compress(values, good))
        if values:
            found[str(name)] = series(steps, values, points)
    return found


def quantities_in(rows: list[Row]) -> list[str]:
    metrics = (row["metrics"] for row in rows if isinstance(row.get("metrics"), dict))
    return list(dict.fromkeys(name for each in metrics for name in each))[:MOST]


def as_table(values: list, dims: int) -> np.ndarray | None:
    """Lists of numbers as they should be, at once; None if they are to be looked at one by one."""
    try:
        table = np.array(values, float)
    except (ValueError, TypeError, OverflowError):
        return None
    return table if table.ndim == dims and table.size else None


def are_numbers(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(v is None or type(v) in (int, float) for v in values)


def series(at: list[int], values: list[list[float | None]], points: int) -> Series:
    """Over seeds: mean, lowest and highest; thinned to what a screen can show."""
    table, steps = as_table(values, 2), np.array(at)
    if table is None:  # seeds may be missing in some rows
        width = max(map(len, values))
        table = np.array([[*numbers, *[None] * (width - len(numbers))] for numbers in values], float)
    starts = np.unique(np.linspace(0, len(steps), min(points, len(steps)), endpoint=False).astype(int))
    ends = [int(step) for step in steps[np.append(starts[1:], len(steps)) - 1]]
    known = ~np.isnan(table)
    total, count = (np.add.reduceat(part, starts, axis=0) for part in (np.where(known, table, 0.0), known.astype(int)))
    means = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)  # (points, seeds)
    return Series(ends, rounded(mean_of(means, 1)), rounded(edge(means, np.fmin)), rounded(edge(means, np.fmax)))


def mean_of(table: np.ndarray, axis: int) -> np.ndarray:
    known = ~np.isnan(table)
    count = known.sum(axis=axis)
    total = np.where(known, table, 0.0).sum(axis=axis)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def edge(table: np.ndarray, which: Any) -> np.ndarray:
    return which.reduce(table, axis=1)


def rounded(values: np.ndarray) -> list[float | None]:
    """For JSON: four digits are more than a screen shows."""
    return [float(f"{value:.4g}") if abs(value) < 1e300 else None for value in values]
