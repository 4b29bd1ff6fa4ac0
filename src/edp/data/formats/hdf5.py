"""D4RL's HDF5 layout: one HDF5 data set for each column of the steps."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from edp.data.checks import check_exists, check_lengths
from edp.data.dataset import read_steps
from edp.data.environments import plain_environment
from edp.data.formats import Format
from edp.data.formats.columns import list_names
from edp.data.log import LARGEST, OPTIONAL, PIECE, REQUIRED, BehaviourSummary, Log, Steps, find_timeouts
from edp.errors import UserError, first_line, printable
from edp.files import replacing
from edp.memory import check_fits

CHUNK_CACHE = 128 * 2**20  # bytes: chunks that a piece shares with the next one are unpacked once


def open_hdf5(path: Path, episode_limit: int | None = None) -> Log:
    """Open a file; ``episode_limit`` says how long episodes are if it has no ``timeouts``."""
    with opened(path) as file:
        columns = columns_of_file(file, path)
        lengths = {key: entry.shape[0] for key, entry in columns.items() if entry.shape}
        check_lengths(lengths, str(path))
        for key, entry in columns.items():
            if not entry.shape:
                raise UserError(f"{path}: {key} is one number, not a column")
            if is_in_other_files(entry.id):
                raise UserError(f"{path}: {key} are kept in other files (virtual or external): copy them into this one")
            if not is_written(entry.id):
                raise UserError(f"{path}: not all {key} were written (is the file complete?)")
            whole = key == "terminals" and "timeouts" not in columns  # timeouts are found from all of them
            check_fits(bytes_at_once(entry, len(entry) if whole else PIECE), f"{path}: {key} need")
        attributes = dict(file.attrs)
        others = tuple(printable(name) for name in sorted(set(file) - {*REQUIRED, *OPTIONAL}))
    env, options, refused = plain_environment(text_in(attributes.get("env")), env_options_in(attributes))
    return Log(
        name=str(path),
        pieces=lambda: hdf5_pieces(path, episode_limit),
        size=lengths["observations"],
        behaviours=behaviours_in(attributes),
        regenerated=printable(text_in(attributes.get("regenerated"))),
        env=env,
        env_options=options,
        reference=reference_in(attributes),
        left_out=(*others, *refused),
    )


def column_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    with opened(path) as file:
        return {key: entry.shape for key, entry in columns_of_file(file, path).items()}


def hdf5_pieces(path: Path, episode_limit: int | None) -> Iterator[Steps]:
    with opened(path) as file:
        columns = columns_of_file(file, path)
        timeouts = None
        if "timeouts" not in columns:
            terminals = np.asarray(columns["terminals"][()])
            timeouts = find_timeouts(terminals.astype(bool), episode_limit) if terminals.ndim == 1 else terminals
        for start in range(0, len(columns["observations"]), PIECE):
            rows = slice(start, start + PIECE)
            parts = {key: np.asarray(entry[rows]) for key, entry in columns.items()}
            yield Steps(**({} if timeouts is None else {"timeouts": timeouts[rows]}), **parts)


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Open the file, or raise an error that says in one line why it cannot be read."""
    check_exists(path)
    if not path.is_file() or not h5py.is_hdf5(path):
        raise UserError(f"{path}: not an HDF5 file (D4RL's data sets end in .hdf5; is the download complete?)")
    try:
        with h5py.File(path, "r", rdcc_nbytes=CHUNK_CACHE, rdcc_nslots=10_007) as file:
            yield file
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise UserError(f"{path}: damaged HDF5 file ({first_line(error)})") from None


def columns_of_file(file: h5py.File, path: Path) -> dict[str, h5py.Dataset]:
    for key in (*REQUIRED, *OPTIONAL):
        if not isinstance(file.get(key, getlink=True), h5py.HardLink | None):  # following it could open any file
            raise UserError(f"{path}: {key} are a link to another place: copy them into this one")
    entries = {key: file.get(key) for key in (*REQUIRED, *OPTIONAL)}
    columns = {key: entry for key, entry in entries.items() if isinstance(entry, h5py.Dataset)}
    missing = [key for key in REQUIRED if key not in columns]
    if missing:
        raise UserError(f"{path}: missing {', '.join(missing)} (has: {list_names(sorted(file))})")
    return columns


def bytes_at_once(entry: h5py.Dataset, rows: int) -> int:
    """Return the memory that reading some rows takes, with a chunk of them unpacked."""
    shapes = [(min(rows, entry.shape[0]), *entry.shape[1:]), *([entry.chunks] if entry.chunks else [])]
    return sum(math.prod(shape) for shape in shapes) * entry.dtype.itemsize


def is_in_other_files(data: h5py.h5d.DatasetID) -> bool:
    """Return whether HDF5 reads this from other files, which may be missing (then it reads zeros) or may change."""
    layout = data.get_create_plist()
    return layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count() > 0


def is_written(data: h5py.h5d.DatasetID) -> bool:
    """Return whether all of this is in the file. HDF5 reads zeros for parts that were never written."""
    layout = data.get_create_plist()
    if layout.get_layout() == h5py.h5d.CHUNKED:
        chunks = (-(-length // each) for length, each in zip(data.shape, layout.get_chunk(), strict=True))
        return data.get_num_chunks() >= math.prod(chunks)
    return 0 in data.shape or data.get_storage_size() > 0


def behaviours_in(attributes: Mapping[str, Any]) -> list[BehaviourSummary]:
    """Return the policies that made the file, if it was made by ``edp.data.synthesis``."""
    try:
        entries = [BehaviourSummary(**entry) for entry in json.loads(attributes["behaviours"])]
        return [BehaviourSummary(printable(str(a)), int(b), int(c), float(d)) for a, b, c, d in entries]
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError):
        return []


def reference_in(attributes: Mapping[str, Any]) -> tuple[float, float] | None:
    low, high = attributes.get("min_return"), attributes.get("max_return")
    if isinstance(low, np.integer | np.floating) and isinstance(high, np.integer | np.floating):
        return (float(low), float(high)) if -LARGEST <= low < high <= LARGEST else None
    return None


def env_options_in(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which the environment was made."""
    try:
        options = json.loads(attributes["env_options"])
        return options if isinstance(options, dict) else {}
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}


def text_in(attribute: Any) -> str:
    return attribute if isinstance(attribute, str) else ""


def write_hdf5(path: Path, arrays: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> None:
    with replacing(path) as part, h5py.File(part, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip", compression_opts=1)
        file.attrs.update(attributes)


def write_log_to_hdf5(name: str, log: Log) -> str:
    columns = {key: column for key, column in read_steps(log)._asdict().items() if column is not None}
    write_hdf5(Path(name), columns, attributes_of(log))
    return name


def attributes_of(log: Log) -> dict[str, Any]:
    ends = {"min_return": log.reference[0], "max_return": log.reference[1]} if log.reference else {}
    options = {"env_options": json.dumps(dict(log.env_options))} if log.env_options else {}
    return ({"env": log.env} | options if log.env else {}) | ends


FORMAT = Format(
    open=lambda name, columns, episode_limit: open_hdf5(Path(name), episode_limit),
    write=write_log_to_hdf5,
    loses_environment=lambda log: "",
)
