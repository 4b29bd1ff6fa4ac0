"""Read run directories. An error in a run is recorded in its entry and does not stop the report."""

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edp.errors import UserError, counted, first_line
from edp.report.offline import OfflineValue, offline_values
from edp.report.series import Series, distances, loss_series, quantities_in, thinned_series, working_policies
from edp.runs.directory import Run
from edp.runs.logs import find_lost_rows
from edp.runs.rows import Row, is_training, parse_line
from edp.runs.scores import Curve, curve_from_evaluations

MOST_POINTS, FEWEST_POINTS = 300, 40  # points of a curve of losses or speeds
POINTS_IN_ALL = 150_000  # of all such curves, roughly, so that a page with ten thousand curves still opens
LARGEST_LOOK = 2_000_000  # bytes of look.json, at most
PARTS = ("algorithm", "policy", "data", "training", "evaluation")  # of a config
DAMAGE = (
    *(UserError, KeyError, TypeError, ValueError, IndexError, AttributeError, OSError, RecursionError),
    ArithmeticError,
)


@dataclass(eq=False)  # two entries are the same if they are one object
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
    offline: list[OfflineValue] = field(default_factory=list)
    actions: Row = field(default_factory=dict)  # the policy's actions beside the data's, if the run has them
    actions_step: int = 0
    actions_held_out: bool = False  # whether they are of held-out episodes
    look: Row = field(default_factory=dict)  # content of look.json, which acting/inspect.py writes

    @property
    def method(self) -> str:
        return f"{self.algorithm} + {self.policy}"

    @property
    def own_task(self) -> Row:
        """What is known of the user's own data; empty for a known task."""
        return self.config.get("own_task") or {}

    @property
    def has_environment(self) -> bool:
        return bool(self.own_task.get("env")) if self.own_task else True

    @property
    def last_offline(self) -> OfflineValue | None:
        return self.offline[-1] if self.offline else None

    def made_after(self, step: int) -> str:
        """Name the step after which something was made, and the run's own if it is another one."""
        done = counted(step, "step")
        return done if step == self.steps else f"{done} (the run has {self.steps:,})"


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
    entry.offline = offline_values(read_rows(entry, run, "offline.jsonl"))
    for text in find_lost_rows(run).notes:
        add_log_note(entry, text.removeprefix(f"{run.folder}/"))


def fill_series(entry: Entry, run: Run, metrics: list[Row], runs: int) -> None:
    """Set losses, speed and what is known of the policy's actions."""
    validations, times = (read_rows(entry, run, f"{name}.jsonl") for name in ("validations", "times"))
    quantities = len(quantities_in(metrics)) + len(quantities_in(validations)) + 1
    points = max(FEWEST_POINTS, min(MOST_POINTS, POINTS_IN_ALL // (runs * quantities)))
    entry.losses = loss_series(metrics, points)
    entry.held_out = loss_series(validations, points) | loss_series(distances(validations), points)
    entry.look = read_look(entry, run)
    fill_actions(entry, validations)
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


def fill_actions(entry: Entry, validations: list[Row]) -> None:
    """Set the policy's actions beside the data's: those of the last validation that has them, or of look.json."""
    for row in reversed(validations):
        policies = [each for each in working_policies(row) if each]
        if policies and has_histogram(row.get("actions")):
            entry.actions = row["actions"] | {"policy": policies}
            entry.actions_step, entry.actions_held_out = row["step"], True
            return
    entry.actions, entry.actions_step = entry.look.get("actions") or {}, known_step(entry.look.get("step"))


def known_step(value: Any) -> int:
    return value if type(value) is int else 0


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
