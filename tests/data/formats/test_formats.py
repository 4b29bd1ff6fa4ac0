"""Random logs through every format: what is written is read, whole, in pieces and from file to file."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp.data import arrays, formats, log
from edp.data.dataset import read_dataset, read_steps
from edp.data.formats import csv_faults, hdf5, sources
from edp.data.formats import minari as minari_sets
from edp.data.log import Steps
from edp.errors import UserError
from support.logs import (
    FORMATS,
    as_log,
    assert_same,
    assert_same_steps,
    examples,
    random_logs,
    transitions,
    write_steps,
)


@pytest.mark.parametrize("form", FORMATS)
@examples(60)
@given(steps=random_logs())
def test_what_is_written_is_read(form, place, steps):
    known, wanted = steps.next_observations is not None, transitions(as_log(steps))
    name = place(form)
    if wanted is None and form == "minari:":
        with pytest.raises(UserError, match="known next state"):
            write_steps(name, steps)
        return
    read = transitions(formats.open_log(write_steps(name, steps)))
    if wanted is None:
        assert read is None
    else:
        assert read is not None
        assert_same(wanted, read, known)


@examples(60)
@given(steps=random_logs(), forms=st.lists(st.sampled_from(FORMATS), min_size=2, max_size=4))
def test_nothing_changes_from_file_to_file(place, steps, forms):
    known, wanted = steps.next_observations is not None, transitions(as_log(steps))
    if wanted is None:
        return
    opened = as_log(steps)
    for name in map(place, forms):
        formats.write_log(name, opened)
        opened = formats.open_log(name)
    assert_same(wanted, read_dataset(opened), known)


@pytest.mark.parametrize("form", [".hdf5", ".npz", ".parquet"])
@examples(60)
@given(steps=random_logs())
def test_files_of_numbers_keep_every_step_and_its_precision(form, place, steps):
    read = read_steps(formats.open_log(write_steps(place(form), steps)))
    if form == ".parquet":  # tables end an episode with the file
        steps.timeouts[-1] |= not steps.terminals[-1]
    assert_same_steps(steps, read)


@pytest.mark.parametrize("form", FORMATS)
@examples(40)
@given(steps=random_logs(), size=st.integers(1, 4), on_disk=st.booleans())
def test_pieces_are_read_as_the_whole_is(form, place, steps, size, on_disk):
    if transitions(as_log(steps)) is None:
        return
    name = write_steps(place(form), steps)
    wanted, raw = read_dataset(formats.open_log(name)), read_steps(formats.open_log(name))
    with pytest.MonkeyPatch.context() as patch:
        for module in (log, hdf5, sources, arrays):
            patch.setattr(module, "PIECE", size)
        patch.setattr(minari_sets, "GATHER", size)
        patch.setattr(csv_faults, "BLOCK", 400 + size)
        opened = formats.open_log(name)
        count = len(list(opened.pieces()))
        assert count > 1 or form in (".csv", "minari:") or len(steps.rewards) <= size
        assert count > 1 or form != ".csv" or Path(name).stat().st_size < 1500
        read = read_dataset(opened, on_disk=on_disk)
        assert_same_steps(raw, read_steps(opened))
    assert_same(wanted, read)
    np.testing.assert_array_equal(wanted.episode, read.episode)
    np.testing.assert_array_equal(wanted.returns, read.returns)


@pytest.mark.parametrize("form", [".HDF5", ".NPZ", ".CSV", ".Parquet", ".h5"])
def test_names_may_be_in_capitals(form, place):
    steps = Steps(np.ones((3, 2)), np.zeros((3, 1)), np.arange(3.0), np.array([False, False, True]), np.zeros(3, bool))
    name = write_steps(place(form), steps)
    assert_same(read_dataset(as_log(steps)), read_dataset(formats.open_log(name)))
    usual = Path(write_steps(place(".hdf5" if form == ".h5" else form.lower()), steps))
    assert Path(name).read_bytes()[:4] == usual.read_bytes()[:4]
    assert {path.name for path in usual.parent.iterdir() if path.is_file()} == {Path(name).name, usual.name}


KINDS = ("<i8", "<i4", "|u1", "|b1", "<f2", ">f4", ">f8", "<f16")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_any_kind_are_written(form, kind, place):
    rng = np.random.default_rng(0)
    states, actions = (rng.integers(0, 2, (7, width)).astype(kind) for width in (2, 3))
    ends = np.array([False] * 5 + [True])
    steps = Steps(states[:-1], actions[:-1], np.arange(6).astype(kind), ends, ~ends & False, states[1:])
    assert_same(read_dataset(as_log(steps)), read_dataset(formats.open_log(write_steps(place(form), steps))))
