"""Import Gymnasium-Robotics without the notices that it prints about environments that are not used here."""

import contextlib
import importlib
import io
from typing import Any


def load(name: str = "") -> Any:
    """The module ``gymnasium_robotics.envs.NAME``, or the package, which registers its environments."""
    with contextlib.redirect_stderr(io.StringIO()):
        return importlib.import_module("gymnasium_robotics" + f".envs.{name}" * bool(name))
