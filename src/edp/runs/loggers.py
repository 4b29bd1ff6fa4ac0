"""Loggers in addition to the run directory. If a logger fails, training continues without it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from edp.errors import UserError, first_line, unknown


class Logger(Protocol):
    def log(self, step: int, values: dict[str, float]) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in the run directory, for ``tensorboard --logdir``."""

    def __init__(self, folder: Path, config: dict[str, Any]):
        from tensorboardX import SummaryWriter  # pyright: ignore

        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, step: int, values: dict[str, float]) -> None:
        self.check()
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.check()
        self.writer.close()

    def check(self) -> None:
        """Raise if the writing thread has ended, for example because the disk is full: a write would block forever."""
        files: Any = self.writer._get_file_writer()
        thread = getattr(files.event_writer, "_worker", None)
        if thread is not None and not thread.is_alive():
            raise OSError("its writer has stopped")


class WandB:
    """Weights & Biases; offline unless WANDB_MODE says otherwise (``wandb sync`` sends it later)."""

    def __init__(self, folder: Path, config: dict[str, Any]):
        import os

        import wandb  # pyright: ignore

        mode: Any = os.environ.get("WANDB_MODE", "offline")
        self.run = wandb.init(project="edp", name=folder.name, dir=str(folder), config=config, mode=mode, reinit=True)

    def log(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        self.run.finish()


LOGGERS: dict[str, Callable[[Path, dict[str, Any]], Logger]] = {"tensorboard": TensorBoard, "wandb": WandB}


def check_loggers(names: list[str]) -> None:
    """Refuse unknown loggers, and loggers whose package is not installed."""
    from importlib.util import find_spec

    packages = {"tensorboard": "tensorboardX", "wandb": "wandb"}
    for name in names:
        if name not in LOGGERS:
            raise unknown("logger", name, LOGGERS)
        if find_spec(packages[name]) is None:
            raise UserError(f"the logger {name} needs another package: pip install {packages[name]}")


class Loggers:
    """Several loggers as one that never raises. ``warn`` is called once for each logger that fails."""

    def __init__(self, names: list[str], folder: Path, config: dict[str, Any], warn: Callable[[str], None]):
        self.warn, self.open = warn, {}
        for name in names:
            self._attempt(name, lambda name=name: self.open.__setitem__(name, LOGGERS[name](folder, config)))

    def log(self, step: int, values: dict[str, float]) -> None:
        for name, logger in list(self.open.items()):
            self._attempt(name, lambda logger=logger: logger.log(step, values))

    def close(self) -> None:
        for name, logger in list(self.open.items()):
            self._attempt(name, logger.close)

    def _attempt(self, name: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:
            self.open.pop(name, None)
            self.warn(f"logging to {name} failed; training continues without it ({first_line(error)})")
