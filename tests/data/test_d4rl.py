import h5py
import numpy as np
import pytest

from edp.data.formats.hdf5 import write_hdf5
from edp.data.log import find_timeouts
from support.logs import read_hdf5
from edp.errors import UserError


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


def write(path, content):
    with h5py.File(path, "w") as file:
        for key, value in content.items():
            file[key] = value
    return path


def flags(n, *at):
    out = np.zeros(n, bool)
    out[list(at)] = True
    return out


def test_terminals_stop_the_bootstrap_and_timeouts_do_not(tmp_path):
    data = read_hdf5(write(tmp_path / "a.hdf5", arrays(terminals=flags(10, 3), timeouts=flags(10, 6))))
    # Rows 6 (timeout) and 9 (end of file) have no known next state.
    np.testing.assert_array_equal(data.reward, [0, 1, 2, 3, 4, 5, 7, 8])
    np.testing.assert_array_equal(data.not_done, [1, 1, 1, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(data.next_obs[0], data.obs[1])
    np.testing.assert_array_equal(data.returns, [0 + 1 + 2 + 3, 4 + 5 + 6])


def test_with_next_observations_nothing_is_dropped(tmp_path):
    content = arrays(terminals=flags(10, 3), timeouts=flags(10, 6))
    content["next_observations"] = content["observations"] + 100
    data = read_hdf5(write(tmp_path / "a.hdf5", content))
    assert len(data.obs) == 10
    np.testing.assert_array_equal(data.next_obs, content["observations"] + 100)
    assert data.not_done.sum() == 9


def test_a_terminal_in_the_last_row_is_kept(tmp_path):
    data = read_hdf5(write(tmp_path / "a.hdf5", arrays(terminals=flags(10, 9))))
    assert len(data.obs) == 10
    assert data.not_done[-1] == 0


def test_without_timeouts_the_episode_limit_tells(tmp_path):
    path = write(tmp_path / "a.hdf5", arrays(timeouts=None, terminals=flags(10, 1)))
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
    path = write(tmp_path / "bad.hdf5", content)
    with pytest.raises(UserError, match=message) as caught:
        read_hdf5(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_foreign_and_truncated_files(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        read_hdf5(tmp_path / "none.hdf5")
    (tmp_path / "text.hdf5").write_text("hello")
    with pytest.raises(UserError, match="not an HDF5 file"):
        read_hdf5(tmp_path / "text.hdf5")
    with pytest.raises(UserError, match="not an HDF5 file"):
        read_hdf5(tmp_path)
    whole = write(tmp_path / "whole.hdf5", arrays(n=5000)).read_bytes()
    (tmp_path / "cut.hdf5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="damaged HDF5 file"):
        read_hdf5(tmp_path / "cut.hdf5")


def test_attributes_of_other_origin_are_ignored(tmp_path):
    for content in ("not json", "[1]", '[{"name": "x"}]'):
        path = write(tmp_path / "a.hdf5", arrays())
        with h5py.File(path, "r+") as file:
            file.attrs["behaviours"] = content
        assert read_hdf5(path).behaviours == []


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        write_hdf5(tmp_path / "a.hdf5", {"x": np.array([object()])}, {})
    assert list(tmp_path.iterdir()) == []
