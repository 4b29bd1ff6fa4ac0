"""Which rows of its logs a run must have: checkpoints record how many there were, and a digest of them."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edp.errors import UserError
from edp.runs.about import checkpoint_steps, read_about
from edp.runs.rows import Row, is_training

if TYPE_CHECKING:
    from edp.runs.directory import Run

TALLIED = ("metrics.jsonl", "evaluations.jsonl", "validations.jsonl")  # the logs whose rows can be made again


class Tally:
    """The number of rows that training wrote into a log, and their digest."""

    def __init__(self):
        self.rows, self.hash = 0, hashlib.sha256()

    def add(self, line: str) -> None:
        self.rows += 1
        self.hash.update(line.encode())

    def to_json(self) -> Row:
        return {"rows": self.rows, "sha256": self.hash.hexdigest()}


class Tallies:
    """Tallies of the logs of a run, kept up to date while rows are added."""

    def __init__(self, run: "Run"):
        self.logs = {name: tally_lines(training_lines(run, name)) for name in TALLIED}

    def add(self, name: str, row: Row, line: str) -> None:
        if name in self.logs and is_training(row):
            self.logs[name].add(line)

    def to_json(self) -> Row:
        return {name: tally.to_json() for name, tally in self.logs.items()}


class Lost(NamedTuple):
    """Rows that the logs should have."""

    notes: tuple[str, ...] = ()  # what is missing; empty if nothing is
    step: int | None = None  # of the checkpoint from which they can be made again; None if there is none


def tally_lines(lines: list[str]) -> Tally:
    tally = Tally()
    for line in lines:
        tally.add(line)
    return tally


def training_lines(run: "Run", name: str) -> list[str]:
    """The lines of a log that training wrote, as they are in the file."""
    return [f"{text}\n" for text, row in run.parsed(name) if is_training(row)]


def find_lost_rows(run: "Run") -> Lost:
    """Compare the logs of a run with what its checkpoints recorded, from the last checkpoint to the first.

    Checkpoints that are damaged, or older than such records, are not compared.
    """
    lines, notes = {}, ()
    for step in reversed(checkpoint_steps(run.checkpoints)):
        try:
            recorded = read_about(run.checkpoints / str(step)).get("logs")
        except UserError:
            continue
        if recorded is None:
            return Lost(notes, step) if notes else Lost()
        lines = lines or {name: training_lines(run, name) for name in TALLIED}
        missing = [missing_text(run.folder / name, step, recorded[name], lines[name]) for name in TALLIED]
        missing = tuple(filter(None, missing))
        if not missing:
            return Lost(notes, step) if notes else Lost()
        notes = notes or missing
    return Lost(notes)


def missing_text(log: Path, step: int, recorded: Row, lines: list[str]) -> str | None:
    """Say how many of the rows that were written up to a step are missing; None if all are there."""
    rows = recorded["rows"]
    if tally_lines(lines[:rows]).to_json() == recorded:
        return None
    if len(lines) < rows:
        return f"{log}: {rows - len(lines)} of its {rows} rows up to step {step:,} are missing"
    return f"{log}: some of its {rows} rows up to step {step:,} are missing or changed"
