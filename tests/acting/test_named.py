"""Observations by name are the numbers that training saw."""

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import edp
from edp.acting.named import Encoder, names_of, with_index
from edp.data import formats
from edp.data.dataset import read_steps
from edp.data.signals import name_signals
from edp.errors import UserError
from support.plant import COLUMNS, observations


@pytest.fixture(scope="module")
def log(plant):
    return formats.open_log(str(plant), COLUMNS)


@pytest.fixture(scope="module")
def steps(log):
    return read_steps(log)


@pytest.fixture
def encoder(log):
    return Encoder(name_signals(log.observation_names, log.action_names, log.encoding, (9, 2)))


def encode(encoder, obs):
    return encoder.rows(obs, names_of(obs))


def test_every_row_of_the_log(encoder, plant, steps):
    rows = observations(plant)
    assert steps.observations.shape[1] == 9
    for number in (0, 1, 59, 60, 1439, 1440, len(rows) - 1):
        found, single = encode(encoder, rows[number])
        assert single
        np.testing.assert_array_equal(found[0], steps.observations[number].astype(np.float32))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for table in (columns, pa.table(columns)):
        found, single = encode(encoder, table)
        assert not single
        np.testing.assert_array_equal(found, steps.observations.astype(np.float32))


@pytest.mark.parametrize(
    "time",
    [
        "2026-03-02 06:01",
        "2026-03-02T06:01:00",
        datetime(2026, 3, 2, 6, 1),
        np.datetime64("2026-03-02T06:01:00.000000000"),
        datetime(2026, 3, 2, 6, 1, tzinfo=UTC).timestamp(),
    ],
    ids=repr,
)
def test_times(encoder, plant, steps, time):
    found, _ = encode(encoder, observations(plant)[1] | {"time": time})
    np.testing.assert_array_equal(found[0], steps.observations[1].astype(np.float32))


def test_times_as_they_are_written_in_the_log(tmp_path, plant):
    written = tmp_path / "german.csv"
    written.write_text(plant.read_text(encoding="utf-8").replace("2026-03-0", "03.2026 0"), encoding="utf-8")
    german = formats.open_log(str(written), COLUMNS | {"time_format": "%m.%Y %d %H:%M"})
    encoder = Encoder(name_signals(german.observation_names, german.action_names, german.encoding, (9, 2)))
    row = observations(written)[61]
    assert row["time"] == "03.2026 02 07:01"
    numbers = read_steps(german).observations[61].astype(np.float32)
    for time in (row["time"], datetime(2026, 3, 2, 7, 1)):
        np.testing.assert_array_equal(encode(encoder, row | {"time": time})[0][0], numbers)
    with pytest.raises(UserError, match=r"must be a time as in the log \(%m.%Y %d %H:%M\)"):
        encode(encoder, row | {"time": "2026-03-02 07:01"})


GOOD = {"time": "2026-03-02 06:01", "mode": "day", "level_%": 50.0, "temp_C": 60.0, "draw_l_min": 3.0}


@pytest.mark.parametrize(
    "obs, said",
    [
        ({"temp_C": ...}, "no 'temp_C': the policy sees mode, level_%, temp_C, draw_l_min, time"),
        ({"temp_C": ..., "temp": 60.0}, "unknown observation 'temp': did you mean 'temp_C'?"),
        ({"pressure": 1.0}, "unknown observation 'pressure': choose from: mode, level_%"),
        ({"mode=day": 1.0}, "unknown observation 'mode=day': did you mean 'mode'?"),
        ({"mode": "dusk"}, "'mode' is 'dusk', which is not in the training data: it has 'day', 'night'"),
        ({"mode": 1}, "'mode' is '1', which is not in the training data"),
        ({"level_%": "41,0"}, "'level_%' must be a number, not '41,0'"),
        ({"level_%": "41"}, "'level_%' must be a number, not '41'"),
        ({"level_%": datetime(2026, 3, 2)}, "'level_%' must be a number, not datetime"),
        ({"level_%": [1.0, 2.0]}, "'level_%' has shape (2,) and 'mode' shape ()"),
        ({"time": "yesterday"}, "'time' must be a time as in the log (2026-03-02 06:00), a datetime, or seconds"),
        ({"time": None}, "'time' must be a time"),
        ({"time": "2026-03-02T06:01:00Z"}, "'time' has a time zone, and the times of the log have none"),
        ({"time": datetime(2026, 3, 2, 6, 1, tzinfo=UTC)}, "'time' has a time zone"),
        ({"level_%": 10**400}, "'level_%' must be a number, not 1000"),
        ({"level_%": "Bad Output"}, "'level_%' must be a number, not 'Bad Output'"),
        ({"time": float("nan")}, "'time' must be a time"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_named(encoder, obs, said):
    changed = {name: value for name, value in (GOOD | obs).items() if value is not ...}
    with pytest.raises(UserError) as error:
        encode(encoder, changed)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_columns_with_a_wrong_cell(encoder):
    columns = {name: [value] * 3 for name, value in GOOD.items()}
    for wrong in ([1.0, "low", 2.0], np.array(["1", "2", "3"]), np.array([1.0, None, "x"], object)):
        with pytest.raises(UserError, match="'level_%' must be a number"):
            encode(encoder, columns | {"level_%": wrong})
    rows, _ = encode(encoder, columns | {"level_%": np.array([1, None, 2], object), "mode": ["day", "night", None]})
    np.testing.assert_array_equal(np.isnan(rows[:, 2]), [False, True, False])
    np.testing.assert_array_equal(rows[:, :2], [[1, 0], [0, 1], [np.nan, np.nan]])


def test_texts_that_mean_an_empty_cell(plant):
    log = formats.open_log(str(plant), COLUMNS | {"missing_texts": ("Bad Input",)})
    encoder = Encoder(name_signals(log.observation_names, log.action_names, log.encoding, (9, 2)))
    empty = encode(encoder, GOOD | {"draw_l_min": None, "mode": None})[0]
    for text in ("Bad Input", "NA", "null", ""):
        np.testing.assert_array_equal(encode(encoder, GOOD | {"draw_l_min": text, "mode": text})[0], empty)
    columns = {name: [value] * 2 for name, value in GOOD.items()} | {"draw_l_min": [1.5, "Bad Input"]}
    for table in (columns, columns | {"draw_l_min": pa.array(["Bad Input", None])}):
        assert np.isnan(encode(encoder, table)[0][-1, 4])
    with pytest.raises(UserError, match="'draw_l_min' must be a number, not 'Bad Input'"):
        other = formats.open_log(str(plant), COLUMNS).encoding
        encode(Encoder(name_signals(log.observation_names, (), other, (9, 2))), GOOD | {"draw_l_min": "Bad Input"})


def test_numbers_that_mean_an_empty_cell(plant):
    log = formats.open_log(str(plant), COLUMNS | {"missing_texts": ("-9999",)})
    encoder = Encoder(name_signals(log.observation_names, log.action_names, log.encoding, (9, 2)))
    for number in (-9999, -9999.0, "-9999", np.float32(-9999)):
        assert np.isnan(encode(encoder, GOOD | {"draw_l_min": number})[0][0, 4])
    columns = {name: [value] * 2 for name, value in GOOD.items()} | {"draw_l_min": [1.5, -9999]}
    assert np.isnan(encode(encoder, columns)[0][:, 4]).tolist() == [False, True]
    assert encode(encoder, GOOD | {"draw_l_min": -999})[0][0, 4] == -999


def test_cells_that_cannot_be_read_are_faults(encoder):
    columns = {name: [value] * 3 for name, value in GOOD.items()}
    columns |= {"mode": ["day", "dusk", "night"], "level_%": [1.0, 2.0, "low"], "time": [None, *columns["time"][:2]]}
    faults = []
    rows, _ = encoder.rows(columns, list(columns), faults)
    bad = [range(5, 9), range(2), range(2, 3)]
    assert np.isinf(rows).tolist() == [[column in columns for column in range(9)] for columns in bad]
    assert len(faults) == 3 and "'mode' is 'dusk'" in faults[0]
    rows, _ = encoder.rows(GOOD | {"level_%": 10**400}, list(GOOD), faults)
    assert rows[0, 2] == np.inf


class Frame(dict):
    """A table with an index, as pandas has it."""

    def __init__(self, columns, index):
        super().__init__({name: cells for name, cells in columns.items() if name != index})
        self.whole, self.columns, self.index = columns, list(self), SimpleNamespace(names=[index])

    def reset_index(self):
        return self.whole


class Row(dict):
    def __init__(self, cells, name):
        super().__init__(cells)
        self.index, self.name = list(cells), name

    def reset_index(self):
        raise NotImplementedError

    def to_dict(self):
        return dict(self)


def test_the_time_may_be_the_index_of_a_table(encoder):
    columns = {name: [value] * 2 for name, value in GOOD.items()}
    wanted = encode(encoder, GOOD)[0][0]
    assert names_of(with_index(Frame(columns, "time"), "time")) == list(columns)
    unnamed = Frame(columns, None)
    assert with_index(unnamed, "time") is unnamed
    without = {name: value for name, value in GOOD.items() if name != "time"}
    row = with_index(Row(without, datetime(2026, 3, 2, 6, 1)), "time")
    np.testing.assert_array_equal(encode(encoder, row)[0][0], wanted)
    numbered = Row(without, 7)
    assert with_index(numbered, "time") is numbered


def test_other_columns_of_the_log_may_be_there(encoder):
    given = GOOD | {"operator": "anna", "shift": 3, "valve_%": 4.0, "cost_ct": -1.0, "trip": 0}
    np.testing.assert_array_equal(encode(encoder, given)[0], encode(encoder, GOOD)[0])


def test_numbers_and_booleans_among_the_texts(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"on": {on}, "x": {x}, "u": 0.{x}}}\n' for x, on in enumerate(("true", "false") * 3)))
    log = formats.open_log(
        str(path), {"observation_columns": ("on", "x"), "action_columns": ("u",), "one_hot": ("on",)}
    )
    encoder = Encoder(name_signals(log.observation_names, log.action_names, log.encoding, (3, 1)))
    for row, on in zip(read_steps(log).observations, (True, False), strict=False):
        np.testing.assert_array_equal(encode(encoder, {"on": on, "x": row[2]})[0][0], row.astype(np.float32))
        np.testing.assert_array_equal(encode(encoder, {"on": str(on).lower(), "x": row[2]})[0][0], row)


def test_what_has_names():
    assert names_of({"a": 1.0}) == ["a"]
    assert names_of({}) == []
    assert names_of(pa.table({"a": [1.0]})) == ["a"]
    for array in (np.zeros(2), [1.0, 2.0], (1.0, 2.0), 1.0, {0: 1.0, 1: 2.0}):
        assert names_of(array) is None


class TestPolicy:
    def test_names_in_names_out(self, plant_run, plant, steps):
        rows = observations(plant)
        numbers = edp.load_policy(plant_run).act(steps.observations[5])
        action = edp.load_policy(plant_run).act(rows[5])
        assert list(action) == ["valve_%", "heater_%"]
        assert all(type(number) is float for number in action.values())
        np.testing.assert_array_equal(np.float32([*action.values()]), numbers)
        columns = {name: [row[name] for row in rows[:7]] for name in rows[0]}
        actions = edp.load_policy(plant_run).act(columns)
        np.testing.assert_array_equal(
            np.stack([*actions.values()], axis=1), edp.load_policy(plant_run).act(steps.observations[:7])
        )

    def test_pandas(self, plant_run, plant, steps):
        pd = pytest.importorskip("pandas")
        numbers = edp.load_policy(plant_run).act(steps.observations[:3])
        for frame in (pd.read_csv(plant), pd.read_csv(plant, parse_dates=["time"])):
            actions = edp.load_policy(plant_run).act(frame.head(3))
            np.testing.assert_array_equal(pd.DataFrame(actions), numbers)
            one = edp.load_policy(plant_run).act(frame.iloc[0])
            np.testing.assert_array_equal(
                np.float32([*one.values()]), edp.load_policy(plant_run).act(steps.observations[0])
            )
        numbered = pd.DataFrame(steps.observations[:3])
        np.testing.assert_array_equal(edp.load_policy(plant_run).act(numbered), numbers)
