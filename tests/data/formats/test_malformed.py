"""Damaged, foreign and hostile files: data that training can use, or one line that says what is wrong with which file.

Most formats have no checksums and do not notice a number that was changed into another: bytes that are flipped may
give other finite numbers. Any other result is an error.
"""

import pickle
import warnings
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp.data import formats, health
from edp.data.dataset import read_dataset
from edp.errors import UserError
from support.logs import (
    examples,
)
from support.malformed import (
    ARRAYS,
    BAD,
    PACKED,
    WRITERS,
    damages,
    npy,
    reads_or_refuses,
    small_log,
    write_members,
)

OTHER_KINDS = ["S3", "U2", "O", "c8", "c16", "m8[s]", "M8[s]", "V4", "f2", "f16", "?", "u8", "i1", ">f8"]


@st.composite
def changes(draw):
    """A random change of one array of a file."""
    change, n = draw(st.sampled_from(["kind", "fields", "number", "shape", "length", "gone", "one", "half"])), 12

    def changed(array):
        if change == "kind":
            kind = draw(st.sampled_from(OTHER_KINDS))
            if kind in ("m8[s]", "M8[s]"):
                return array.astype(np.int64).astype(kind)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return np.zeros(array.shape, kind) if kind == "V4" else array.astype(kind)
        if change == "fields":
            return np.zeros(array.shape, [("a", "f4"), ("b", "i2")])
        if change in ("number", "half"):
            kind = np.float64 if change == "number" else np.float16
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array = array.astype(kind)
                array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(BAD))
            return array
        if change == "shape":
            shape = draw(st.sampled_from([(n, 1), (n, 0), (0,), (n, 2, 1), (1, n), (n, 3), (0, 2), (n,), (2, n, 1)]))
            return np.zeros(shape, array.dtype)
        if change == "length":
            return array[: draw(st.integers(0, n))]
        return None if change == "gone" else array.dtype.type(1)

    return changed


@pytest.mark.parametrize("form", ARRAYS)
@examples(150)
@given(
    start=st.builds(small_log, st.booleans(), st.booleans()),
    what=st.dictionaries(st.sampled_from([*small_log(), "extra"]), changes(), min_size=1, max_size=3),
    limit=st.none() | st.integers(1, 5),
    packed=st.booleans(),
)
def test_wrong_arrays_are_refused_or_harmless(form, tmp_path, start, what, limit, packed):
    start |= {key: change(start.get(key, np.zeros(12))) for key, change in what.items()}
    start = {key: np.asarray(array) for key, array in start.items() if array is not None}
    if form == ".hdf5":
        packed = packed and all(array.size for array in start.values())
        if any(array.dtype.kind in "OUmM" and not array.size for array in start.values()):
            return
    ARRAYS[form](tmp_path / f"a{form}", start, **(PACKED if packed else {}))
    read = reads_or_refuses(tmp_path / f"a{form}", limit=limit)
    assert read is None or all(array.dtype.kind in "biuf" for key, array in start.items() if key != "extra")


@pytest.mark.parametrize(
    ("form", "packed"), [(form, packed) for form in WRITERS for packed in (False, True) if form != ".csv" or not packed]
)
@examples(150)
@given(damage=damages())
def test_damaged_bytes_are_refused_or_give_numbers(form, packed, tmp_path, damage):
    path = tmp_path / f"a{form}"
    WRITERS[form](path, small_log(timeouts=False), **(PACKED if packed else {}))
    path.write_bytes(damage(path.read_bytes()))
    reads_or_refuses(path)


NAMES = st.text(max_size=5) | st.sampled_from(["observation_0", "action_0", "reward", "episode", "a\nb", "a.b", "*"])


@examples(75)
@given(names=st.lists(NAMES, min_size=1, max_size=5), form=st.sampled_from([".csv", ".parquet", ".npz", ".hdf5"]))
def test_files_with_any_names_are_refused_or_harmless(tmp_path, names, form):
    path = tmp_path / f"a{form}"
    if form == ".csv":
        path.write_text(
            ",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n" + "1," * len(names) + "\n",
            encoding="utf-8",
        )
    elif form == ".parquet":
        pq.write_table(pa.Table.from_arrays([pa.array([1.0, 2.0])] * len(names), names=names), path)
    elif form == ".npz":
        with zipfile.ZipFile(path, "w") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in (name.replace("\0", "") for name in names):
                file.writestr(f"{name}.npy", npy(np.ones(2)))
    else:
        with h5py.File(path, "w") as file:
            for name in {name for name in names if name.strip("./") and "\0" not in name}:
                file.require_group(name)
    reads_or_refuses(path, {"reward_column": "reward"} if form in (".csv", ".parquet") else None)


@pytest.mark.parametrize("form", ARRAYS)
def test_no_kind_of_nan_makes_numpy_warn(tmp_path, form, recwarn):
    found = small_log()
    found["observations"].view(np.uint32)[3, 1] = 0x7FA00000  # a signalling one
    ARRAYS[form](tmp_path / f"a{form}", found)
    with pytest.raises(UserError, match=r"observations hold NaN.* in row 3, column 1"):
        read_dataset(formats.open_log(str(tmp_path / f"a{form}")))
    health.examine_log(formats.open_log(str(tmp_path / f"a{form}")))
    assert not [warning for warning in recwarn if "Runtime" in warning.category.__name__]


def test_absurd_sizes_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    for rows in (10**15, 10**18, 10**30, -1):
        header = str({"descr": "<f8", "fortran_order": False, "shape": (rows,)}).encode().ljust(117) + b"\n"
        large = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(96)
        write_members(path, {f"{key}.npy": npy(array) for key, array in small_log().items()} | {"rewards.npy": large})
        assert reads_or_refuses(path) is None
    for rows, width in ((10**15, 2), (12, 10**15), (2**40, 2**20)):
        with h5py.File(tmp_path / "a.hdf5", "w") as file:
            for key, array in small_log().items():
                shape = (rows, width) if key in ("observations", "next_observations") else (rows, *array.shape[1:])
                file.create_dataset(key, shape, array.dtype, chunks=(12, 1)[: array.ndim])
        assert reads_or_refuses(tmp_path / "a.hdf5") is None


class Harmful:
    """An object that creates a file if it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickles_are_refused_and_not_run(tmp_path):
    made, path = tmp_path / "made", tmp_path / "a.npz"
    harmful = np.array([Harmful(made)] * 12, object)
    pickle.loads(pickle.dumps(Harmful(made)))
    assert made.exists()  # the pickle works
    made.unlink()
    for key in (*small_log(), "extra"):
        np.savez(path, allow_pickle=True, **small_log() | {key: harmful})
        assert (reads_or_refuses(path) is None) == (key != "extra")  # arrays that are not used are not read
    path.write_bytes(pickle.dumps(Harmful(made)))
    assert reads_or_refuses(path) is None
    path.write_bytes(npy(harmful, allow_pickle=True))
    assert reads_or_refuses(path) is None
    field = pa.field(
        "observation_0",
        pa.float64(),
        metadata={
            "ARROW:extension:name": "arrow.py_extension_type",
            "ARROW:extension:metadata": pickle.dumps(Harmful(made)),
        },
    )
    names = [field, pa.field("action_0", pa.float64())]
    table = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2, schema=pa.schema(names))
    pq.write_table(table, tmp_path / "a.parquet")
    reads_or_refuses(tmp_path / "a.parquet")
    assert not made.exists()


@pytest.mark.parametrize("form", WRITERS)
def test_no_file_an_empty_file_and_a_folder_are_refused(form, tmp_path):
    assert reads_or_refuses(tmp_path / f"none{form}") is None
    assert reads_or_refuses(tmp_path / f"{'long' * 100}{form}") is None
    (tmp_path / f"empty{form}").touch()
    assert reads_or_refuses(tmp_path / f"empty{form}") is None
    (tmp_path / f"folder{form}").mkdir()
    assert reads_or_refuses(tmp_path / f"folder{form}") is None
    (tmp_path / f"folder{form}" / f"inner{form}").mkdir()
    assert reads_or_refuses(tmp_path / f"folder{form}") is None
    (tmp_path / f"file{form}").write_text("x", encoding="utf-8")
    assert reads_or_refuses(tmp_path / f"file{form}" / f"inner{form}") is None
