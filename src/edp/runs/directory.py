"""The run directory: what people keep. It opens after a crash at any instant.

``config.json`` and ``status.json`` are written whole or not at all, ``metrics.jsonl``, ``evaluations.jsonl``,
``validations.jsonl`` and ``times.jsonl`` line by line, and ``checkpoints/`` by Orbax. Whatever depends on the clock is
in ``times.jsonl`` and ``status.json`` alone: a resumed run has the same metrics and evaluations as one that was never
stopped, byte for byte.
"""

import fcntl
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

import edp
from edp.errors import UserError
from edp.files import remove_temporary, write_errors, write_json, write_text
from edp.runs.scores import known_mean

SCHEMA = 4
PACKAGES = ("jax", "jaxlib", "equinox", "optax", "orbax-checkpoint", "gymnasium", "mujoco", "numpy")
LOCK = ".lock"
Row = dict[str, Any]


class Run:
    """A run directory, new or old."""

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def create(cls, folder: Path, config: Row) -> "Run":
        cls.check_free(folder)
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / "config.json", {"schema": SCHEMA, **about_here(), **config})
        return cls(folder)

    @staticmethod
    def check_free(folder: Path) -> None:
        """Nothing may be there, but for what a run leaves that ended before it began."""
        if folder.exists() and not (folder.is_dir() and all(entry.name.startswith(".") for entry in folder.iterdir())):
            again = f", or go on with it: edp train --resume {folder}" if (folder / "config.json").is_file() else ""
            raise UserError(f"{folder}: already there; choose another --out{again}")

    @classmethod
    def open(cls, folder: Path) -> "Run":
        if not (folder / "config.json").is_file():
            raise UserError(f"{folder}: not a run directory (no config.json in it)")
        for place in (folder, folder / "checkpoints", folder / "ablations"):
            for entry in place.iterdir() if place.is_dir() else ():
                if entry.is_symlink():  # writing through it would write elsewhere
                    raise UserError(f"{entry}: a link; a run directory holds its files itself")
        run = cls(folder)
        _ = run.config
        return run

    @property
    def config(self) -> Row:
        """As this version writes it, whichever version wrote it."""
        where = self.folder / "config.json"
        try:
            config = json.loads(where.read_text())
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{where}: damaged ({error})") from None
        if not isinstance(config, dict) or not isinstance(config.get("schema"), int):
            raise UserError(f"{where}: damaged (not the config of a run)")
        if config["schema"] not in (*UPGRADES, SCHEMA):
            raise UserError(f"{where}: written with schema {config['schema']}, this version reads up to {SCHEMA}")
        try:
            while config["schema"] != SCHEMA:
                config = UPGRADES[config["schema"]](config)
        except (KeyError, TypeError) as error:
            raise UserError(f"{where}: damaged (no {error})") from None
        return config

    def set_config(self, config: Row) -> None:
        with write_errors(self.folder):
            write_json(self.folder / "config.json", config)

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
        """What the policy does, if somebody has looked."""
        return self.folder / "look.json"

    @property
    def old_checkpoint(self) -> Path:
        """Where schema 2 had its only one."""
        return self.folder / "checkpoint"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Nobody else may train in this directory meanwhile. The claim ends with the process, however that ends."""
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            with write_errors(self.folder):
                if not locked(lock):
                    raise UserError(f"{self.folder}: another process is training in it")
                remove_temporary(self.folder)
            yield
        finally:
            os.close(lock)

    @property
    def is_claimed(self) -> bool:
        try:
            with open(self.folder / LOCK) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def status(self) -> Row:
        """The state of the run (running, finished, stopped, failed, killed), the steps done, and what went wrong."""
        try:
            status = json.loads((self.folder / "status.json").read_text())
            status = status if isinstance(status, dict) else {}
        except (OSError, ValueError, RecursionError):
            status = {}
        step = next((row["step"] for row in self._backwards("metrics.jsonl")), 0)
        schema_2 = {"state": "finished"} if self.old_checkpoint.is_dir() else {}  # it was written at the end
        status = {"state": "running", "reason": "", "failed_seeds": {}} | schema_2 | status | {"step": step}
        if self.is_claimed:
            return status | {"state": "running"}
        return status | ({"state": "killed"} if status["state"] == "running" else {})

    def set_status(self, state: str, step: int, reason: str = "", failed_seeds: dict[int, str] | None = None) -> None:
        status = {"state": state, "step": step, "reason": reason, "failed_seeds": failed_seeds or {}}
        with write_errors(self.folder):
            write_json(self.folder / "status.json", status | {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z")})

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

    def training_evaluations(self) -> list[Row]:
        """Those that training made (``edp eval`` and ``edp ablate`` add others)."""
        return [row for row in self.evaluations() if row.get("kind", "training") == "training"]

    def scores(self) -> dict[int, float]:
        """The mean score of each evaluation that training made, by its step."""
        return {row["step"]: float(known_mean(row["scores"])) for row in self.training_evaluations()}

    def offline_values(self) -> dict[int, float]:
        """Values of checkpoints from the data alone, as means over seeds."""
        return {row["step"]: float(known_mean(row["values"])) for row in self._rows("offline.jsonl")}

    def times(self) -> list[Row]:
        return self._rows("times.jsonl")

    def rewind(self, step: int) -> None:
        """Forget what training wrote after this step, and lines that a crash left unfinished."""
        for name in ("metrics.jsonl", "evaluations.jsonl", "validations.jsonl", "times.jsonl"):
            path = self.folder / name
            if path.exists():
                kept = lambda row: row["step"] <= step or row.get("kind", "training") != "training"  # noqa: E731
                with write_errors(path):
                    write_text(path, "".join(line(row) for row in self._rows(name) if kept(row)))

    def _append(self, name: str, row: Row) -> None:
        path = self.folder / name
        with write_errors(path), open(path, "a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            broken = file.read(1) not in (b"", b"\n")  # a crash left a line unfinished
            text = b"\n" * broken + line(row).encode()
            if file.write(text) != len(text):
                raise OSError(None, "the disk is full")

    def _rows(self, name: str) -> list[Row]:
        """The rows of a file, but for lines that a crash left unfinished."""
        return list(self._backwards(name))[::-1]

    def _backwards(self, name: str) -> Iterator[Row]:
        return (row for text in reversed(self.lines(name)) if (row := row_of(text)))

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        try:
            return path.read_text(errors="replace").splitlines() if path.exists() else []
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def row_of(text: str) -> Row | None:
    """A line of a log, unless it is none: a crash may leave one unfinished."""
    try:
        row = orjson.loads(text)
    except ValueError:
        row = slowly(text)
    return row if isinstance(row, dict) and isinstance(row.get("step"), int) else None


def slowly(text: str) -> Any:
    """As Python reads it, which knows NaN; None if it is nothing at all."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class Elsewhere(Run):
    """The run directory of a run that another process keeps: nothing is in it, and nothing is written."""

    def __init__(self, config: Row):
        super().__init__(Path(os.devnull))
        self._config = config

    @property
    def config(self) -> Row:
        return self._config

    def set_status(self, state: str, step: int, reason: str = "", failed_seeds: dict[int, str] | None = None) -> None:
        pass

    def _append(self, name: str, row: Row) -> None:
        pass


def locked(lock: int, tries: int = 5) -> bool:
    """Take the lock, unless somebody else keeps it (looking at it takes it, too, for a moment)."""
    for _ in range(tries):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02)
    return False


def about_here() -> Row:
    """What a run's numbers may depend on, beside its options."""
    return {
        "packages": {"edp": edp.__version__, **{name: version(name) for name in PACKAGES}},
        "python": platform.python_version(),
        "commit": commit(),
    }


def commit() -> str | None:
    """The commit of the source, if it is a checkout; marked where files have been changed since."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def from_schema_2(config: Row) -> Row:
    """Schema 2 had one checkpoint, at the end; its steps between checkpoints stand for that."""
    training = config["training"] | {"checkpoint_every": config["training"]["steps"]}
    return config | {"schema": 3, "training": training, "commit": None, "data_sha256": None}


def from_schema_3(config: Row) -> Row:
    """Schema 3 knew the tasks here alone, whose actions are in [-1, 1]."""
    return config | {"schema": 4, "units": None, "own_task": None, "columns": {}}


UPGRADES: dict[int, Callable[[Row], Row]] = {2: from_schema_2, 3: from_schema_3}


def line(row: Row) -> str:
    return json.dumps(row) + "\n"
