"""Small files of every format, ways to damage them, and a check that a file gives good data or one line of error."""

import io
import json
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from edp.data import formats, health
from edp.data.dataset import read_dataset
from edp.errors import UserError


def small_log(next_observations=True, timeouts=True, n=12):
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
    """Read a file: return good transitions, or None if it is refused in one line. ``edp data check`` must agree."""
    try:
        json.dumps(
            health.health_json(health.examine_log(formats.open_log(str(name), meaning or {}, limit))), allow_nan=False
        )
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


def write_small_hdf5(path, arrays, **options):
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            if array.dtype.kind in "OU":
                file.create_dataset(key, data=array.astype(str).astype(object), dtype=h5py.string_dtype())
            elif array.dtype.kind in "mM":
                file.create_dataset(key, data=array.astype(h5py.opaque_dtype(array.dtype)))
            else:
                file.create_dataset(key, data=array, **(options if array.ndim else {}))


def write_small_npz(path, arrays, **options):
    (np.savez_compressed if options else np.savez)(path, **arrays)


ARRAYS = {".hdf5": write_small_hdf5, ".npz": write_small_npz}

PACKED = {"compression": "gzip", "chunks": True}


def write_small_csv(path, arrays, **options):
    wide = {
        f"{name}_{i}": arrays[f"{name}s"][:, i]
        for name in ("observation", "action")
        for i in range(2 - (name[0] == "a"))
    }
    rows = [*wide.values(), arrays["rewards"], arrays["terminals"].astype(int), np.arange(12) // 6]
    lines = [[*wide, "reward", "terminal", "episode"], *zip(*(row.tolist() for row in rows), strict=True)]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")


def write_small_parquet(path, arrays, **options):
    lists = pa.FixedSizeListArray.from_arrays(arrays["observations"].ravel(), 2)
    found = {"observation_0": lists, "action_0": arrays["actions"][:, 0], "reward": arrays["rewards"]}
    found |= {"terminal": arrays["terminals"], "episode": np.arange(12) // 6}
    pq.write_table(pa.table(found), path, compression="zstd" if options else "none", row_group_size=5)


WRITERS = ARRAYS | {".csv": write_small_csv, ".parquet": write_small_parquet}

BAD = [np.nan, np.inf, -np.inf, 1e39, -1e308, 2.0, -1.0, 0.5, 3.4028235e38]


@st.composite
def damages(draw):
    """A random change of the bytes of a file of any length."""
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


def npy(array, **options):
    with io.BytesIO() as file:
        np.save(file, array, **options)
        return file.getvalue()


def write_members(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, member in members.items():
            file.writestr(name, member)
