"""Malformed files of NumPy arrays."""

import numpy as np
import pytest

from edp.data import formats
from edp.errors import UserError
from support.malformed import (
    npy,
    reads_or_refuses,
    small_log,
    write_members,
)


def test_files_that_are_no_npz_are_not_advised_to_be_unpickled(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, allow_pickle=True, **small_log() | {"rewards": np.array([{}] * 12, object)})
    with pytest.raises(UserError, match="'rewards' holds Python objects: save it as numbers"):
        formats.open_log(str(path))
    for wrong in (b"a,b\n1,2\n", npy(np.zeros(3))):
        path.write_bytes(wrong)
        with pytest.raises(UserError, match=r"it is no \.npz file") as refused:
            formats.open_log(str(path))
        assert "pickle" not in str(refused.value)


def test_members_that_are_no_arrays_are_refused(tmp_path):
    found = {f"{key}.npy": npy(array) for key, array in small_log().items()}
    for name, member in (("rewards.npy", b"hello"), ("rewards.npy", b"")):
        write_members(tmp_path / "a.npz", found | {name: member})
        assert reads_or_refuses(tmp_path / "a.npz") is None
    write_members(tmp_path / "a.npz", found | {"notes.txt": b"hello", "huge.npy": npy(np.zeros(3))[:-1]})
    assert formats.open_log(str(tmp_path / "a.npz")).left_out == ("huge", "notes.txt")
