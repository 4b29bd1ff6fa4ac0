"""Gymnasium-Robotics without what it prints when it is imported: notices about environments that are not used here."""

import contextlib
import importlib
import io
from typing import Any


def load(name: str = "") -> Any:
    """Its module ``envs.NAME``, or itself, which registers its environments."""
    with contextlib.redirect_stderr(io.StringIO()):
        return importlib.import_module("gymnasium_robotics" + f".envs.{name}" * bool(name))
