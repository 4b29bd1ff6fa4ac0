"""NumPy's ``.npz`` files, with the array names of D4RL's layout."""

import math
import zipfile
from collections.abc import Collection
from pathlib import Path

import numpy as np

from edp.data.arrays import from_arrays
from edp.data.checks import check_exists
from edp.data.dataset import read_steps
from edp.data.formats import Format
from edp.data.formats.columns import list_names
from edp.data.log import OPTIONAL, REQUIRED, Log
from edp.errors import UserError, first_line, printable
from edp.files import replacing
from edp.memory import check_fits

SUFFIX = ".npy"


def open_npz(path: Path, episode_limit: int | None = None) -> Log:
    arrays, others = read_npz(path, wanted=(*REQUIRED, *OPTIONAL))
    missing = [key for key in REQUIRED if key not in arrays]
    if missing:
        raise UserError(f"{path}: missing {', '.join(missing)} (has: {list_names(sorted([*arrays, *others]))})")
    for key, column in arrays.items():
        if not column.ndim:
            raise UserError(f"{path}: {key} is one number, not a column")
    left_out = tuple(printable(name) for name in sorted(others))
    return from_arrays(**arrays, episode_limit=episode_limit, name=str(path), left_out=left_out)


def read_npz(
    path: Path, kind: str = "file of arrays", wanted: Collection[str] = ()
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read the wanted arrays of a file, or all of them. Returns them, and the names of the others.

    ``kind`` says in messages what the file should be. The arrays' sizes are looked at first: a small file may hold
    arrays that are larger than the memory.
    """
    check_exists(path, kind)
    if not zipfile.is_zipfile(path):
        raise UserError(f"{path}: not a {kind} (it is no .npz file, or not a whole one)")
    try:
        with zipfile.ZipFile(path) as archive:
            names = {member.filename.removesuffix(SUFFIX): member for member in archive.infolist()}
            chosen = {name: member for name, member in names.items() if not wanted or name in wanted}
            check_fits(sum(member_size(archive, member) for member in chosen.values()), f"{path}: its arrays need")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in chosen}
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds
        raise UserError(f"{path}: not a {kind} ({printable(first_line(error))})") from None
    return arrays, [name for name in names if name not in arrays]


def member_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return the bytes that an array needs, from its header and the archive's directory. Nothing is expanded."""
    name = printable(member.filename.removesuffix(SUFFIX))
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or not member.filename.endswith(SUFFIX):
        raise ValueError(f"'{name}' is no array as NumPy writes it")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(file)
        if dtype.hasobject:  # NumPy's message advises to unpickle them, which may run any code
            raise ValueError(f"'{name}' holds Python objects: save it as numbers")
        size = math.prod(shape) * dtype.itemsize
        if size != member.file_size - file.tell():
            raise ValueError(f"'{name}' has shape {shape}, and {member.file_size - file.tell():,} bytes of numbers")
    return size


def write_npz(name: str, log: Log) -> str:
    steps = read_steps(log)
    with replacing(Path(name)) as part, part.open("wb") as file:
        np.savez_compressed(file, **{key: column for key, column in steps._asdict().items() if column is not None})
    return name


FORMAT = Format(
    open=lambda name, columns, episode_limit: open_npz(Path(name), episode_limit),
    write=write_npz,
)
