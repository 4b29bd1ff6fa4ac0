"""Random logs, and the comparison of two logs."""

import itertools
import os

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from edp.data import formats
from edp.data.dataset import read_dataset
from edp.data.formats.hdf5 import open_hdf5
from edp.data.log import Log, Steps
from edp.errors import UserError

FILES = (".hdf5", ".npz", ".csv", ".parquet")

FORMATS = (*FILES, "minari:")

NUMBERS = itertools.count()

MORE = int(os.environ.get("EDP_TEST_EXAMPLES", "1"))  # multiplies the number of examples, and draws others each time


def examples(count):
    return settings(
        max_examples=count * MORE, derandomize=MORE == 1, deadline=None, suppress_health_check=list(HealthCheck)
    )


@st.composite
def random_numbers(draw, shape, kinds=(np.float32, np.float64)):
    """Numbers of one size, and a few that are special."""
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = (rng.standard_normal(shape) * draw(st.sampled_from([1.0, 1e-3, 255.0, 1e30, 1e-42]))).astype(kind)
    known = [0.0, -0.0, 1e-45, -3.4028234663852886e38, 3.4028234663852886e38]
    special = st.sampled_from(known) | st.floats(width=32, allow_nan=False, allow_infinity=False)
    for number in draw(st.lists(special, max_size=3)):
        found.flat[rng.integers(found.size)] = number
    return found


@st.composite
def random_logs(draw, known=None):
    """Episodes as they are recorded, with the states after their steps or without."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    ends = draw(st.lists(st.sampled_from("tob"), min_size=len(lengths), max_size=len(lengths)))
    last = np.cumsum(lengths) - 1
    terminals, timeouts = np.zeros((2, sum(lengths)), bool)
    terminals[last], timeouts[last] = [end in "tb" for end in ends], [end in "ob" for end in ends]
    if draw(st.booleans()):  # the last episode has no end
        terminals[-1] = timeouts[-1] = False
    states = draw(random_numbers((sum(lengths) + len(lengths), draw(st.integers(1, 3)))))
    first = np.cumsum([0, *lengths[:-1]]) + np.arange(len(lengths))
    at = np.concatenate([start + np.arange(length) for start, length in zip(first, lengths, strict=True)])
    known = draw(st.booleans()) if known is None else known
    return Steps(
        states[at],
        draw(random_numbers((sum(lengths), draw(st.integers(1, 3))))),
        draw(random_numbers((sum(lengths),))),
        terminals,
        timeouts,
        states[at + 1] if known else None,
    )


def as_log(steps):
    return Log("recorded", lambda: iter([steps]), len(steps.rewards))


def transitions(opened, **options):
    """What training sees, or None if no transition has a known next state."""
    try:
        return read_dataset(opened, **options)
    except UserError as error:
        assert "known next state" in str(error)
        return None


def assert_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def assert_same(a, b, known=True):
    """The same transitions; numbers of episodes may differ, and so may states after the end where none are known."""
    for name in ("obs", "action", "reward", "not_done"):
        assert_bits(getattr(a, name), getattr(b, name))
    used = slice(None) if known else a.not_done == 1
    assert_bits(a.next_obs[used], b.next_obs[used])
    np.testing.assert_array_equal(np.diff(a.episode) != 0, np.diff(b.episode) != 0)


def assert_same_steps(a, b):
    for name, column, other in zip(Steps._fields, a, b, strict=True):
        assert (column is None) == (other is None), name
        if column is not None:
            assert_bits(column, other)


def write_steps(name, steps):
    formats.write_log(name, as_log(steps))
    return name


def labels_of(steps):
    """A number for each row that changes where an episode begins."""
    return np.cumsum(steps.ends) - steps.ends


def read_hdf5(path, episode_limit=None, episode_return="sum"):
    return read_dataset(open_hdf5(path, episode_limit), episode_return)
