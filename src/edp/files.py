"""The one folder outside the user's own that anything is written to."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where built-in sets and compiled programs are kept: ``$EDP_CACHE``, or ``edp`` in the user's cache folder."""
    if "EDP_CACHE" in os.environ:
        return Path(os.environ["EDP_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edp"


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles, so that it is compiled once. To be called before JAX is imported."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
