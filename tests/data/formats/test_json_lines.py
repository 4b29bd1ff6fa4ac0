"""JSON lines: what is in them, in blocks of any size, and the line of a fault."""

import gzip
import json
import os

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp.data.formats import json_lines
from edp.data.formats.json_lines import json_batches, json_names
from edp.errors import UserError
from support.logs import examples
from support.malformed import assert_one_line, damages

CELLS = {
    "n": st.none() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False),
    "b": st.none() | st.booleans(),
    "t": st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
    "two words": st.none() | st.floats(allow_nan=False),
}
FLOATS = ("n", "two words")


def write(path, content, mark=b""):
    text = mark + (content if isinstance(content, bytes) else content.encode())
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def rows_of(path, names):
    batches = list(json_batches(path, names))
    assert all(batch.schema.names == names for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def refused(path, names=("a",)):
    with pytest.raises(UserError) as error:
        json_names(path)
        list(json_batches(path, list(names)))
    assert_one_line(error.value, str(path))
    assert str(error.value).isprintable()
    return str(error.value).removeprefix(f"{path}: ")


@examples(80)
@given(
    records=st.lists(st.fixed_dictionaries({}, optional=CELLS), min_size=1, max_size=12),
    block=st.integers(1, 300),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
    suffix=st.sampled_from([".jsonl", ".ndjson", ".jsonl.gz"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    last=st.booleans(),
)
def test_what_is_written_is_read(tmp_path_factory, records, block, end, suffix, mark, last):
    path, names = tmp_path_factory.mktemp("lines") / f"a{suffix}", list(CELLS)
    text = end.join(json.dumps(record) for record in records) + (end if last else "")
    write(path, text, mark)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "BLOCK", block)
        read = rows_of(path, names)
    wanted = [{name: record.get(name) for name in names} for record in records]
    for row in wanted:
        row |= {name: float(row[name]) for name in FLOATS if row[name] is not None}
    assert read == wanted
    if any(records):
        assert json_names(path) == list(dict.fromkeys(name for record in records for name in record))


def test_columns_have_one_type(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"a": 1, "t": "2024-01-01T10:00:00Z", "c": null}\n{"a": 2.5, "b": true}\n')
    (batch,) = json_batches(path, ["b", "a", "t", "c"])
    assert batch.schema.types == [pa.bool_(), pa.float64(), pa.string(), pa.null()]
    assert json_names(path) == ["a", "t", "c", "b"]


def test_values_that_are_not_used_may_be_anything(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    path = write(
        tmp_path / "a.jsonl", '{"a": 1, "x": {"y": [1]}}\n{"a": NaN, "x": "text"}\n{"x": ' + deep + ', "a": 3}'
    )
    assert [row["a"] for row in rows_of(path, ["a"])][::2] == [1, 3]


FAULTS = {
    '{"a": 1}\n\n{"a": "x"}\n': "line 3: 'a' is a text, and a number before",
    '{"a": "x"}\n{"a": true}\n': "line 2: 'a' is true or false, and a text before",
    '{"a": 1}\n{"a": {"b": 1}}\n': "line 2: 'a' is an object, not a number, a text or a boolean",
    '{"a": 1}\n{"a": [1, 2]}\n': "line 2: 'a' is a list, not a number, a text or a boolean",
    '{"a": {"b": 1}}\n': "line 1: 'a' is an object, not a number, a text or a boolean",
    '{"a": 1}\n{"a": 2\n': "line 2: not a JSON object",
    '{"a": 1}\nnope\n': "line 2: not a JSON object",
    '{"a": 1}\n[1]\n': "line 2: not a JSON object",
    '{"a": 1}\n3\n': "line 2: not a JSON object",
    '{"a": 1}\nnull\n': "line 2: not a JSON object",
    '{"a": 1}\n{"a": 1}{"a": 2}\n': "line 2: not a JSON object",
    '{"a": 1}\n{"b": 1,\n"a": 2}\n': "line 2: not a JSON object",
    '{"a": 1}\n{"a": 1, "a": 2}\n': "line 2: not a JSON object (a name stands there twice)",
    "[" * 100_000: "line 1: not a JSON object",
    '[{"a": 1},\n{"a": 2}]': "line 1: not a JSON object",
    "": "no JSON object with a name in it",
    "\n \n": "no JSON object with a name in it",
    "{}\n{}": "no JSON object with a name in it",
    "a,b\n1,2\n": "line 1: not a JSON object",
}


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
@pytest.mark.parametrize("block", [8, json_lines.BLOCK])
@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:30])
def test_a_fault_is_named_with_its_line(text, block, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "BLOCK", block)
    assert refused(write(tmp_path / f"a{suffix}", text)).startswith(FAULTS[text])


def test_numbers_that_arrow_cannot_hold_are_refused(tmp_path):
    assert "too big" in refused(write(tmp_path / "a.jsonl", '{"a": 1}\n{"a": 1e400}\n'))


@pytest.mark.parametrize("line", [1, 3])
def test_other_encodings_are_refused(line, tmp_path):
    lines = [b'{"a": "x"}'] * 2
    lines.insert(line - 1, '{"a": "Kühler"}'.encode("latin-1"))
    assert refused(write(tmp_path / "a.jsonl", b"\n".join(lines))).startswith(f"line {line}: not a JSON object")
    assert refused(write(tmp_path / "b.jsonl", '{"a": 1}\n'.encode("utf-16"))).startswith("line 1: not a JSON object")


def test_long_lines_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "LONGEST", 10_000)
    monkeypatch.setattr(json_lines, "BLOCK", 1000)
    path = write(tmp_path / "a.jsonl.gz", '{"a": 1}\n{"b": "' + "x" * 1_000_000)
    assert refused(path) == "a line is longer than 10,000 bytes; is there one object in a line?"


def test_damaged_archives_and_pipes_are_refused(tmp_path):
    whole = write(tmp_path / "a.jsonl.gz", '{"a": 1}\n' * 1000).read_bytes()
    for damaged in (whole[:-10], whole[:50], b"{}", whole + b"more"):
        (tmp_path / "a.jsonl.gz").write_bytes(damaged)
        assert refused(tmp_path / "a.jsonl.gz").startswith("cannot be read (")
    os.mkfifo(tmp_path / "b.jsonl")
    assert "a pipe, not a file" in refused(tmp_path / "b.jsonl")
    assert "no such file" in refused(tmp_path / "c.jsonl")


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
@examples(80)
@given(damage=damages(), block=st.integers(1, 300))
def test_any_damage_is_refused_or_harmless(suffix, damage, block, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / f"a{suffix}"
    write(path, '{"a": 1.5, "b": "x", "c": true}\n' * 6)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "BLOCK", block)
        try:
            rows_of(path, ["a", "b", "c"])
        except UserError as error:
            assert_one_line(error, str(path))
