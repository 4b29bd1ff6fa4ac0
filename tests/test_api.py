"""The Python interface."""

import numpy as np
import pytest

import edp
from edp.cli import main
from edp.data.dataset import read_dataset
from edp.errors import UserError
from support.own_data import COLUMNS, HIGH, LOW, OPTIONS, write_csv


def test_from_python_arrays_to_a_policy(tmp_path):
    rng = np.random.default_rng(0)
    episodes = [
        {
            "observations": rng.normal(size=(9, 3)),
            "actions": rng.uniform(LOW, HIGH, (8, 2)),
            "rewards": rng.normal(size=8),
            "terminated": bool(number % 2),
        }
        for number in range(6)
    ]
    log, events = edp.from_episodes(episodes), []
    policy = edp.fit(log, tmp_path / "run", algo="iql", on_event=events.append, n_step=3, **OPTIONS)
    assert policy.act(rng.normal(size=(5, 3))).shape == (5, 2)
    assert {type(event).__name__ for event in events} == {"Compiled", "Epoch", "Validation"}
    place = edp.write(log, tmp_path / "mine.npz")
    assert main(["train", "--resume", str(tmp_path / "run"), "--steps", "60", "--data", place]) == 0


def test_lists_are_as_good_as_tuples(tmp_path):
    file = write_csv(tmp_path / "a.csv")
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in COLUMNS.items()}
    np.testing.assert_array_equal(
        read_dataset(edp.open_log(file, lists)).obs, read_dataset(edp.open_log(file, COLUMNS)).obs
    )
    policy = edp.fit(file, tmp_path / "run", columns=lists, **OPTIONS | {"hidden": [16, 16], "critic_hidden": [16, 16]})
    assert policy.spec.policy.hidden == (16, 16)  # pyright: ignore
    assert edp.load_policy(tmp_path / "run").act(np.zeros(2)).shape == (2,)
    with pytest.raises(UserError, match="`observation_columns` must be a list of names, not 'room_c'"):
        edp.open_log(file, COLUMNS | {"observation_columns": "room_c"})
    with pytest.raises(UserError, match="`hidden` must be a list of whole numbers, not 16"):
        edp.fit(file, tmp_path / "other", columns=COLUMNS, hidden=16)


def test_public_names_are_shown_and_there():
    assert {"fit", "UserError", "load_policy"} <= set(dir(edp))
    assert edp.UserError is UserError
    assert all(getattr(edp, name) for name in dir(edp))
