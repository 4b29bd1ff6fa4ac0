"""NumPy's ``.npz`` files, with the array names of D4RL's layout."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from edp.data.arrays import from_arrays
from edp.data.checks import check_exists
from edp.data.dataset import read_steps
from edp.data.formats import Format
from edp.data.formats.columns import list_names, printable
from edp.data.log import OPTIONAL, REQUIRED, Log
from edp.errors import UserError, first_line
from edp.files import replacing


def open_npz(path: Path, episode_limit: int | None = None) -> Log:
    arrays = read_npz(path)
    missing = [key for key in REQUIRED if key not in arrays]
    if missing:
        raise UserError(f"{path}: missing {', '.join(missing)} (has: {list_names(sorted(arrays))})")
    columns = {key: arrays[key] for key in (*REQUIRED, *OPTIONAL) if key in arrays}
    for key, column in columns.items():
        if not column.ndim:
            raise UserError(f"{path}: {key} is one number, not a column")
    others = tuple(printable(name) for name in sorted(arrays.keys() - columns.keys()))
    return from_arrays(**columns, episode_limit=episode_limit, name=str(path), left_out=others)


def read_npz(path: Path, kind: str = "file of arrays") -> dict[str, np.ndarray]:
    """Read all arrays of a file. ``kind`` says in messages what the file should be."""
    check_exists(path, kind)
    if not zipfile.is_zipfile(path):
        raise UserError(f"{path}: not a {kind} (it is no .npz file, or not a whole one)")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: read_member(file, name) for name in file.files}
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds
        raise UserError(f"{path}: not a {kind} ({first_line(error)})") from None
    others = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if others:
        raise UserError(f"{path}: not a {kind} ({list_names(others)}: no array)")
    return arrays


def read_member(file: Any, name: str) -> np.ndarray:
    """Read one array. NumPy's message about Python objects advises to unpickle them, which may run any code."""
    try:
        return file[name]
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
    raise ValueError(f"'{printable(name)}' holds Python objects: save it as numbers, or the file without it")


def write_npz(name: str, log: Log) -> str:
    steps = read_steps(log)
    with replacing(Path(name)) as part, part.open("wb") as file:
        np.savez_compressed(file, **{key: column for key, column in steps._asdict().items() if column is not None})
    return name


FORMAT = Format(
    open=lambda name, columns, episode_limit: open_npz(Path(name), episode_limit),
    write=write_npz,
)
