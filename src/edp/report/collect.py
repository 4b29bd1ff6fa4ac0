"""What run directories say, in a form that can be drawn; a damaged one says that it is."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from edp.errors import UserError, first_line
from edp.metrics import Curve
from edp.run import Row, Run

POINTS = 300  # of a curve of losses or speeds


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
    looks: Row = field(default_factory=dict)  # what the policy does, if the run says

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
        entry = read(folder)
        entry.name = "/".join(parts[folder][-length:])
        entries.append(entry)
    return entries


def read(folder: Path) -> Entry:
    """A run; whatever is wrong with it is a part of the result."""
    entry = Entry(folder)
    try:
        fill(entry, Run.open(folder))
    except UserError as error:
        entry.damage = str(error).removeprefix(f"{folder}: ")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError, RecursionError) as error:
        entry.damage = f"not as this version writes it ({type(error).__name__}: {first_line(error)})"
    return entry


def fill(entry: Entry, run: Run) -> None:
    config, status = run.config, run.status
    entry.config, entry.task = config, run.title
    entry.algorithm, entry.policy = str(config["algorithm"]["name"]), str(config["policy"]["name"])
    entry.seeds, entry.budget = int(config["training"]["seeds"]), int(config["training"]["steps"])
    entry.steps, entry.state, entry.reason = int(status["step"]), str(status["state"]), str(status["reason"])
    entry.notes += [f"seed {seed} failed: {why}" for seed, why in dict(status["failed_seeds"]).items()]
    evaluations, broken = curve_of(run.training_evaluations(), entry.seeds)
    entry.curve = evaluations
    if broken:
        entry.notes.append(f"{broken} evaluation(s) could not be read")
    entry.losses = losses_of(run.metrics())
    entry.held_out = losses_of(run.validations())
    entry.looks = next((row["actions"] for row in reversed(run.validations()) if "actions" in row), {})
    speeds = [(row["step"], [row["steps_per_second"]]) for row in run.times() if "steps_per_second" in row]
    entry.speed = series(speeds) if speeds else None


def curve_of(rows: list[Row], seeds: int) -> tuple[Curve | None, int]:
    """The evaluations of training, and how many of the rows are none."""
    steps, scores, episodes, broken = [], [], 0, 0
    for row in rows:
        try:
            found = np.array(row["scores"], float)
            if found.ndim != 2 or len(found) != seeds:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            broken += 1
            continue
        known = ~np.isnan(found)
        count = known.sum(axis=1)
        total = np.where(known, found, 0.0).sum(axis=1)
        scores.append(np.divide(total, count, out=np.full(seeds, np.nan), where=count > 0))
        steps.append(row["step"])
        episodes = found.shape[1]
    return (Curve(np.array(steps), np.array(scores), episodes) if steps else None), broken


def losses_of(rows: list[Row]) -> dict[str, Series]:
    """Each quantity of training, as means over neighbouring epochs where there are many."""
    names = dict.fromkeys(name for row in rows if isinstance(row.get("metrics"), dict) for name in row["metrics"])
    found = {}
    for name in list(names)[:40]:
        values = [(row["step"], row["metrics"][name]) for row in rows if name in row.get("metrics", {})]
        values = [(step, numbers) for step, numbers in values if isinstance(numbers, list) and numbers]
        if values:
            found[str(name)] = series(values)
    return found


def series(values: list[tuple[int, list[float | None]]]) -> Series:
    """Over seeds: mean, lowest and highest; thinned to what a screen can show."""
    width = max(len(numbers) for _, numbers in values)
    table = np.array([[*numbers, *[None] * (width - len(numbers))] for _, numbers in values], float)
    steps = np.array([step for step, _ in values])
    blocks = np.array_split(np.arange(len(steps)), min(POINTS, len(steps)))
    ends = [int(steps[block[-1]]) for block in blocks]
    means = np.array([mean_of(table[block], axis=0) for block in blocks])  # (points, seeds)
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
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
