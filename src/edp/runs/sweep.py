"""The directory of a sweep: what is tried, and what came of it. Every trial is a run directory inside it.

``sweep.json`` has the plan, ``trials.jsonl`` a line for each trial, and ``rungs.jsonl`` the decisions of early
stopping. Everything else is read from the run directories, so a sweep can go on after a crash at any instant.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from edp.data.formats.columns import Columns
from edp.errors import UserError
from edp.files import write_errors, write_json
from edp.runs.claim import Claim
from edp.runs.directory import Run, sync_to_disk
from edp.runs.rows import Row

PLAN, TRIALS, RUNGS, STOP = "sweep.json", "trials.jsonl", "rungs.jsonl", ".stop"
SCHEMA = 1
AGAIN = "again_"  # begins the names of runs with fresh seeds
EARLY = "stopped early"  # the state of a run that early stopping has ended
LOWER_IS_BETTER = ("bc_loss",)
METRICS = ("score", "bc_loss", "offline")
DATA = ("task", "data", "columns", "env", *(entry.name for entry in fields(Columns)))  # values that say what data it is
PATIENCE = 60.0  # seconds to wait for another process that writes into the directory


class Trial(NamedTuple):
    number: int
    name: str  # of its run directory
    values: Row  # what this trial has of its own
    again: int | None = None  # the trial whose settings this one trains again, with fresh seeds


class Sweep:
    """The directory of a sweep."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._plan: Row | None = None

    @staticmethod
    def is_in(folder: Path) -> bool:
        return (folder / PLAN).is_file()

    @classmethod
    def create(cls, folder: Path, plan: Row) -> "Sweep":
        """Make the directory of a new sweep."""
        cls.check_free(folder)
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with Claim(folder, "starting a sweep in it").held():
            cls.check_free(folder)  # another process may have been faster
            write_json(folder / PLAN, {"schema": SCHEMA} | plan)
        return cls(folder)

    @classmethod
    def check_free(cls, folder: Path) -> None:
        """Refuse a directory that has content, or that is inside of a run or another sweep."""
        if folder.exists() and (not folder.is_dir() or any(not each.name.startswith(".") for each in folder.iterdir())):
            again = f", or go on with it: `resume={folder}`" if cls.is_in(folder) else ""
            raise UserError(f"{folder}: exists already; choose another `out`{again}")
        inside = next((each for each in folder.absolute().parents if Run.is_in(each) or cls.is_in(each)), None)
        if inside:
            raise UserError(f"{folder}: is inside of {inside}, which is a run or a sweep; choose another `out`")

    @classmethod
    def open(cls, folder: Path) -> "Sweep":
        if not cls.is_in(folder):
            raise UserError(f"{folder}: not the directory of a sweep (no {PLAN} in it)")
        sweep = cls(folder)
        _ = sweep.plan
        return sweep

    @property
    def plan(self) -> Row:
        """The plan, as ``sweeps.plan`` reads it from the user's file. It is read once."""
        if self._plan is None:
            path = self.folder / PLAN
            try:
                plan: Row = json.loads(path.read_text(encoding="utf-8"))
                if plan["schema"] != SCHEMA:
                    raise UserError(f"{path}: of another version of edp (schema {plan['schema']}, here {SCHEMA})")
                check_parts(plan)
            except (OSError, ValueError, TypeError, KeyError, RecursionError):
                raise UserError(f"{path}: damaged") from None
            self._plan = plan
            return plan
        return self._plan

    @property
    def metric(self) -> str:
        return str(self.plan["search"]["metric"])

    @property
    def sign(self) -> int:
        """1 if higher values are better, -1 if lower ones are."""
        return -1 if self.metric in LOWER_IS_BETTER else 1

    def trials(self) -> list[Trial]:
        """All trials that were planned so far."""
        rows = read_lines(self.folder / TRIALS)
        found = (row for row in rows if isinstance(row.get("values"), dict) and safe_name(row.get("name")))
        return [Trial(int(row["number"]), row["name"], row["values"], row.get("again")) for row in found]

    def check_trials(self) -> None:
        """Refuse a list of trials with gaps: a trial is the line of its number, and one with fresh seeds repeats it."""
        first = list[int]()
        for number, trial in enumerate(self.trials()):
            if trial.number != number or (trial.again is not None and trial.again not in first):
                raise UserError(f"{self.folder / TRIALS}: damaged: the line of trial {number} is missing or wrong")
            if trial.again is None:
                first.append(number)

    def trial(self, number: int) -> Trial:
        found = next((trial for trial in self.trials() if trial.number == number), None)
        if found is None:
            raise UserError(f"{self.folder}: has no trial {number}")
        return found

    def add_trial(self, trial: Trial) -> Trial:
        append_line(self.folder / TRIALS, trial._asdict())
        return trial

    def values(self, trial: Trial) -> Row:
        """All that the user has set for a trial."""
        return self.plan["train"] | trial.values

    def data_of(self, trial: Trial) -> Row:
        """What says on which data a trial is trained. Trials on different data are not compared with each other."""
        return {name: value for name, value in self.values(trial).items() if name in DATA}

    def run_folder(self, trial: Trial) -> Path:
        return self.folder / trial.name

    def run(self, trial: Trial) -> Run | None:
        folder = self.run_folder(trial)
        if folder.is_symlink():
            raise UserError(f"{folder}: a symbolic link, which is not allowed in a sweep")
        return Run.open(folder) if Run.is_in(folder) else None

    def rungs(self) -> list[Row]:
        """The decisions of early stopping, in the order in which they were made."""
        return [row for row in read_lines(self.folder / RUNGS) if is_rung(row)]

    def add_rung(self, row: Row) -> None:
        append_line(self.folder / RUNGS, row)

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Keep other trials from deciding at the same time."""
        try:
            with FileLock(self.folder / ".rungs.lock", timeout=PATIENCE):
                yield
        except Timeout:
            raise UserError(f"{self.folder}: another process keeps its list of decisions locked") from None

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other processes from running this sweep."""
        with Claim(self.folder, "running this sweep").held():
            self.ask_to_stop(False)
            yield

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether the trials of all processes shall stop, with a checkpoint."""
        return (self.folder / STOP).exists()

    def ask_to_stop(self, stop: bool = True) -> None:
        with write_errors(self.folder / STOP):
            if stop:
                (self.folder / STOP).touch()
            else:
                (self.folder / STOP).unlink(missing_ok=True)


def is_again(folder: Path) -> bool:
    """Whether a run is the best trial of a sweep, trained again with fresh seeds."""
    return folder.name.startswith(AGAIN) and Sweep.is_in(folder.parent)


def read_lines(path: Path) -> list[Row]:
    """The rows of a file of JSON lines, without lines that a crash left unfinished."""
    if path.exists() and not path.is_file():  # a pipe would be read forever
        raise UserError(f"{path}: not a file")
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    rows: list[Any] = []
    for text in lines:
        try:
            rows.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    return [row for row in rows if isinstance(row, dict) and type(row.get("number")) is int]


def append_line(path: Path, row: Row) -> None:
    """Add a row to a file of JSON lines, and wait until it is on the disk."""
    with write_errors(path):
        with open(path, "a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            unfinished = file.read(1) not in (b"", b"\n")  # a crash left a part of a line
            file.write(b"\n" * unfinished + (json.dumps(row) + "\n").encode())
        sync_to_disk(path)


def check_parts(plan: Row) -> None:
    """Raise an error if a plan is not as ``Sweep.create`` writes it."""
    numbers = plan["stopping"]["first"], plan["stopping"]["factor"]
    tables = all(isinstance(plan[name], dict) for name in ("train", "content", "search", "stopping"))
    if not tables or plan["search"]["metric"] not in METRICS or not all(type(number) is int for number in numbers):
        raise TypeError


def is_rung(row: Row) -> bool:
    value = row.get("value", "")  # None for a trial whose seeds have all failed
    known = value is None or type(value) in (int, float)
    return type(row.get("rung")) is int and type(row.get("stops")) is bool and known


def safe_name(name: Any) -> bool:
    """Whether this is the name of a folder directly inside the sweep's."""
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name and "\0" not in name
