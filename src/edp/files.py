"""Writing files, and the cache folder."""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edp.errors import UserError, short_repr

TEMPORARY = ".tmp"  # marks files that are still being written
MADE_BY = "made by edp"  # near the beginning of pages and pictures
BEGINNING = 2048  # bytes of a file in which ``MADE_BY`` is looked for


def as_path(name: Any, option: str) -> Path:
    """The path with a name that a user gives for an option in Python."""
    try:
        return Path(name)
    except TypeError:
        raise UserError(f"`{option}` must be the name of a file or folder, not {short_repr(name)}") from None


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


def check_writable(path: Path, overwrite: bool = False, reading: Iterable[Path] = ()) -> None:
    """Refuse a file that cannot be written or must not be replaced, before the work that produces its content."""
    if path.is_dir():
        raise UserError(f"{path}: is a directory; give the name of a file")
    refuse_existing(path, overwrite, reading)
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass


def refuse_existing(path: Path, overwrite: bool = False, reading: Iterable[Path] = ()) -> None:
    """Refuse a path that exists, unless ``overwrite`` is given.

    ``reading`` are the files and folders that the new content is made from: these are never replaced.
    """
    if any(is_same_file(path, file) for source in reading for file in (source, *source.rglob("*"))):
        raise UserError(f"{path}: is being read, and cannot be replaced; choose another name")
    if os.path.lexists(path) and not overwrite:
        raise UserError(f"{path}: already exists; choose another name, or replace it with `overwrite`")


def check_page(path: Path, named: bool, overwrite: bool, reading: Iterable[Path] = ()) -> None:
    """``check_writable`` for a page that is made again and again.

    Under its usual name, which the user has not ``named``, a page that was made by edp is replaced.
    """
    check_writable(path, overwrite or (not named and is_made_by_edp(path)), reading)


def is_made_by_edp(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MADE_BY.encode() in file.read(BEGINNING)
    except OSError:
        return False


def is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, also through links or in another spelling."""
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist
        return False


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path, which may not exist, is in a folder that exists, or below it."""
    parent = Path(os.path.realpath(path.parent))
    return any(is_same_file(each, folder) for each in (parent, *parent.parents))


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
