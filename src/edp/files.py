"""Writing files, and the cache folder."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edp.errors import UserError

TEMPORARY = ".tmp"  # marks files that are still being written


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path``. It replaces ``path`` on success and is removed on an error.

    A reader therefore sees the old content or the new content, never a part, even after a power cut.
    """
    part = None
    try:
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY + path.suffix)
        os.close(handle)
        yield Path(part)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException as error:
        if part is not None:
            with suppress(FileNotFoundError):
                os.unlink(part)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from None
        raise


def write_text(path: Path, text: str) -> None:
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before the work that produces its content."""
    if path.is_dir():
        raise UserError(f"{path}: is a directory; give the name of a file")
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one line that names ``path``."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot write here ({error.strerror or error})")


def remove_temporary(folder: Path) -> None:
    """Remove temporary files of writes that a crash interrupted."""
    for left in folder.glob(f".*{TEMPORARY}*"):
        left.unlink()


def cache_folder() -> Path:
    """The folder of built-in data sets and compiled programs: ``$EDP_CACHE``, or ``edp`` in the user's cache folder."""
    if "EDP_CACHE" in os.environ:
        return Path(os.environ["EDP_CACHE"])
    from platformdirs import user_cache_path

    return user_cache_path("edp", appauthor=False)


def keep_compiled_programs() -> None:
    """Make JAX keep compiled programs in the cache folder, unless the user has chosen another place.

    Start-up is faster if this is called before JAX is imported.
    """
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    if "jax" in sys.modules:
        import jax

        if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore
            jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
