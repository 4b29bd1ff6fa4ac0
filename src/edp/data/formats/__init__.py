"""The data formats, and the functions that read and write all of them.

To add a format, write a module of this folder that defines ``FORMAT``, and add its line to ``FORMATS``. A module is
imported when a file of its format is first used, because pyarrow and Minari take long to import.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from edp.data.checks import check_exists
from edp.data.log import Log
from edp.errors import UserError
from edp.files import check_writable, is_inside

FOLDER = "/"
LEROBOT_INFO = Path("meta", "info.json")  # a folder with this file is a LeRobot data set
FORMATS = {  # module: the suffixes of its files, a prefix that ends in a colon, or FOLDER if it reads folders
    "hdf5": (".hdf5", ".h5"),
    "npz": (".npz",),
    "table": (".csv", ".parquet", ".tsv", ".csv.gz", ".tsv.gz", ".jsonl", ".ndjson", ".jsonl.gz", ".xlsx", FOLDER),
    "minari": ("minari:",),
    "lerobot": (),  # known by LEROBOT_INFO
}
PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")  # other files with these suffixes are not read
WRITTEN = (".csv", ".parquet", ".npz", ".hdf5", ".h5")


def refuse_writing(name: str, log: Log) -> str:
    raise UserError(f"{name}: data of this format cannot be written")


@dataclass(frozen=True)
class Format:
    """How one format is read and written."""

    open: Callable[[str, Mapping[str, Any], int | None], Log]  # from a name, the meaning of columns, the episode limit
    write: Callable[[str, Log], str] = refuse_writing  # write a log to a name, and return where it is
    named_columns: bool = False  # whether the meaning of columns can be given
    place: Callable[[str], Path] = Path  # where data of this name is on the disk
    # Refuse a place that cannot be written or exists: `overwrite`, and what is being read (see ``check_writable``).
    check_place: Callable[[Path, bool, Iterable[Path]], None] = check_writable
    # Why the name of a log's environment is lost; empty if it is stored.
    loses_environment: Callable[[Log], str] = lambda log: "the format has no place for it"
    needs_next_observations: bool = False  # whether steps without a known next state are left out
    download: Callable[[str], Path] | None = None


def marks(kind: Callable[[str], bool]) -> dict[str, str]:
    return {mark: module for module, own in FORMATS.items() for mark in own if kind(mark)}


PREFIXES, SUFFIXES = marks(lambda mark: mark.endswith(":")), marks(lambda mark: mark.startswith("."))
FOLDERS = marks(lambda mark: mark == FOLDER)


def describe_formats(written: bool = False) -> str:
    """List the formats for help texts and messages; folders can only be read, and are left out if ``written``."""
    suffixes = WRITTEN if written else (*SUFFIXES, "a folder of tables", "a LeRobot folder")
    *names, last = [*suffixes, *(f"{prefix}NAME" for prefix in PREFIXES)]
    return f"{', '.join(names)} or {last}"


def table_suffixes() -> str:
    """List the suffixes of tables, whose columns need a meaning."""
    return ", ".join(suffix for suffix, module in SUFFIXES.items() if module == FOLDERS[FOLDER])


def suffix_of(name: str) -> str:
    """Return the suffix of a file; if it is packed, with the one before."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    return "".join(suffixes[-2:]) if "".join(suffixes[-2:]) in SUFFIXES else "".join(suffixes[-1:])


def prefix_of(name: str) -> str:
    """Return the prefix of a name that is not a path, such as ``minari:``, or an empty text."""
    return next((prefix for prefix in PREFIXES if name.startswith(prefix)), "")


def exists(name: str) -> bool:
    """Return whether a path exists. Names with a prefix are not looked up."""
    return bool(prefix_of(name)) or path_is(name, Path.exists)


def absolute(name: str) -> str:
    return name if prefix_of(name) else str(Path(name).absolute())


def format_of(name: str) -> Format:
    """Import the format of a name; a file with another suffix is read if it is HDF5."""
    module = PREFIXES.get(prefix_of(name)) or SUFFIXES.get(suffix_of(name))
    if not prefix_of(name) and path_is(name, Path.is_dir):
        module = "lerobot" if path_is(name, is_lerobot) else FOLDERS[FOLDER]
    if module is None:
        refuse_other_files(name)
    return import_module(f"{__name__}.{module or 'hdf5'}").FORMAT


def is_lerobot(path: Path) -> bool:
    return (path / LEROBOT_INFO).exists()


def path_is(name: str, test: Callable[[Path], bool]) -> bool:
    try:
        return test(Path(name))
    except OSError:  # not a valid name of a file
        return False


def refuse_other_files(name: str) -> None:
    """Say what to do about a file of an unknown format. HDF5 files pass."""
    import h5py

    suffix = Path(name).suffix.lower()
    if not path_is(name, Path.exists):
        raise UserError(f"{name}: no such file or folder")
    check_exists(Path(name))
    if suffix in PACKED:
        raise UserError(f"{name}: unpack it first")
    if not h5py.is_hdf5(name):
        raise UserError(f"{name}: data is {describe_formats()}")


def is_source(name: str) -> bool:
    """Return whether this names data, not a task."""
    known = prefix_of(name) or suffix_of(name) in (*SUFFIXES, *PACKED) or name.endswith(FOLDER)
    return bool(known) or path_is(name, Path.exists)


def open_log(name: str, columns: Mapping[str, Any] = {}, episode_limit: int | None = None) -> Log:
    """Open a file, a folder of tables, a LeRobot data set or a Minari data set.

    ``columns`` gives the meaning of a table's columns (see ``Columns``). ``episode_limit`` is the length of episodes in
    files of arrays that have no timeouts.
    """
    data_format = format_of(name)
    log = data_format.open(name, columns, episode_limit)
    if columns and not data_format.named_columns:
        tables = table_suffixes()
        raise UserError(f"{name}: `{next(iter(columns))}` is for tables ({tables}), whose columns need a meaning")
    return replace(log, read_from=(data_format.place(name),))


def open_frame(frame: Any, columns: Mapping[str, Any] = {}) -> Log:
    """Open a table in memory: a data frame of pandas or Polars, a table of Arrow, or a mapping of columns."""
    from edp.data.formats import table
    from edp.data.formats.columns import columns_from

    return table.open_frame(frame, columns_from(columns))


def target_format(name: str) -> Format:
    if not prefix_of(name) and suffix_of(name) not in WRITTEN:
        raise UserError(f"{name}: data is written to {describe_formats(written=True)}")
    module = PREFIXES.get(prefix_of(name)) or SUFFIXES[suffix_of(name)]
    return import_module(f"{__name__}.{module}").FORMAT


def check_target(name: str, overwrite: bool = False, reading: Iterable[Path] = ()) -> None:
    """Refuse a name that cannot be written or must not be replaced, before the work that produces its content.

    ``reading`` are the files and folders that the content is made from.
    """
    data_format = target_format(name)
    place, reading = data_format.place(name), list(reading)
    for folder in filter(Path.is_dir, reading):
        if is_inside(place, folder):
            raise UserError(f"{name}: is in {folder}, which is being read; choose a place outside of it")
    data_format.check_place(place, overwrite, reading)


def place_of(name: str) -> Path:
    """Return where data of this name is on the disk."""
    return format_of(name).place(name)


def write_log(name: str, log: Log, overwrite: bool = False) -> str:
    """Write a log in the format that the suffix or prefix of the name means, and return where it is."""
    check_target(name, overwrite, log.read_from)
    return target_format(name).write(name, log)


def loses_environment(name: str, log: Log) -> str:
    """Return why a log loses its environment when it is written to this name; empty if it is stored."""
    return target_format(name).loses_environment(log) if log.env else ""


def loses_steps(name: str, log: Log) -> bool:
    """Return whether steps without a known next state are left out when a log is written to this name."""
    known = any(steps.next_observations is not None for steps in islice(log.pieces(), 1))
    return target_format(name).needs_next_observations and not known


def download(name: str) -> Path:
    """Download data whose name has a prefix, such as ``minari:mine/first-v0``."""
    fetch = format_of(name).download
    if fetch is None:
        raise UserError(f"{name}: data of this format cannot be downloaded")
    return fetch(name)
