"""Damaged, foreign and hostile files: data that training can use, or one line that says what is wrong with which file.

Most formats have no checksums and do not notice a number that was changed into another: bytes that are flipped may
well give other finite numbers. Nothing else may come of them.
"""

import io
import json
import os
import pickle
import re
import resource
import sys
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path

import gymnasium
import h5py
import minari
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, WrapperSpec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minari.data_collector.episode_buffer import EpisodeBuffer

from edp.data import formats, health
from edp.data.arrays import from_arrays
from edp.data.dataset import read_dataset, read_steps
from edp.data.formats import columns
from edp.data.log import Log, Steps
from edp.errors import UserError

MORE = int(os.environ.get("EDP_TEST_EXAMPLES", "1"))  # times as many as usual, and other ones each time


def examples(count):
    return settings(
        max_examples=count * MORE, derandomize=MORE == 1, deadline=None, suppress_health_check=list(HealthCheck)
    )


@pytest.fixture(autouse=True, scope="module")
def little_memory():
    """What goes wrong here should not take the machine's memory with it."""
    before, pages = resource.getrlimit(resource.RLIMIT_AS), Path("/proc/self/statm")
    if pages.exists():
        used = int(pages.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 8 * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def content(next_observations=True, timeouts=True, n=12):
    """A small log, as arrays."""
    rng = np.random.default_rng(0)
    states = rng.standard_normal((n + 1, 2)).astype(np.float32)
    found = {
        "observations": states[:-1],
        "actions": rng.uniform(-1, 1, (n, 1)).astype(np.float32),
        "rewards": rng.standard_normal(n),
        "terminals": np.arange(n) % 6 == 5,
    }
    found |= {"timeouts": np.arange(n) == n - 1} if timeouts else {}
    return found | ({"next_observations": states[1:]} if next_observations else {})


def assert_one_line(error, name):
    message = str(error)
    assert name in message
    assert len(message.splitlines()) == 1
    message.encode()


def reads_or_refuses(name, meaning=None, limit=None):
    """The transitions, which are good, or None where they were refused in one line; so is the check of them."""
    try:
        json.dumps(health.health_json(health.examine_log(formats.open_log(str(name), meaning or {}, limit))), allow_nan=False)
    except UserError as error:
        assert_one_line(error, str(name))
    try:
        opened = formats.open_log(str(name), meaning or {}, limit)
        data = read_dataset(opened)
    except UserError as error:
        assert_one_line(error, str(name))
        return None
    n = len(data.obs)
    assert n > 0
    assert data.obs.shape == data.next_obs.shape == (n, data.obs.shape[1])
    assert data.action.shape == (n, data.action.shape[1])
    assert data.reward.shape == data.not_done.shape == data.episode.shape == (n,)
    for part in (*data[:5], data.returns):
        assert np.isfinite(part).all()
    assert set(np.unique(data.not_done)) <= {0, 1}
    assert (np.diff(data.episode) >= 0).all()
    of_actions = (opened.action_names, opened.low, opened.high)
    for each, part in ((opened.observation_names, data.obs), *((each, data.action) for each in of_actions)):
        assert not each or len(each) == part.shape[1]
    assert_one_line(", ".join(opened.left_out) or "-", "")
    return data


def write_hdf5(path, arrays, **options):
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            if array.dtype.kind in "OU":
                file.create_dataset(key, data=array.astype(str).astype(object), dtype=h5py.string_dtype())
            elif array.dtype.kind in "mM":
                file.create_dataset(key, data=array.astype(h5py.opaque_dtype(array.dtype)))
            else:
                file.create_dataset(key, data=array, **(options if array.ndim else {}))


def write_npz(path, arrays, **options):
    (np.savez_compressed if options else np.savez)(path, **arrays)


ARRAYS = {".hdf5": write_hdf5, ".npz": write_npz}
PACKED = {"compression": "gzip", "chunks": True}
OTHER_KINDS = ["S3", "U2", "O", "c8", "c16", "m8[s]", "M8[s]", "V4", "f2", "f16", "?", "u8", "i1", ">f8"]
BAD = [np.nan, np.inf, -np.inf, 1e39, -1e308, 2.0, -1.0, 0.5, 3.4028235e38]


@st.composite
def changes(draw):
    """Something to do to one array of a file."""
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
    start=st.builds(content, st.booleans(), st.booleans()),
    what=st.dictionaries(st.sampled_from([*content(), "extra"]), changes(), min_size=1, max_size=3),
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


def write_csv(path, arrays, **options):
    wide = {
        f"{name}_{i}": arrays[f"{name}s"][:, i] for name in ("observation", "action") for i in range(2 - (name[0] == "a"))
    }
    rows = [*wide.values(), arrays["rewards"], arrays["terminals"].astype(int), np.arange(12) // 6]
    lines = [[*wide, "reward", "terminal", "episode"], *zip(*(row.tolist() for row in rows), strict=True)]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))


def write_parquet(path, arrays, **options):
    lists = pa.FixedSizeListArray.from_arrays(arrays["observations"].ravel(), 2)
    found = {"observation_0": lists, "action_0": arrays["actions"][:, 0], "reward": arrays["rewards"]}
    found |= {"terminal": arrays["terminals"], "episode": np.arange(12) // 6}
    pq.write_table(pa.table(found), path, compression="zstd" if options else "none", row_group_size=5)


WRITERS = ARRAYS | {".csv": write_csv, ".parquet": write_parquet}


@st.composite
def damages(draw):
    """Something to do to the bytes of a file, which has any number of them."""
    fraction = st.floats(0, 1, exclude_max=True)
    several = draw(st.lists(st.tuples(fraction, st.integers(1, 255)), min_size=1, max_size=4))
    how = draw(st.sampled_from(["flip", "flip", "cut", "insert", "drop", "double", "zero"]))
    width = draw(st.integers(1, 64))

    def damaged(start):
        found = bytearray(start)
        for place, value in several:
            at = int(place * len(found))
            if how == "flip":
                found[at] ^= value
            elif how == "cut":
                return bytes(found[:at])
            elif how == "insert":
                found[at:at] = bytes([value])
            elif how == "drop":
                del found[at : at + 1 + width % 4]
            elif how == "double":
                found[at:at] = found[at : at + width]
            else:
                found[at : at + width] = bytes(len(found[at : at + width]))
        return bytes(found)

    return damaged


@pytest.mark.parametrize(
    ("form", "packed"), [(form, packed) for form in WRITERS for packed in (False, True) if form != ".csv" or not packed]
)
@examples(150)
@given(damage=damages())
def test_damaged_bytes_are_refused_or_give_numbers(form, packed, tmp_path, damage):
    path = tmp_path / f"a{form}"
    WRITERS[form](path, content(timeouts=False), **(PACKED if packed else {}))
    path.write_bytes(damage(path.read_bytes()))
    reads_or_refuses(path)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        (0, "", "column 'observation_0' is empty in row 2 (line 4)"),
        (2, "x", "a.csv: 'x' in column 'action_0', line 4, is not a number"),
        (2, '"20,5"', "'20,5' in column 'action_0', line 4, is not a number: a decimal comma? Write 20.5"),
        (3, "1e400", "column 'reward' has no number in row 2, but inf"),
        (4, "2", "'2' in column 'terminal', line 4, is neither 0 nor 1"),
        (5, "", "column 'episode' is empty in row 2 (line 4)"),
    ],
)
def test_a_bad_cell_is_refused(tmp_path, column, cell, message):
    path = tmp_path / "a.csv"
    write_csv(path, content())
    rows = [line.split(",") for line in path.read_text().splitlines()]
    rows[3][column] = cell
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    with pytest.raises(UserError, match=re.escape(message)):
        read_dataset(formats.open_log(str(path)))


@pytest.mark.parametrize("block", [200, 2**20])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_takes_no_rows_with_it(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", block)
    path = tmp_path / "a.csv"
    write_csv(path, content())
    lines = path.read_text().splitlines()

    def write(texts):
        cells = ["text", *(texts.get(row, '"a ""text"", quoted"') for row in range(2, len(lines) + 1))]
        path.write_bytes(end.join(f"{line},{cell}" for line, cell in zip(lines, cells, strict=True)).encode())

    write({4: '5" pipe', 5: "", 6: '"x"y'})
    assert len(read_steps(formats.open_log(str(path))).rewards) == len(lines) - 1
    for texts in ({5: '"begin', 8: 'end"'}, {5: f'"begin{end}end"'}, {5: '"begin'}):
        write(texts)
        with pytest.raises(UserError, match=r"a\.csv: line 5 ends within quotes: a stray quote, or a text") as error:
            read_dataset(formats.open_log(str(path)))
        assert_one_line(error.value, "a.csv")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("place", ["header", "episode"])
def test_other_encodings_are_told(tmp_path, encoding, place):
    path = tmp_path / "a.csv"
    label, name = ("Süd", "wind") if place == "episode" else ("south", "höhe")
    lines = [f"observation_0,action_0,reward,episode,{name}", *[f"{i}.5,0.1,1,{label},3" for i in range(9)]]
    path.write_bytes("\n".join(lines).encode(encoding))
    with pytest.raises(UserError, match="save it as UTF-8"):
        read_dataset(formats.open_log(str(path)))


CELLS = ["", "nan", "inf", "-inf", "1e39", "1e400", "x", '"', '"a', "1,5", "1;5", "true", "2", "0.5", "\xff", "\0", "٣"]


@examples(150)
@given(
    cells=st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 5), st.sampled_from(CELLS) | st.text(max_size=6)), max_size=3
    ),
    encoding=st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-8-sig"]),
    end=st.sampled_from(["\n", "\r\n", "\r", ""]),
)
def test_csv_with_any_cells_is_refused_or_harmless(tmp_path, cells, encoding, end):
    path = tmp_path / "a.csv"
    write_csv(path, content())
    rows = [line.split(",") for line in path.read_text().splitlines()]
    for row, column, cell in cells:
        rows[row][column] = cell
    path.write_bytes(end.join(",".join(row) for row in rows).encode(encoding, "replace"))
    reads_or_refuses(path)


def twelve(kind, value):
    return pa.array([value] * 12, kind)


OTHER_COLUMNS = [
    twelve(pa.string(), "1"),
    twelve(pa.null(), None),
    twelve(pa.binary(), b"\xff"),
    twelve(pa.bool_(), True),
    twelve(pa.float16(), np.float16(1)),
    twelve(pa.float16(), np.float16("inf")),
    twelve(pa.float64(), np.nan),
    twelve(pa.float64(), 1e39),
    twelve(pa.uint64(), 2**64 - 1),
    twelve(pa.decimal128(5, 2), 1),
    twelve(pa.decimal256(60, 2), 10**50),
    twelve(pa.timestamp("ns", "UTC"), 0),
    twelve(pa.duration("s"), 1),
    twelve(pa.month_day_nano_interval(), (1, 2, 3)),
    twelve(pa.struct({"x": pa.float32()}), {"x": 1.0}),
    twelve(pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    twelve(pa.list_(pa.float32()), [1.0]),
    twelve(pa.list_(pa.float32()), []),
    twelve(pa.list_(pa.float32()), [1.0, None]),
    twelve(pa.list_(pa.list_(pa.float32(), 2)), [[1.0, 2.0]]),
    twelve(pa.list_(pa.string()), ["a"]),
    twelve(pa.list_view(pa.float32()), [1.0]),
    twelve(pa.int64(), 1).dictionary_encode(),
    twelve(pa.string(), "a").dictionary_encode(),
    pa.array([*[1.0] * 7, None, *[1.0] * 4]),
    pa.array([*[[1.0]] * 7, [1.0, 2.0], *[[1.0]] * 4]),
    pa.array([*[[1.0]] * 6, *[[1.0, 2.0]] * 6]),
    pa.array([*[float("nan")] * 6, *[1.0] * 6]),
    pa.array([[]] * 12, pa.list_(pa.float32(), 0)),
]


@examples(150)
@given(
    what=st.dictionaries(
        st.sampled_from(
            ["observation_0", "action_0", "reward", "terminal", "episode", "timeout", "next_observation_0"]
        ),
        st.sampled_from(OTHER_COLUMNS) | st.none(),
        min_size=1,
        max_size=2,
    ),
    piece=st.sampled_from([5, 6, 65_536]),
)
def test_columns_of_any_kind_are_refused_or_harmless(tmp_path, what, piece):
    path = tmp_path / "a.parquet"
    write_parquet(path, content())
    start = pq.read_table(path)
    for name, column in what.items():
        start = start.drop_columns([name]) if name in start.column_names else start
        start = start if column is None else start.append_column(name, column)
    try:
        pq.write_table(start, path)
    except pa.ArrowException:  # kinds that no Parquet file has
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edp.data.formats.table.PIECE", piece)
        reads_or_refuses(path)


NAMES = st.text(max_size=5) | st.sampled_from(["observation_0", "action_0", "reward", "episode", "a\nb", "a.b", "*"])


@examples(75)
@given(names=st.lists(NAMES, min_size=1, max_size=5), form=st.sampled_from([".csv", ".parquet", ".npz", ".hdf5"]))
def test_files_with_any_names_are_refused_or_harmless(tmp_path, names, form):
    path = tmp_path / f"a{form}"
    if form == ".csv":
        path.write_text(
            ",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n" + "1," * len(names) + "\n"
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


def npy(array, **options):
    with io.BytesIO() as file:
        np.save(file, array, **options)
        return file.getvalue()


def members(path, found):
    with zipfile.ZipFile(path, "w") as file:
        for name, member in found.items():
            file.writestr(name, member)


class Harmful:
    """What would make a file if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("action_0", [[1.0]] * 7 + [[np.nan]] + [[1.0]] * 4, "'action_0' has no number in row 7, but nan"),
        ("observation_0", [[1.0, 2.0]] * 7 + [[1.0, np.inf]] * 5, "'observation_0' has no number in row 7, but inf"),
        ("observation_0", [[1.0, 2.0]] * 7 + [[None, 1.0]] * 5, "'observation_0' is empty in row 7"),
        ("observation_0", [[[1.0], [2.0]]] * 7 + [[[1.0], [None]]] * 5, "'observation_0' is empty in row 7"),
        ("observation_0", [[[1.0], [2.0]]] * 7 + [[[1.0], [1.0, 2.0]]] * 5, "'observation_0' has 2 numbers in row 7"),
        ("observation_0", [[1.0]] * 6 + [[1.0, 2.0]] * 6, "observations have 2 numbers from row 6 on, and 1 before it"),
        ("observation_0", [[]] * 12, "'observation_0' holds lists without numbers, from row 0 on"),
        ("observation_0", [[[], []]] * 12, "'observation_0' holds lists without numbers, from row 0 on"),
        ("episode", [0.0] * 7 + [np.nan] * 5, "'episode' has no number in row 7, but nan"),
    ],
)
def test_messages_tell_the_row(tmp_path, monkeypatch, name, column, message):
    monkeypatch.setattr("edp.data.formats.table.PIECE", 6)
    path = tmp_path / "a.parquet"
    write_parquet(path, content())
    start = pq.read_table(path)
    pq.write_table(start.set_column(start.column_names.index(name), name, pa.array(column)), path)
    with pytest.raises(UserError, match=re.escape(message)):
        read_dataset(formats.open_log(str(path)))


@pytest.mark.parametrize("form", ARRAYS)
def test_no_kind_of_nan_makes_numpy_warn(tmp_path, form, recwarn):
    found = content()
    found["observations"].view(np.uint32)[3, 1] = 0x7FA00000  # a signalling one
    ARRAYS[form](tmp_path / f"a{form}", found)
    with pytest.raises(UserError, match=r"observations hold NaN.* in row 3, column 1"):
        read_dataset(formats.open_log(str(tmp_path / f"a{form}")))
    health.examine_log(formats.open_log(str(tmp_path / f"a{form}")))
    assert not [warning for warning in recwarn if "Runtime" in warning.category.__name__]


def test_lists_of_different_lengths_are_no_arrays():
    with pytest.raises(UserError, match="mine: "):
        from_arrays([[1], [1, 2]], [[1], [1]], [0, 0], [0, 0], name="mine")


def test_files_that_are_no_npz_are_not_advised_to_be_unpickled(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, allow_pickle=True, **content() | {"infos": np.array([{}], object)})
    with pytest.raises(UserError, match="'infos' holds Python objects: save it as numbers, or the file without it"):
        formats.open_log(str(path))
    for wrong in (b"a,b\n1,2\n", npy(np.zeros(3))):
        path.write_bytes(wrong)
        with pytest.raises(UserError, match=r"it is no \.npz file") as refused:
            formats.open_log(str(path))
        assert "pickle" not in str(refused.value)


def test_pickles_are_refused_and_not_run(tmp_path):
    made, path = tmp_path / "made", tmp_path / "a.npz"
    harmful = np.array([Harmful(made)] * 12, object)
    pickle.loads(pickle.dumps(Harmful(made)))
    assert made.exists()  # the pickle works
    made.unlink()
    for key in (*content(), "extra"):
        np.savez(path, allow_pickle=True, **content() | {key: harmful})
        assert reads_or_refuses(path) is None
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


@pytest.mark.parametrize("chunks", [None, (5,)])
@pytest.mark.parametrize("rows", [0, 5])
def test_what_was_not_written_is_refused(tmp_path, chunks, rows):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for key, array in content().items():
            each = chunks and (*chunks, *array.shape[1:])
            file.create_dataset(key, array.shape, array.dtype, chunks=each)
            if chunks and rows:
                file[key][:rows] = array[:rows]
    with pytest.raises(UserError, match="not all observations were written"):
        formats.open_log(str(tmp_path / "a.hdf5"))


@pytest.mark.parametrize("kind", ["virtual", "gone", "external"])
@pytest.mark.parametrize("key", ["observations", "timeouts"])
def test_what_is_kept_in_other_files_is_refused(tmp_path, kind, key):
    path, other, found = tmp_path / "a.hdf5", tmp_path / "b.hdf5", content()
    write_hdf5(other, found)
    write_hdf5(path, {name: array for name, array in found.items() if name != key})
    array = found[key]
    with h5py.File(path, "a") as file:
        if kind == "external":
            (tmp_path / "raw").write_bytes(array.tobytes())
            file.create_dataset(key, array.shape, array.dtype, external=[(str(tmp_path / "raw"), 0, array.nbytes)])
        else:
            layout = h5py.VirtualLayout(array.shape, array.dtype)
            layout[:] = h5py.VirtualSource(str(other), key, array.shape, array.dtype)
            file.create_virtual_dataset(key, layout)
    if kind == "gone":
        other.unlink()
    with pytest.raises(UserError, match=f"a.hdf5: {key} are kept in other files"):
        formats.open_log(str(path))


def test_virtual_data_of_minari_is_refused(minari_sets_here):
    files = minari_sets_here["mine/hdf5-v0"]
    path = next(path for path in files if path.suffix == ".hdf5")
    try:
        with h5py.File(path, "a") as file:
            layout = h5py.VirtualLayout(file["episode_0/rewards"].shape, "f8")
            del file["episode_0/rewards"]
            file.create_virtual_dataset("episode_0/rewards", layout)
        with pytest.raises(UserError, match="episode_0/rewards is kept in other files"):
            read_dataset(formats.open_log("minari:mine/hdf5-v0"))
    finally:
        put(files)


def test_absurd_sizes_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    for rows in (10**15, 10**18, 10**30, -1):
        header = str({"descr": "<f8", "fortran_order": False, "shape": (rows,)}).encode().ljust(117) + b"\n"
        large = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(96)
        members(path, {f"{key}.npy": npy(array) for key, array in content().items()} | {"rewards.npy": large})
        assert reads_or_refuses(path) is None
    for rows, width in ((10**15, 2), (12, 10**15), (2**40, 2**20)):
        with h5py.File(tmp_path / "a.hdf5", "w") as file:
            for key, array in content().items():
                shape = (rows, width) if key in ("observations", "next_observations") else (rows, *array.shape[1:])
                file.create_dataset(key, shape, array.dtype, chunks=(12, 1)[: array.ndim])
        assert reads_or_refuses(tmp_path / "a.hdf5") is None


def test_a_log_that_claims_any_size_is_read():
    steps = Steps(**content())
    for size in (-1, 10**15, 10**30):
        assert len(read_dataset(Log("a", lambda: iter([steps]), size)).obs) == 12


def test_members_that_are_no_arrays_are_refused(tmp_path):
    found = {f"{key}.npy": npy(array) for key, array in content().items()}
    for name, member in (("rewards.npy", b"hello"), ("notes.txt", b"hello"), ("rewards.npy", b"")):
        members(tmp_path / "a.npz", found | {name: member})
        assert reads_or_refuses(tmp_path / "a.npz") is None


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize(
    ("other", "entry"),
    [
        ("sub/b.parquet", "sub"),
        ("day=1/hour=2/part-0.csv", "day=1"),
        ("sub/b.csv.gz", "sub"),
        ("c.csv.gz", "c.csv.gz"),
        ("d.npz", "d.npz"),
        ("e.HDF5", "e.HDF5"),
    ],
)
def test_data_beside_the_tables_of_a_folder_is_not_passed_over(tmp_path, form, tables, other, entry):
    if tables:
        WRITERS[form](tmp_path / f"a{form}", content())
    for harmless in (".hidden.csv", "notes.md", "columns.toml", "_SUCCESS", "empty/readme.txt"):
        (tmp_path / harmless).parent.mkdir(exist_ok=True)
        (tmp_path / harmless).touch()
    assert (reads_or_refuses(tmp_path) is not None) == tables
    (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / other).touch()
    with pytest.raises(UserError, match=f"{re.escape(entry)} in this folder would not be read") as error:
        formats.open_log(str(tmp_path))
    assert_one_line(error.value, str(tmp_path))


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
    (tmp_path / f"file{form}").write_text("x")
    assert reads_or_refuses(tmp_path / f"file{form}" / f"inner{form}") is None


@examples(50)
@given(key=st.sampled_from(["min_return", "max_return", "env", "regenerated", "behaviours"]), data=st.data())
def test_attributes_of_any_kind_are_harmless(tmp_path, key, data):
    values = [
        np.zeros(3),
        np.zeros((2, 2)),
        "x\ny",
        b"\xff",
        np.nan,
        np.inf,
        1,
        -1e308,
        h5py.Empty("f4"),
        1j,
        "[" * 10**4,
        json.dumps([{"name": "a", "transitions": "many", "episodes": 1, "mean_return": 1}]),
    ]
    write_hdf5(tmp_path / "a.hdf5", content())
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        file.attrs.update({"min_return": 1.0, "max_return": 2.0, "env": "Hopper-v5"})
        file.attrs[key] = data.draw(st.sampled_from(values))
    opened = formats.open_log(str(tmp_path / "a.hdf5"))
    assert isinstance(opened.env, str)
    assert isinstance(opened.regenerated, str)
    assert opened.behaviours == []
    low, high = opened.reference or (0, 1)
    assert np.isfinite(high - low)
    assert low < high


TOML = """observation_columns = ["observation_*"]
action_columns = "action_0"
reward_column = "reward"
episode_column = "episode"
action_low = [-1, 0.5]
action_high = 1
"""


def reads_or_refuses_toml(path, table):
    try:
        found = columns.read_toml(path)
    except UserError as error:
        assert_one_line(error, str(path))
        return None
    for side in columns.RANGES:
        assert np.isfinite(found.pop(side, 0.0)).all()
    reads_or_refuses(table, found)
    return found


@examples(150)
@given(damage=damages())
def test_a_damaged_mapping_is_refused_or_harmless(tmp_path, damage):
    write_csv(tmp_path / "a.csv", content())
    (tmp_path / "a.toml").write_bytes(damage(TOML.encode()))
    reads_or_refuses_toml(tmp_path / "a.toml", tmp_path / "a.csv")


VALUES = [
    "1",
    "1e400",
    "nan",
    "-inf",
    "9" * 400,
    "9" * 5000,
    '""',
    "[]",
    "[[]]",
    "{}",
    "true",
    '"*"',
    '["*", "*"]',
    "1979-13-01",
]
VALUES += [
    '"[z-a]"',
    '"\\n"',
    '"\\u0000"',
    "[" * 2000,
    '["reward", 1]',
    '"action_0"',
    "07:32:00",
    '["observation_0", "x"]',
]


@examples(150)
@given(entries=st.dictionaries(st.sampled_from([*columns.DEFAULTS, *columns.RANGES, "x"]), st.sampled_from(VALUES)))
def test_a_mapping_of_anything_is_refused_or_harmless(tmp_path, entries):
    write_csv(tmp_path / "a.csv", content())
    (tmp_path / "a.toml").write_text("\n".join(f"{name} = {value}" for name, value in entries.items()))
    reads_or_refuses_toml(tmp_path / "a.toml", tmp_path / "a.csv")


def test_mappings_that_are_no_files_are_refused(tmp_path):
    write_csv(tmp_path / "a.csv", content())
    assert reads_or_refuses_toml(tmp_path / "none.toml", tmp_path / "a.csv") is None
    assert reads_or_refuses_toml(tmp_path, tmp_path / "a.csv") is None
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    assert reads_or_refuses_toml(tmp_path / "a.toml", tmp_path / "a.csv") is None


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory):
    """A small data set of Minari's in each of its formats, by name: where they are, and the bytes of their files."""
    folder = tmp_path_factory.mktemp("minari")
    seen, acted = spaces.Dict({"a": spaces.Box(-9, 9, (2,)), "b": spaces.Discrete(3)}), spaces.Box(-1, 1, (1,))
    found = {}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        for form in ("hdf5", "arrow", "parquet"):
            episodes = [
                EpisodeBuffer(
                    id=None,
                    observations={"a": np.ones((5, 2), np.float32), "b": np.arange(5) % 3},  # pyright: ignore
                    actions=np.zeros((4, 1), np.float32),  # pyright: ignore
                    rewards=np.arange(4.0),  # pyright: ignore
                    terminations=np.arange(4) == 3,  # pyright: ignore
                    truncations=np.zeros(4, bool),  # pyright: ignore
                )
                for _ in range(2)
            ]
            minari.create_dataset_from_buffers(
                f"mine/{form}-v0", episodes, observation_space=seen, action_space=acted, data_format=form
            )
            paths = sorted(path for path in (folder / f"mine/{form}-v0").rglob("*") if path.is_file())
            found[f"mine/{form}-v0"] = {path: path.read_bytes() for path in paths}
    return folder, found


@pytest.fixture
def minari_sets_here(data_sets, monkeypatch):
    folder, found = data_sets
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return found


def put(files):
    for path, start in files.items():
        path.write_bytes(start)


@contextmanager
def metadata(found, changes, missing=(), form="hdf5"):
    """The name of a data set whose metadata are other ones for a while."""
    files = found[f"mine/{form}-v0"]
    path = next(path for path in files if path.parent.name == "data" and path.name == "metadata.json")
    start = {key: value for key, value in json.loads(files[path]).items() if key not in missing}
    try:
        path.write_text(json.dumps(start | changes))
        yield f"minari:mine/{form}-v0"
    finally:
        put(files)


@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
@examples(75)
@given(damage=damages(), which=st.integers(0, 99))
def test_damaged_data_sets_of_minari_are_refused_or_give_numbers(form, minari_sets_here, damage, which):
    files = minari_sets_here[f"mine/{form}-v0"]
    path = sorted(files)[which % len(files)]
    try:
        path.write_bytes(damage(files[path]))
        reads_or_refuses(f"minari:mine/{form}-v0")
    finally:
        put(files)
    assert reads_or_refuses(f"minari:mine/{form}-v0") is not None


SPACES = [
    {"type": "Text", "max_length": 3, "min_length": 1, "charset": "ab"},
    {"type": "Discrete", "dtype": "int64", "start": 0, "n": 10**12},
    {"type": "Discrete", "dtype": "int64", "start": 10**30, "n": 3},
    {"type": "Discrete", "start": 0, "n": -1},
    {"type": "MultiBinary", "n": 10**12},
    {"type": "MultiBinary", "n": [10**6, 10**6]},
    {"type": "MultiDiscrete", "dtype": "int64", "nvec": [10**9] * 3, "start": [0] * 3},
    {"type": "Box", "dtype": "float32", "shape": [10**12], "low": 0, "high": 1},
    {"type": "Box", "dtype": "float32", "shape": [1], "low": [1], "high": [0]},
    {"type": "Box", "dtype": "float32", "shape": [3], "low": [0] * 3, "high": [1] * 3},
    {"type": "Box", "dtype": "float32", "shape": [0], "low": [], "high": []},
    {"type": "Box", "dtype": "object", "shape": [1], "low": [0], "high": [1]},
    {"type": "Box", "dtype": "uint8", "shape": [2, 2, 3], "low": [[[0] * 3] * 2] * 2, "high": [[[255] * 3] * 2] * 2},
    {"type": "Dict", "subspaces": {}},
    {
        "type": "Dict",
        "subspaces": {"a": {"type": "Box", "dtype": "float32", "shape": [2], "low": [0, 0], "high": [1, 1]}},
    },
    {"type": "Tuple", "subspaces": []},
    {"type": "Sequence"},
    {"type": ["Box"]},
    [],
]
ANYTHING = st.one_of(
    st.sampled_from([json.dumps(space) for space in SPACES]),
    st.sampled_from(
        [None, True, -1, 0, 10**15, 10**400, 1e308, float("nan"), "", "x", "hdf5", "[" * 2000, [], {}, [1]]
    ),
)


@examples(150)
@given(
    what=st.dictionaries(
        st.sampled_from(
            [
                "observation_space",
                "action_space",
                "total_steps",
                "total_episodes",
                "data_format",
                "env_spec",
                "eval_env_spec",
                "ref_min_score",
                "ref_max_score",
                "jpeg_encoding",
                "author",
                "author_email",
            ]
        ),
        ANYTHING,
        min_size=1,
        max_size=3,
    )
)
def test_metadata_of_anything_are_refused_or_harmless(minari_sets_here, what):
    with metadata(minari_sets_here, what) as name:
        reads_or_refuses(name)


@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total_episodes": 1}, "2 episodes are there, and its metadata say 1"),
        ({"total_episodes": 1, "total_steps": 4}, "2 episodes are there, and its metadata say 1"),
        ({"total_episodes": 3}, "2 episodes are there, and its metadata say 3"),
        ({"total_steps": 7}, "8 steps are there, and its metadata say 7"),
    ],
)
def test_metadata_that_count_otherwise_are_refused(minari_sets_here, form, change, message):
    with metadata(minari_sets_here, change, form=form) as name, pytest.raises(UserError, match=message):
        read_dataset(formats.open_log(name))


@pytest.mark.parametrize("key", ["observation_space", "action_space"])
def test_spaces_that_are_not_those_of_the_data_are_refused(minari_sets_here, key):
    wide = {"type": "Discrete", "dtype": "int64", "start": 0, "n": 2**20 + 1}
    for space in (wide, *SPACES):
        with metadata(minari_sets_here, {key: json.dumps(space)}) as name:
            assert reads_or_refuses(name) is None


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (1, 0), (0, 10**400), (float("nan"), 1), (0, float("inf")), ("a", "b"), (None, 1)]
)
def test_reference_scores_are_a_range_or_nothing(minari_sets_here, low, high):
    with metadata(minari_sets_here, {"ref_min_score": low, "ref_max_score": high}) as name:
        assert formats.open_log(name).reference == ((0, 1) if (low, high) == (0, 1) else None)


SPEC = EnvSpec("Env-v0", entry_point="evil_module:Env", max_episode_steps=9)
SPECS = {
    "a module in its name": SPEC.to_json().replace('"Env-v0"', '"evil_module:Env-v0"'),
    "a module as its entry": SPEC.to_json(),
    "a known name": EnvSpec(
        "Pendulum-v1", entry_point="evil_module:Env", vector_entry_point="evil_module:Env"
    ).to_json(),
    "a wrapper": EnvSpec(
        "Pendulum-v1", SPEC.entry_point, additional_wrappers=(WrapperSpec("W", "evil_module:Env", {}),)
    ).to_json(),
}


@pytest.fixture
def evil_module(tmp_path, monkeypatch):
    """A module, and the file that is there once it was imported."""
    made = tmp_path / "made"
    (tmp_path / "evil_module.py").write_text(f"from pathlib import Path\nPath({str(made)!r}).touch()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return made


def test_the_evil_module_would_be_imported(evil_module):
    with pytest.raises(AttributeError):
        gymnasium.make(EnvSpec.from_json(SPECS["a module as its entry"]))
    sys.modules.pop("evil_module")
    assert evil_module.exists()


@pytest.mark.parametrize(
    "missing", [(), ("observation_space",), ("action_space",), ("observation_space", "action_space")]
)
@pytest.mark.parametrize("key", ["env_spec", "eval_env_spec"])
@pytest.mark.parametrize("spec", SPECS)
def test_what_metadata_name_is_not_imported(evil_module, minari_sets_here, spec, key, missing):
    with metadata(minari_sets_here, {key: SPECS[spec]}, missing) as name:
        assert (reads_or_refuses(name) is None) == bool(missing)
        if not missing:
            assert formats.open_log(name).env == ("Pendulum-v1" if "Pendulum-v1" in SPECS[spec] else "")
    assert not evil_module.exists()
    assert "evil_module" not in sys.modules


@pytest.mark.parametrize(
    "name",
    ["", "x", "../x-v0", "a b-v0", "mine/none-v0", "mine/hdf5-v" + "9" * 5000, "x" * 300 + "-v0", "a/" * 200 + "x-v0"],
)
def test_names_that_minari_does_not_know_are_refused(minari_sets_here, name):
    assert reads_or_refuses(f"minari:{name}") is None
