"""Columns of any type in Parquet files."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp.data import formats
from edp.data.dataset import read_dataset
from edp.errors import UserError
from support.logs import (
    examples,
)
from support.malformed import (
    reads_or_refuses,
    small_log,
    write_small_parquet,
)


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
    write_small_parquet(path, small_log())
    start = pq.read_table(path)
    for name, column in what.items():
        start = start.drop_columns([name]) if name in start.column_names else start
        start = start if column is None else start.append_column(name, column)
    try:
        pq.write_table(start, path)
    except pa.ArrowException:  # kinds that no Parquet file has
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edp.data.formats.sources.PIECE", piece)
        reads_or_refuses(path)


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        (
            "action_0",
            [[1.0]] * 7 + [[np.nan]] + [[1.0]] * 4,
            "actions hold NaN, Inf or too large a number, first in row 7",
        ),
        (
            "observation_0",
            [[1.0, 2.0]] * 7 + [[1.0, np.inf]] * 5,
            "observations hold NaN, Inf or too large a number, first in row 7",
        ),
        (
            "observation_0",
            [[1.0, 2.0]] * 7 + [[None, 1.0]] * 5,
            "observations hold NaN, Inf or too large a number, first in row 7",
        ),
        (
            "observation_0",
            [[[1.0], [2.0]]] * 7 + [[[1.0], [None]]] * 5,
            "observations hold NaN, Inf or too large a number, first in row 7",
        ),
        ("observation_0", [[[1.0], [2.0]]] * 7 + [[[1.0], [1.0, 2.0]]] * 5, "'observation_0' has 2 numbers in row 7"),
        ("observation_0", [[1.0]] * 6 + [[1.0, 2.0]] * 6, "observations have 2 numbers from row 6 on, and 1 before it"),
        ("observation_0", [[]] * 12, "'observation_0' holds lists without numbers, from row 0 on"),
        ("observation_0", [[[], []]] * 12, "'observation_0' holds lists without numbers, from row 0 on"),
        ("episode", [0.0] * 7 + [np.nan] * 5, "'episode' is NaN in row 7"),
    ],
)
def test_messages_tell_the_row(tmp_path, monkeypatch, name, column, message):
    monkeypatch.setattr("edp.data.formats.sources.PIECE", 6)
    path = tmp_path / "a.parquet"
    write_small_parquet(path, small_log())
    start = pq.read_table(path)
    pq.write_table(start.set_column(start.column_names.index(name), name, pa.array(column)), path)
    with pytest.raises(UserError, match=re.escape(message)):
        read_dataset(formats.open_log(str(path)))
