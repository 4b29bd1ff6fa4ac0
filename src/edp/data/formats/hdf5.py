"""D4RL's HDF5 layout: one data set for each column of the steps."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from edp.data.formats.columns import listed, printable
from edp.data.log import (
    LARGEST,
    PIECE,
    Behaved,
    Dataset,
    Log,
    Steps,
    find_timeouts,
    refuse_missing,
)
from edp.data.log import read as read_log
from edp.errors import UserError, first_line
from edp.files import replacing

REQUIRED = ("observations", "actions", "rewards", "terminals")
OPTIONAL = ("next_observations", "timeouts")
CHUNK_CACHE = 128 * 2**20  # bytes: chunks that a piece shares with the next one are unpacked once


def read(path: Path, episode_limit: int | None = None, episode_return: str = "sum", on_disk: bool = False) -> Dataset:
    """The transitions of a file (see ``open_log``, and ``log.read``)."""
    return read_log(open_log(path, episode_limit), episode_return, on_disk)


def open_log(path: Path, episode_limit: int | None = None) -> Log:
    """A file's steps; ``episode_limit`` tells where episodes end if it has no ``timeouts``."""
    with opened(path) as file:
        found = columns(file, path)
        shapes = {key: entry.shape for key, entry in found.items()}
        lengths = {key: shape[0] for key, shape in shapes.items() if shape}
        if len(set(lengths.values())) > 1:
            raise UserError(f"{path}: arrays of different lengths: {', '.join(f'{k} {n}' for k, n in lengths.items())}")
        for key, shape in shapes.items():
            if not shape:
                raise UserError(f"{path}: {key} is one number, not a column")
            if is_elsewhere(found[key].id):
                raise UserError(f"{path}: {key} are kept in other files (virtual or external): copy them into this one")
            if not is_written(found[key].id):
                raise UserError(f"{path}: not all {key} were written (is the file complete?)")
        attributes = dict(file.attrs)
        others = tuple(printable(name) for name in sorted(set(file) - {*REQUIRED, *OPTIONAL}))
    return Log(
        name=str(path),
        pieces=lambda: pieces(path, episode_limit),
        size=lengths["observations"],
        behaviours=known_behaviours(attributes),
        regenerated=text(attributes.get("regenerated")),
        env=text(attributes.get("env")),
        env_options=known_options(attributes),
        reference=known_reference(attributes),
        left_out=others,
    )


def pieces(path: Path, episode_limit: int | None) -> Iterator[Steps]:
    with opened(path) as file:
        found = columns(file, path)
        timeouts = None
        if "timeouts" not in found:
            terminals = np.asarray(found["terminals"][()])
            timeouts = find_timeouts(terminals.astype(bool), episode_limit) if terminals.ndim == 1 else terminals
        for start in range(0, len(found["observations"]), PIECE):
            rows = slice(start, start + PIECE)
            parts = {key: np.asarray(entry[rows]) for key, entry in found.items()}
            yield Steps(**({} if timeouts is None else {"timeouts": timeouts[rows]}), **parts)


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """The file, or a line that says why not."""
    refuse_missing(path)
    if not path.is_file() or not h5py.is_hdf5(path):
        raise UserError(f"{path}: not an HDF5 file (D4RL's data sets end in .hdf5; is the download complete?)")
    try:
        with h5py.File(path, "r", rdcc_nbytes=CHUNK_CACHE, rdcc_nslots=10_007) as file:
            yield file
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise UserError(f"{path}: damaged HDF5 file ({first_line(error)})") from None


def columns(file: h5py.File, path: Path) -> dict[str, h5py.Dataset]:
    entries = {key: file.get(key) for key in (*REQUIRED, *OPTIONAL)}
    found = {key: entry for key, entry in entries.items() if isinstance(entry, h5py.Dataset)}
    missing = [key for key in REQUIRED if key not in found]
    if missing:
        raise UserError(f"{path}: missing {', '.join(missing)} (has: {listed(sorted(file))})")
    return found


def is_elsewhere(data: h5py.h5d.DatasetID) -> bool:
    """Whether HDF5 reads it from other files. Those that are gone give zeros, and others may be anything."""
    layout = data.get_create_plist()
    return layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count() > 0


def is_written(data: h5py.h5d.DatasetID) -> bool:
    """Whether all of it is in the file. HDF5 reads zeros where it is not, however many the file claims."""
    layout = data.get_create_plist()
    if layout.get_layout() == h5py.h5d.CHUNKED:
        chunks = (-(-length // each) for length, each in zip(data.shape, layout.get_chunk(), strict=True))
        return data.get_num_chunks() >= math.prod(chunks)
    return 0 in data.shape or data.get_storage_size() > 0


def known_behaviours(attributes: Mapping[str, Any]) -> list[Behaved]:
    """What ``edp data make`` noted of the policies behind a file; nothing for files of other origin."""
    try:
        found = [Behaved(**entry) for entry in json.loads(attributes["behaviours"])]
        return [Behaved(str(a), int(b), int(c), float(d)) for a, b, c, d in found]
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError):
        return []


def known_reference(attributes: Mapping[str, Any]) -> tuple[float, float] | None:
    low, high = attributes.get("min_return"), attributes.get("max_return")
    if isinstance(low, np.integer | np.floating) and isinstance(high, np.integer | np.floating):
        return (float(low), float(high)) if -LARGEST <= low < high <= LARGEST else None
    return None


def known_options(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """With which the environment was made."""
    try:
        found = json.loads(attributes["env_options"])
        return found if isinstance(found, dict) else {}
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}


def text(attribute: Any) -> str:
    return attribute if isinstance(attribute, str) else ""


def write(path: Path, arrays: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> None:
    """Write a file so that it is there whole or not at all."""
    with replacing(path) as part, h5py.File(part, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip", compression_opts=1)
        file.attrs.update(attributes)
