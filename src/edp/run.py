"""The run directory: a resolved config, metrics and evaluations line by line, and a checkpoint."""

import json
import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edp.errors import UserError

SCHEMA = 2
PACKAGES = ("edp", "jax", "jaxlib", "equinox", "optax", "orbax-checkpoint", "gymnasium", "mujoco", "numpy")


class Run:
    """A run directory, new or old."""

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def create(cls, folder: Path, config: dict[str, Any]) -> "Run":
        cls.check_free(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            about = {
                "schema": SCHEMA,
                "packages": {name: version(name) for name in PACKAGES},
                "python": platform.python_version(),
            }
            write_json(folder / "config.json", about | config)
        except OSError as error:
            raise UserError(f"{folder}: cannot write here ({error.strerror})") from None
        return cls(folder)

    @staticmethod
    def check_free(folder: Path) -> None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder}: already there; choose another --out, or remove it")

    @classmethod
    def open(cls, folder: Path) -> "Run":
        if not (folder / "config.json").is_file():
            raise UserError(f"{folder}: not a run directory (no config.json in it)")
        run = cls(folder)
        if run.config.get("schema") != SCHEMA:
            raise UserError(f"{folder}: written with schema {run.config.get('schema')}, this version reads {SCHEMA}")
        return run

    @property
    def config(self) -> dict[str, Any]:
        try:
            config = json.loads((self.folder / "config.json").read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"{self.folder / 'config.json'}: damaged ({error})") from None
        if not isinstance(config, dict):
            raise UserError(f"{self.folder / 'config.json'}: damaged (not a JSON object)")
        return config

    @property
    def title(self) -> str:
        """The task, and whether the data was a look-alike of its file."""
        config = self.config
        return config["task"] + (" (regenerated data)" if config.get("regenerated") else "")

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def log_metrics(self, row: dict[str, Any]) -> None:
        self._append("metrics.jsonl", row)

    def log_evaluation(self, row: dict[str, Any]) -> None:
        self._append("evaluations.jsonl", row)

    def evaluations(self) -> list[dict[str, Any]]:
        path = self.folder / "evaluations.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _append(self, name: str, row: dict[str, Any]) -> None:
        try:
            with open(self.folder / name, "a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise UserError(f"{self.folder / name}: cannot write ({error.strerror})") from None


def write_json(path: Path, content: Any) -> None:
    """Write the file whole or not at all."""
    text = json.dumps(content, indent=2) + "\n"
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
