"""One way in and one way out for data of every format."""

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import h5py

from edp.data.formats import columns, hdf5, npz
from edp.data.log import Log, checked, whole
from edp.errors import UserError
from edp.files import check_writable

HDF5, NPZ, TABLES = (".hdf5", ".h5"), (".npz",), (".csv", ".parquet")
TABS, PACKED = (".tsv", ".tab"), (".gz", ".zip", ".bz2", ".xz", ".zst")
MINARI = "minari:"


def is_source(name: str) -> bool:
    """Whether this is data, and not the name of a task."""
    suffixes = HDF5 + NPZ + TABLES + TABS + PACKED
    return name.startswith(MINARI) or Path(name).suffix.lower() in suffixes or name.endswith("/") or is_there(name)


def is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # no name that a file could have
        return False


def is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # no name that a file could have
        return False


def exists(name: str) -> bool:
    return name.startswith(MINARI) or is_there(name)


def absolute(name: str) -> str:
    return name if name.startswith(MINARI) else str(Path(name).absolute())


def open_log(name: str, meaning: Mapping[str, Any] = {}, episode_limit: int | None = None) -> Log:
    """The steps of a file, a folder or a data set of Minari's; ``meaning`` is that of a table's columns.

    ``episode_limit`` tells where episodes end in files of arrays that do not say it.
    """
    path, suffix = Path(name), Path(name).suffix.lower()
    table = suffix in TABLES or is_folder(name)
    if meaning and not table:
        given = f"`{next(iter(meaning))}`"
        raise UserError(f"{name}: {given} is for tables ({', '.join(TABLES)}), whose columns need a meaning")
    if name.startswith(MINARI):
        from edp.data.formats.minari import open_minari

        return open_minari(name.removeprefix(MINARI))
    if table:
        from edp.data.formats.table import open_table

        return open_table(path, columns.of(meaning))
    if suffix in NPZ:
        return npz.open_npz(path, episode_limit)
    if suffix not in HDF5:
        refuse_other(name)
    return hdf5.open_log(path, episode_limit)


def refuse_other(name: str) -> None:
    """What to do about a file of another kind; one that is HDF5 by its content passes."""
    path, suffix = Path(name), Path(name).suffix.lower()
    if not is_there(name):
        raise UserError(f"{name}: no such file or folder")
    if suffix in TABS:
        raise UserError(f"{name}: rename it to .csv (tabs are fine)")
    if suffix in PACKED:
        raise UserError(f"{name}: unpack it first")
    if not h5py.is_hdf5(path):
        raise UserError(f"{name}: data is {', '.join(HDF5 + NPZ + TABLES)}, a folder of tables or {MINARI}NAME")


def check_target(name: str) -> None:
    """Find out before long work whether its result can be kept."""
    if name.startswith(MINARI):
        from edp.data.formats.minari import path_of

        if path_of(name.removeprefix(MINARI)).exists():
            raise UserError(f"{name}: already there; choose another name or version")
    elif Path(name).suffix.lower() not in HDF5 + NPZ + TABLES:
        raise UserError(f"{name}: data is written to {', '.join(HDF5 + NPZ + TABLES)} or {MINARI}NAME")
    else:
        check_writable(Path(name))


def write(name: str, log: Log) -> str:
    """Write a log in the format that the name says; gives the place."""
    check_target(name)
    path, suffix = Path(name), Path(name).suffix.lower()
    if suffix == ".csv":
        refuse_broken_names(name, log)
    if name.startswith(MINARI):
        from edp.data.formats.minari import write_minari

        return str(write_minari(name.removeprefix(MINARI), log, checked(log)))
    steps = whole(log)
    if suffix in TABLES:
        from edp.data.formats.table import write_table

        write_table(path, steps, log.observation_names, log.action_names)
    elif suffix in NPZ:
        npz.write_npz(path, steps)
    else:
        hdf5.write(path, {key: part for key, part in steps._asdict().items() if part is not None}, attributes_of(log))
    return name


def refuse_broken_names(name: str, log: Log) -> None:
    for column in (*log.observation_names, *log.action_names):
        if [column] != column.splitlines():
            raise UserError(f"{name}: a CSV file cannot have a column called {column!r}, on two lines: write .parquet")


def knows_next(log: Log) -> bool:
    """Whether the state after each step is there."""
    return any(steps.next_observations is not None for steps in islice(log.pieces(), 1))


def attributes_of(log: Log) -> dict[str, Any]:
    ends = {"min_return": log.reference[0], "max_return": log.reference[1]} if log.reference else {}
    options = {"env_options": json.dumps(dict(log.env_options))} if log.env_options else {}
    return ({"env": log.env} | options if log.env else {}) | ends


def loses_environment(name: str, log: Log) -> str:
    """Why a copy would not say which environment the log was recorded in; nothing if it does."""
    from edp.envs.make import is_registered

    if not log.env or Path(name).suffix.lower() in HDF5:
        return ""
    if not name.startswith(MINARI):
        return f"{HDF5[0]} and {MINARI}NAME would"
    return "" if is_registered(log.env) else "it is not registered here"
