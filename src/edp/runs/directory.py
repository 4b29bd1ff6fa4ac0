"""The run directory. It can be opened after a crash at any instant.

``config.json`` and ``status.json`` are replaced as a whole; ``metrics.jsonl``, ``evaluations.jsonl``,
``validations.jsonl`` and ``times.jsonl`` grow line by line; Orbax writes ``checkpoints/``. Only ``times.jsonl`` and
``status.json`` depend on the clock: a resumed run has the same metrics and evaluations as an uninterrupted one, byte
for byte.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from edp.errors import UserError
from edp.files import write_errors, write_json, write_text
from edp.runs.claim import Claim, is_claimed
from edp.runs.logs import Tallies
from edp.runs.provenance import provenance
from edp.runs.rows import CHECKS, Row, as_line, is_training, parse_line
from edp.runs.schema import SCHEMA, read_config
from edp.runs.scores import nan_mean

OWN_FOLDERS = ("checkpoints", "checkpoint", "ablations")  # in a run directory


class RunExistsError(UserError):
    """The directory for a new run is not empty."""

    def __init__(self, folder: Path):
        self.folder, self.is_run = folder, (folder / "config.json").is_file()
        super().__init__(f"{folder}: exists already; choose another `out`")


class Run:
    """A run directory, new or old."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._config: Row | None = None
        self.claim = Claim(folder)
        self._tallies: Tallies | None = None

    def start(self, config: Row) -> "Run":
        """Make the directory of a new run."""
        self.check_free(self.folder)
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "config.json", {"schema": SCHEMA, **provenance(), **config})
        return self

    @staticmethod
    def check_free(folder: Path) -> None:
        """Refuse a directory with visible files. A run that failed before training leaves only its lock file."""
        if folder.exists() and not (folder.is_dir() and all(entry.name.startswith(".") for entry in folder.iterdir())):
            raise RunExistsError(folder)

    @staticmethod
    def is_in(folder: Path) -> bool:
        return (folder / "config.json").is_file()

    @classmethod
    def open(cls, folder: Path) -> "Run":
        if not cls.is_in(folder):
            raise UserError(f"{folder}: not a run directory (no config.json in it)")
        refuse_odd_entries(folder)
        run = cls(folder)
        _ = run.config
        return run

    @property
    def config(self) -> Row:
        """The config in the current schema, whichever version wrote it. It is read once."""
        if self._config is None:
            self._config = read_config(self.folder / "config.json")
        return self._config

    def set_config(self, config: Row) -> None:
        self.claim.check()
        write_json(self.folder / "config.json", config)
        self._config = config

    @property
    def title(self) -> str:
        """The task, and whether the data was a look-alike of its file."""
        config = self.config
        return str(config.get("task")) + (" (regenerated data)" if config.get("regenerated") else "")

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def look(self) -> Path:
        """The file that ``acting.inspect`` writes."""
        return self.folder / "look.json"

    @property
    def old_checkpoint(self) -> Path:
        """The only checkpoint of a run of schema 2."""
        return self.folder / "checkpoint"

    def claimed(self) -> AbstractContextManager[None]:
        """Keep other processes from training in this directory."""
        return self.claim.held()

    @property
    def is_claimed(self) -> bool:
        """Whether a process is training in this directory."""
        return is_claimed(self.folder)

    @property
    def status(self) -> Row:
        """The state of the run, the steps done, and what went wrong.

        States are running, finished, stopped, stopped early (by a sweep), failed and killed.
        """
        return self.status_after(next((row["step"] for row in self._rows_backwards("metrics.jsonl")), 0))

    def status_after(self, step: int) -> Row:
        """The status of a run whose last row of metrics is of this step."""
        try:
            status = json.loads((self.folder / "status.json").read_text(encoding="utf-8"))
            status = status if isinstance(status, dict) else {}
        except (OSError, ValueError, RecursionError):
            status = {}
        schema_2 = {"state": "finished"} if self.old_checkpoint.is_dir() else {}  # it was written at the end
        status = {"state": "running", "reason": "", "failed_seeds": {}} | schema_2 | status | {"step": step}
        if self.is_claimed:
            return status | {"state": "running"}
        return status | ({"state": "killed"} if status["state"] == "running" else {})

    def set_status(self, state: str, step: int, reason: str = "", failed_seeds: dict[int, str] | None = None) -> None:
        self.claim.check()
        status = {"state": state, "step": step, "reason": reason, "failed_seeds": failed_seeds or {}}
        status |= {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        path = self.folder / "status.json"
        try:
            write_json(path, status)
        except UserError:
            if not path.exists():
                raise
            with write_errors(path), open(path, "r+b") as file:  # a full disk has room for this: the file is there
                file.write(json.dumps(status).encode())
                file.truncate()

    def log_metrics(self, row: Row) -> None:
        self._append("metrics.jsonl", row)

    def log_evaluation(self, row: Row) -> None:
        self._append("evaluations.jsonl", row)

    def log_offline(self, row: Row) -> None:
        self._append("offline.jsonl", row)

    def log_validation(self, row: Row) -> None:
        self._append("validations.jsonl", row)

    def log_time(self, row: Row) -> None:
        self._append("times.jsonl", row)

    def metrics(self) -> list[Row]:
        return self._rows("metrics.jsonl")

    def evaluations(self) -> list[Row]:
        return self._rows("evaluations.jsonl")

    def validations(self) -> list[Row]:
        return self._rows("validations.jsonl")

    def offline(self) -> list[Row]:
        """Verdicts on checkpoints from the log alone."""
        return self._rows("offline.jsonl")

    def times(self) -> list[Row]:
        return self._rows("times.jsonl")

    def training_evaluations(self) -> list[Row]:
        """The evaluations that training made. Later evaluations and ablations are in the same file."""
        return [row for row in self.evaluations() if is_training(row)]

    def scores(self) -> dict[int, float]:
        """The mean score of each evaluation that training made, by step."""
        return {row["step"]: float(nan_mean(row["scores"])) for row in self.training_evaluations()}

    def rewind(self, step: int) -> None:
        """Remove the rows that training wrote after this step, and lines that a crash left unfinished."""
        self.claim.check()
        self._tallies = None
        for name in ("metrics.jsonl", "evaluations.jsonl", "validations.jsonl", "times.jsonl"):
            path = self.folder / name
            if path.exists():
                kept = lambda row: row["step"] <= step or not is_training(row)  # noqa: E731
                write_text(path, "".join(as_line(row) for row in self._rows(name) if kept(row)))

    def tallies(self) -> Row:
        """How many rows training has written into each log, and their digests. The rows are on disk afterwards."""
        if self._tallies is None:
            self._tallies = Tallies(self)
        with write_errors(self.folder):
            for name in (*CHECKS, "."):  # the folder has the names of new files
                if (self.folder / name).exists() and (name != "." or os.name == "posix"):
                    sync_to_disk(self.folder / name)
        return self._tallies.to_json()

    def odd_rows(self) -> list[str]:
        """A note for each log with lines that are left out, because they are not rows as ``edp`` writes them."""
        counts = {name: (len(self.lines(name)), len(self._rows(name))) for name in CHECKS}
        return [
            f"{self.folder / name}: {lines - rows} of {lines} lines cannot be read, and are left out"
            for name, (lines, rows) in counts.items()
            if rows < lines
        ]

    def _append(self, name: str, row: Row) -> None:
        self.claim.check()
        path, line = self.folder / name, as_line(row)
        with write_errors(path), open(path, "a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            unfinished = file.read(1) not in (b"", b"\n")  # a crash left a part of a line
            text = b"\n" * unfinished + line.encode()
            while text:
                text = text[file.write(text) :]  # raises if only a part was written and the rest cannot be
        if self._tallies:
            self._tallies.add(name, row, line)

    def _rows(self, name: str) -> list[Row]:
        """The rows of a log, without lines that a crash left unfinished."""
        return [row for _, row in self.parsed(name)]

    def parsed(self, name: str) -> list[tuple[str, Row]]:
        """The lines of a log that are rows, with their text."""
        return [(text, row) for text in self.lines(name) if (row := parse_line(text, name))]

    def _rows_backwards(self, name: str) -> Iterator[Row]:
        return (row for text in reversed(self.lines(name)) if (row := parse_line(text, name)))

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        try:
            return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def refuse_odd_entries(folder: Path, top: bool = True) -> None:
    """Refuse symbolic links in a run directory, which lead elsewhere, and pipes and devices, which are read forever.

    Folders of other programs, such as loggers, are not looked into.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as entries:  # a process may be training in it
        for entry in entries:
            if entry.is_symlink():
                raise UserError(f"{entry.path}: a symbolic link, which is not allowed in a run directory")
            if entry.is_dir():
                if not top or entry.name in OWN_FOLDERS:
                    refuse_odd_entries(Path(entry.path), top=False)
            elif not entry.is_file() and os.path.lexists(entry.path):
                raise UserError(f"{entry.path}: a pipe, a device or a socket, which is not allowed in a run directory")


def sync_to_disk(path: Path) -> None:
    """Wait until the content of a file or a folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class RemoteRun(Run):
    """The run directory as seen by a process that does not write it: the config is known, and writes are ignored."""

    def __init__(self, config: Row):
        super().__init__(Path(os.devnull))
        self._config = config

    def set_status(self, state: str, step: int, reason: str = "", failed_seeds: dict[int, str] | None = None) -> None:
        pass

    def _append(self, name: str, row: Any) -> None:
        pass
