"""Gymnasium-Robotics, imported without the notices that it prints about environments not used here."""

import contextlib
import importlib
import io
from typing import Any


def import_robotics(name: str = "") -> Any:
    """Import the module ``envs.NAME``, or the package, which registers its environments."""
    with contextlib.redirect_stderr(io.StringIO()):
        return importlib.import_module("gymnasium_robotics" + f".envs.{name}" * bool(name))
