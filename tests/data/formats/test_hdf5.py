"""D4RL's layout: what is read, and what is refused."""

import json

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp.data import formats
from edp.data.formats.hdf5 import write_hdf5
from edp.data.log import find_timeouts
from edp.errors import UserError
from support.logs import (
    examples,
    read_hdf5,
)
from support.malformed import small_log, write_small_hdf5


def arrays(n=10, **changes):
    rng = np.random.default_rng(0)
    base = {
        "observations": np.arange(n * 2, dtype=np.float32).reshape(n, 2),
        "actions": rng.uniform(-1, 1, (n, 1)).astype(np.float32),
        "rewards": np.arange(n, dtype=np.float32),
        "terminals": np.zeros(n, bool),
        "timeouts": np.zeros(n, bool),
    }
    return {key: value for key, value in (base | changes).items() if value is not None}


def write_arrays(path, content):
    with h5py.File(path, "w") as file:
        for key, value in content.items():
            file[key] = value
    return path


def flags(n, *at):
    out = np.zeros(n, bool)
    out[list(at)] = True
    return out


def test_terminals_stop_the_bootstrap_and_timeouts_do_not(tmp_path):
    data = read_hdf5(write_arrays(tmp_path / "a.hdf5", arrays(terminals=flags(10, 3), timeouts=flags(10, 6))))
    # Rows 6 (timeout) and 9 (end of file) have no known next state.
    np.testing.assert_array_equal(data.reward, [0, 1, 2, 3, 4, 5, 7, 8])
    np.testing.assert_array_equal(data.not_done, [1, 1, 1, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(data.next_obs[0], data.obs[1])
    np.testing.assert_array_equal(data.returns, [0 + 1 + 2 + 3, 4 + 5 + 6])


def test_with_next_observations_nothing_is_dropped(tmp_path):
    content = arrays(terminals=flags(10, 3), timeouts=flags(10, 6))
    content["next_observations"] = content["observations"] + 100
    data = read_hdf5(write_arrays(tmp_path / "a.hdf5", content))
    assert len(data.obs) == 10
    np.testing.assert_array_equal(data.next_obs, content["observations"] + 100)
    assert data.not_done.sum() == 9


def test_a_terminal_in_the_last_row_is_kept(tmp_path):
    data = read_hdf5(write_arrays(tmp_path / "a.hdf5", arrays(terminals=flags(10, 9))))
    assert len(data.obs) == 10
    assert data.not_done[-1] == 0


def test_without_timeouts_the_episode_limit_tells(tmp_path):
    path = write_arrays(tmp_path / "a.hdf5", arrays(timeouts=None, terminals=flags(10, 1)))
    np.testing.assert_array_equal(read_hdf5(path, episode_limit=3).reward, [0, 1, 2, 3, 5, 6, 8])
    np.testing.assert_array_equal(find_timeouts(flags(10, 1), 3), flags(10, 4, 7))


def test_a_genuine_file_reads(reference):
    data = read_hdf5(reference("fixtures/hopper_medium-v2.hdf5"))
    assert data.obs.shape == (911, 11)
    assert data.not_done.sum() == 909
    assert data.returns == pytest.approx([1465.18, 1412.73], abs=0.01)


def nan_at(shape, *index):
    out = np.zeros(shape, np.float32)
    out[index] = np.nan
    return out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (arrays(actions=None), "missing actions"),
        (arrays(rewards=np.zeros(9)), "different lengths.*observations 10.*rewards 9"),
        (arrays(observations=nan_at((10, 2), 4, 1)), "observations hold NaN.*first in row 4, column 1"),
        (arrays(actions=nan_at((10, 1), 2, 0)), "actions hold NaN.*first in row 2, column 0"),
        (arrays(rewards=nan_at(10, slice(7, 9))), "rewards hold NaN.*first in row 7"),
        (arrays(rewards=np.full(10, np.inf)), "rewards hold NaN, Inf or too large a number, first in row 0"),
        (arrays(terminals=np.full(10, 2.0)), "terminals must be 0 or 1, and row 0 has 2.0"),
        (arrays(observations=np.zeros(10)), "observations has shape"),
        (arrays(rewards=np.zeros((10, 1))), "rewards has shape"),
        (arrays(rewards=np.array([b"x"] * 10)), "rewards holds"),
        (arrays(n=0), "no transitions"),
        (arrays(n=1), "no transition in it has a known next state"),
        (arrays(rewards=np.full(10, 1e39)), "rewards hold NaN, Inf or too large a number, first in row 0"),
        (arrays(next_observations=np.zeros((10, 3))), "differ in width"),
    ],
)
def test_bad_files_are_refused_with_one_line(tmp_path, content, message):
    path = write_arrays(tmp_path / "bad.hdf5", content)
    with pytest.raises(UserError, match=message) as caught:
        read_hdf5(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_foreign_and_truncated_files(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        read_hdf5(tmp_path / "none.hdf5")
    (tmp_path / "text.hdf5").write_text("hello", encoding="utf-8")
    with pytest.raises(UserError, match="not an HDF5 file"):
        read_hdf5(tmp_path / "text.hdf5")
    with pytest.raises(UserError, match="not an HDF5 file"):
        read_hdf5(tmp_path)
    whole = write_arrays(tmp_path / "whole.hdf5", arrays(n=5000)).read_bytes()
    (tmp_path / "cut.hdf5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="damaged HDF5 file"):
        read_hdf5(tmp_path / "cut.hdf5")


def test_attributes_of_other_origin_are_ignored(tmp_path):
    for text in ("not json", "[1]", '[{"name": "x"}]'):
        path = write_arrays(tmp_path / "a.hdf5", arrays())
        with h5py.File(path, "r+") as file:
            file.attrs["behaviours"] = text
        assert read_hdf5(path).behaviours == []


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        write_hdf5(tmp_path / "a.hdf5", {"x": np.array([object()])}, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("chunks", [None, (5,)])
@pytest.mark.parametrize("rows", [0, 5])
def test_what_was_not_written_is_refused(tmp_path, chunks, rows):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for key, array in small_log().items():
            each = chunks and (*chunks, *array.shape[1:])
            file.create_dataset(key, array.shape, array.dtype, chunks=each)
            if chunks and rows:
                file[key][:rows] = array[:rows]
    with pytest.raises(UserError, match="not all observations were written"):
        formats.open_log(str(tmp_path / "a.hdf5"))


@pytest.mark.parametrize("kind", ["virtual", "gone", "external"])
@pytest.mark.parametrize("key", ["observations", "timeouts"])
def test_what_is_kept_in_other_files_is_refused(tmp_path, kind, key):
    path, other, found = tmp_path / "a.hdf5", tmp_path / "b.hdf5", small_log()
    write_small_hdf5(other, found)
    write_small_hdf5(path, {name: array for name, array in found.items() if name != key})
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
    write_small_hdf5(tmp_path / "a.hdf5", small_log())
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
