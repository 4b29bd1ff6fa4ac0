"""Tables: folders, dialects, lists, names and episodes."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp.data import formats, health
from edp.data.arrays import split_episodes
from edp.data.dataset import read_dataset, read_steps
from edp.data.formats import sources
from edp.errors import UserError
from support.logs import (
    as_log,
    assert_same,
    assert_same_steps,
    examples,
    labels_of,
    random_logs,
    transitions,
)
from support.malformed import (
    WRITERS,
    assert_one_line,
    reads_or_refuses,
    small_log,
)

LISTS = {
    "fixed": lambda wide: pa.FixedSizeListArray.from_arrays(wide.ravel(), wide.shape[1]),
    "list": lambda wide: pa.array(wide.tolist(), pa.list_(pa.from_numpy_dtype(wide.dtype))),
    "large": lambda wide: pa.array(wide.tolist(), pa.large_list(pa.from_numpy_dtype(wide.dtype))),
}


@examples(60)
@given(steps=random_logs(), kind=st.sampled_from(sorted(LISTS)), size=st.integers(1, 9))
def test_lists_in_parquet_are_read_as_columns_are(place, steps, kind, size):
    shared = {"reward": steps.rewards, "terminal": steps.terminals, "episode_index": labels_of(steps)}
    wide = {"observation.state": steps.observations, "action": steps.actions}
    if steps.next_observations is not None:
        wide["next.observation.state"] = steps.next_observations
    single = {f"{name}{i}": array[:, i] for name, array in wide.items() for i in range(array.shape[1])}
    meaning = {"observation_columns": "observation.state", "action_columns": "action"}
    meaning |= {"next_observation_columns": "next.observation.state"} if len(wide) == 3 else {}
    names = place(".parquet"), place(".parquet")
    lists = {name: LISTS[kind](np.ascontiguousarray(array)) for name, array in wide.items()}
    pq.write_table(pa.table(lists | shared), names[0], row_group_size=size)
    pq.write_table(pa.table(single | shared), names[1])
    opened = [
        formats.open_log(
            name, {key: (column + star,) for key, column in meaning.items()} | {"episode_column": "episode_index"}
        )
        for name, star in zip(names, ("", "?"), strict=True)
    ]
    width = steps.observations.shape[1]
    assert [len(each.observation_names) for each in opened] == [width if kind == "fixed" else 0, width]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "PIECE", size)
        a, b = map(transitions, opened)
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert_same(a, b)
        wanted = transitions(as_log(steps))
        assert wanted is not None
        assert_same(wanted, a)


def csv_text(steps, labels=None, separator=",", end="\n", quoted=False):
    columns = {f"observation_{i}": steps.observations[:, i] for i in range(steps.observations.shape[1])}
    columns |= {f"action_{i}": steps.actions[:, i] for i in range(steps.actions.shape[1])}
    columns |= {"reward": steps.rewards, "terminal": steps.terminals.astype(int)}
    columns |= {"timeout": steps.timeouts.astype(int)} if labels is None else {"episode": labels}
    columns |= (
        {"notes" + 20 * next(other for other in ",;" if other != separator): np.zeros(len(steps.rewards))}
        if quoted
        else {}
    )
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [columns, *(map(repr, row) for row in rows)]
    quote = '"' if quoted else ""
    return "".join(separator.join(f"{quote}{cell}{quote}" for cell in line) + end for line in lines)


@examples(60)
@given(steps=random_logs(known=False))
def test_a_folder_of_files_is_one_file_with_a_column_of_episodes(place, steps):
    folder, single = Path(place(".folder")), Path(place(".csv"))
    folder.mkdir()
    single.write_text(csv_text(steps, labels_of(steps)), encoding="utf-8")
    for number, part in enumerate(split_episodes(steps)):
        (folder / f"{number:03}.csv").write_text(csv_text(part), encoding="utf-8")
    a, b = (transitions(formats.open_log(str(path))) for path in (folder, single))
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert_same(a, b)
        np.testing.assert_array_equal(a.returns, b.returns)


@examples(60)
@given(
    steps=random_logs(known=False),
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    quoted=st.booleans(),
)
def test_every_dialect_of_csv_says_the_same(place, steps, separator, end, mark, quoted):
    plain, other = Path(place(".csv")), Path(place(".csv"))
    plain.write_text(csv_text(steps), encoding="utf-8")
    other.write_bytes((mark + csv_text(steps, None, separator, end, quoted)).encode())
    a, b = (read_steps(formats.open_log(str(path))) for path in (plain, other))
    assert_same_steps(a, b)


def test_tables_keep_the_names_of_their_columns(tmp_path):
    first, second, third = (str(tmp_path / name) for name in ("a.csv", "b.parquet", "c.csv"))
    Path(first).write_text("room,outside,valve,reward\n20,5,0.5,1\n21,6,0.25,2\n", encoding="utf-8")
    original = formats.open_log(first, {"observation_columns": ("outside", "room"), "action_columns": ("valve",)})
    formats.write_log(second, original)
    formats.write_log(third, formats.open_log(second))
    for name in (second, third):
        again = formats.open_log(name)
        assert again.observation_names == ("observation_outside", "observation_room")
        assert again.action_names == ("action_valve",)
        np.testing.assert_array_equal(read_steps(again).observations, read_steps(original).observations)


def test_names_on_two_lines_are_not_written_to_csv(tmp_path):
    rows = {"observation_a\nb": [1.0, 2.0], "action_0": [0.0, 1.0], "episode": [0, 0]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    opened = formats.open_log(str(tmp_path / "a.parquet"))
    with pytest.raises(UserError, match="a CSV file cannot have a column called"):
        formats.write_log(str(tmp_path / "b.csv"), opened)
    assert not (tmp_path / "b.csv").exists()
    copy = formats.open_log(formats.write_log(str(tmp_path / "b.parquet"), opened))
    assert copy.observation_names == ("observation_a\nb",)


def test_names_that_fall_together_are_numbered(tmp_path):
    (tmp_path / "a.csv").write_text("x,observation_x,action_0\n1,2,3\n4,5,6\n", encoding="utf-8")
    original = formats.open_log(str(tmp_path / "a.csv"), {"observation_columns": ("x", "observation_x")})
    formats.write_log(str(tmp_path / "b.csv"), original)
    assert formats.open_log(str(tmp_path / "b.csv")).observation_names == ("observation_0", "observation_1")


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@pytest.mark.parametrize("name", ["reward", "terminal", "timeout", "episode", "observation_2"])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_files_of_a_folder_have_the_same_columns(form, name, order, tmp_path):
    rows = {key: np.arange(4.0) for key in ("observation_0", "observation_1", "action_0", "unused")}
    for file, found in zip(order, (rows, rows | {name: np.zeros(4, int)}), strict=True):
        columns = pa.table(found | ({"other": np.arange(4)} if file == "b" else {}))
        (pq.write_table if form == ".parquet" else pa_csv.write_csv)(columns, tmp_path / (file + form))
    with pytest.raises(UserError, match=f"{order[0]}{form}: no column '{name}', which {order[1]}{form} has"):
        formats.open_log(str(tmp_path))


def test_a_message_names_the_file_of_a_folder_and_its_line(tmp_path):
    names = "observation_0,action_0,reward\n"
    (tmp_path / "a.csv").write_text(names + "1,2,3\n" * 3)
    (tmp_path / "b.csv").write_text(names + "1,2,3\n,2,3\n")
    message = (
        "observations hold NaN, Inf or too large a number, first in row 1 of b.csv (line 3), column 'observation_0'"
    )
    with pytest.raises(UserError, match=re.escape(message)):
        read_dataset(formats.open_log(str(tmp_path)))


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@pytest.mark.parametrize("size", [3, 65_536])
def test_episodes_that_come_back_are_refused(form, size, tmp_path, monkeypatch):
    monkeypatch.setattr("edp.data.formats.sources.PIECE", size)
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", 30 * size)

    def write(name, labels, **more):
        rows = {key: np.arange(len(labels)) % 7 / 7 for key in ("observation_0", "action_0", "reward")}
        path = tmp_path / name / f"a{form}"
        path.parent.mkdir(exist_ok=True)
        found = pa.table(rows | more | {"episode": labels})
        (pq.write_table if form == ".parquet" else pa_csv.write_csv)(found, path)
        return path

    mixed = write("mixed", np.arange(40) % 8)
    line = " (line 10)" if form == ".csv" else ""
    message = f"{mixed}: episode 0 goes on in row 8{line} after others began: sort the rows by episode"
    with pytest.raises(UserError, match=re.escape(message)):
        read_dataset(formats.open_log(str(mixed)))
    found = health.examine_log(formats.open_log(str(mixed))).findings
    assert [finding.level for finding in found if message in finding.what] == ["error"]

    turns = np.arange(40) // 5 % 2  # each of them marks its ends
    ended = write("ended", turns, terminal=np.arange(40) % 5 == 4)
    assert len(read_dataset(formats.open_log(str(ended))).returns) == 8
    ended.rename(ended.with_name(f"b{form}"))
    write("ended", turns, terminal=np.arange(40) % 5 == 4)
    assert len(read_dataset(formats.open_log(str(ended.parent))).returns) == 16  # labels are those of one file


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize(
    ("other", "entry"),
    [
        ("sub/b.parquet", "sub"),
        ("day=1/hour=2/part-0.csv", "day=1"),
        ("sub/b.csv.gz", "sub"),
        ("c.csv.zip", "c.csv.zip"),
        ("d.npz", "d.npz"),
        ("e.HDF5", "e.HDF5"),
    ],
)
def test_data_beside_the_tables_of_a_folder_is_not_passed_over(tmp_path, form, tables, other, entry):
    if tables:
        WRITERS[form](tmp_path / f"a{form}", small_log())
    for harmless in (".hidden.csv", "notes.md", "columns.toml", "_SUCCESS", "empty/readme.txt"):
        (tmp_path / harmless).parent.mkdir(exist_ok=True)
        (tmp_path / harmless).touch()
    assert (reads_or_refuses(tmp_path) is not None) == tables
    (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / other).touch()
    with pytest.raises(UserError, match=f"{re.escape(entry)} in this folder would not be read") as error:
        formats.open_log(str(tmp_path))
    assert_one_line(error.value, str(tmp_path))
