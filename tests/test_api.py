"""The Python interface."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import edp
from edp.cli import main
from edp.data.dataset import fingerprint, read_dataset
from edp.data.health import examine_log
from edp.errors import UserError
from edp.runs.directory import Run
from support.own_data import COLUMNS, HIGH, LOW, OPTIONS, write_csv
from support.small_run import digest


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


def test_a_run_that_was_interrupted_is_resumed(tmp_path):
    """Also one whose data is in memory alone; the result is that of an uninterrupted run."""
    log = edp.open_log(write_csv(tmp_path / "a.csv"), COLUMNS)
    whole, out = tmp_path / "whole", tmp_path / "run"
    options = OPTIONS | {"preset": "edp", "checkpoint_every": 20}
    edp.fit(log, whole, algo="iql", resume=True, **options)  # there is none yet

    def interrupt(event):
        if getattr(event, "step", 0) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        edp.fit(log, out, algo="iql", on_event=interrupt, **options)
    with pytest.raises(UserError, match="exists already"):
        edp.fit(log, out, algo="iql", **options)
    with pytest.raises(UserError, match="was started with `algo=iql`, not td3bc"):
        edp.fit(log, out, algo="td3bc", resume=True, **options)
    with pytest.raises(UserError, match=r"was started with `lr=0.0003`, not 0.1"):
        edp.fit(log, out, algo="iql", resume=True, **options | {"lr": 0.1})
    edp.fit(log, out, algo="iql", resume=True, **options)
    assert digest(out) == digest(whole)
    events = []
    policy = edp.fit(log, out, algo="iql", resume=True, on_event=events.append, **options)  # has finished
    assert not events
    assert policy.act([20.0, 5.0]).shape == (2,)
    rows = (tmp_path / "a.csv").read_text().splitlines()
    (tmp_path / "b.csv").write_text("\n".join(rows[:-3]) + "\n")
    with pytest.raises(UserError, match=r"not the data that .*run was trained on"):
        edp.fit(edp.open_log(tmp_path / "b.csv", COLUMNS), out, algo="iql", resume=True, **options)
    edp.fit(log, out, algo="iql", resume=True, on_event=events.append, **options | {"steps": 60})
    assert Run.open(out).status["step"] == 60
    assert Run.open(out).config["device"]


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


@pytest.fixture
def columns_file(tmp_path):
    lines = [f"{name} = {list(value) if isinstance(value, tuple) else value!r}" for name, value in COLUMNS.items()]
    lines += ["action_low = [18, 0]", "action_high = [75, 100]"]
    (tmp_path / "columns.toml").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "columns.toml"


def test_a_table_in_memory_with_a_file_of_columns(columns_file, tmp_path, monkeypatch):
    """The config tells where each value comes from. Nothing is trained here."""
    monkeypatch.setattr("edp.training.loop.Experiment.run", lambda self, run: iter(()))
    monkeypatch.setattr("edp.api.load_policy", lambda out: None)
    table = pa_csv.read_csv(write_csv(tmp_path / "a.csv"))
    edp.fit(table, tmp_path / "run", columns=columns_file, action_high=HIGH + 1, **OPTIONS)
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert config["units"] | {"low": [18, 0], "high": [76, 101]} == config["units"]
    origins = config["origins"]
    assert (origins["action_low"], origins["action_high"], origins["steps"]) == ("columns.toml", "user", "user")
    assert {origins[name] for name in COLUMNS} == {"columns.toml"}


class Frame:
    """A table of another library, which Arrow reads by its protocol, as that of pandas."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_tables_in_memory_are_read_as_files_are(columns_file, tmp_path):
    file = write_csv(tmp_path / "a.csv")
    table, wanted = pa_csv.read_csv(file), edp.open_log(file, columns_file)
    labels = table["day"].combine_chunks().dictionary_encode()  # pandas calls it a category
    coded = table.set_column(table.column_names.index("day"), "day", labels)
    for frame in (table, Frame(table), Frame(coded), table.to_pydict()):
        log = edp.open_log(frame, columns_file)
        assert fingerprint(read_dataset(log)) == fingerprint(read_dataset(wanted))
        assert (log.observation_names, log.low) == (("room_c", "outside_c"), (18, 0))
    assert examine_log(edp.open_log(table, columns_file)).rows == 120
    times = pa.array(range(0, 120 * 60_000_000_000, 60_000_000_000), pa.timestamp("ns"))
    log = edp.open_log(table.append_column("time", times), COLUMNS | {"time_column": "time", "calendar": ["hour"]})
    assert read_dataset(log).obs.shape[1] == 4


def test_data_frames_of_pandas(columns_file, tmp_path):
    pandas = pytest.importorskip("pandas")
    file = write_csv(tmp_path / "a.csv")
    frame = pandas.read_csv(file).astype({"day": "category"})
    frame.index = pandas.date_range("2026-01-01", periods=len(frame), freq="1min", name="time")
    log = edp.open_log(frame, COLUMNS | {"time_column": "time"})
    assert fingerprint(read_dataset(log)) == fingerprint(read_dataset(edp.open_log(file, COLUMNS)))


@pytest.mark.parametrize(
    ("data", "columns", "why"),
    [
        (3, None, "int: not a table"),
        (np.zeros((3, 2)), None, "ndarray: not a table"),
        (None, None, "NoneType: not a table"),
        ([1, 2], None, "list: not a table"),
        ({"room_c": [1, "x"]}, None, "dict: not a table"),
        ({"a": [1.0]}, None, "dict: which columns are the observations?"),
        ({"observation_0": ["x"], "action_0": [1.0]}, None, "dict: column 'observation_0' holds string, not numbers"),
        (pa.table([[1], [2]], ["observation_0", "observation_0"]), None, "Table: two columns are called"),
        ({"a": [1.0]}, ["a"], "`columns` is a mapping or the name of a TOML file, not ['a']"),
        ({"a": [1.0]}, 3, "`columns` is a mapping or the name of a TOML file, not 3"),
        ({"a": [1.0]}, "nowhere.toml", "nowhere.toml: no such file"),
        ({"a": [1.0]}, {"action_low": "x"}, "columns: action_low must be a number, or a list of them"),
        ({"a": [1.0]}, {"observation_columns": [["a"]]}, "`observation_columns` must be a word, not ['a']"),
        (edp.from_arrays(np.zeros((2, 1)), np.zeros((2, 1)), [0, 1], [0, 1]), COLUMNS, "`columns` is for tables"),
        (edp.from_arrays(np.zeros((2, 1)), np.zeros((3, 1)), [0, 1], [0, 1]), None, "arrays of different lengths"),
        (edp.from_arrays(np.zeros((2, 1)), np.zeros((2, 1)), [[0], [1]], [0, 1]), None, "rewards has shape (2, 1)"),
    ],
)
def test_wrong_data_and_columns_are_refused(data, columns, why, tmp_path):
    with pytest.raises(UserError, match=re.escape(why)):
        edp.fit(data, tmp_path / "run", columns=columns)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda log: edp.write("clean.csv", "x.csv"), "`log` must be a log, as edp.open_log"),
        (lambda log: edp.write(log, 7), "`to` must be the name of a file or folder, not 7"),
        (lambda log: edp.fit(log, 7), "`out` must be the name of a file or folder, not 7"),
        (lambda log: edp.load_policy(3), "`run` must be the name of a file or folder, not 3"),
        (lambda log: edp.from_episodes(5), "episodes: must be a list of dicts, not 5"),
        (lambda log: edp.from_episodes({"observations": []}), "episodes: must be a list of dicts, not {'obs"),
    ],
)
def test_wrong_types_are_refused(call, why):
    log = edp.from_arrays(np.zeros((3, 1)), np.zeros((3, 1)), np.zeros(3), np.zeros(3, bool))
    with pytest.raises(UserError, match=re.escape(why)):
        call(log)


def test_public_names_are_shown_and_there():
    assert {"fit", "UserError", "load_policy"} <= set(dir(edp))
    assert edp.UserError is UserError
    assert all(getattr(edp, name) for name in dir(edp))
