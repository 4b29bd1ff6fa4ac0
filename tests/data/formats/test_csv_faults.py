"""CSV files with wrong cells, quotes and encodings."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp.data import formats
from edp.data.dataset import read_dataset, read_steps
from edp.errors import UserError
from support.logs import (
    examples,
)
from support.malformed import (
    assert_one_line,
    reads_or_refuses,
    small_log,
    write_small_csv,
)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        (0, "", "observations hold NaN, Inf or too large a number, first in row 2 (line 4), column 'observation_0'"),
        (2, "x", "a.csv: 'x' in column 'action_0', row 2 (line 4), is not a number"),
        (
            2,
            '"20,5"',
            "'20,5' in column 'action_0', row 2 (line 4), is not a number: if ',' is the decimal point, say",
        ),
        (3, "1e400", "rewards hold NaN, Inf or too large a number, first in row 2 (line 4)"),
        (4, "2", "'2' in column 'terminal', row 2 (line 4), is neither 0 nor 1"),
        (5, "", "column 'episode' is empty in row 2 (line 4)"),
    ],
)
def test_a_bad_cell_is_refused(tmp_path, column, cell, message):
    path = tmp_path / "a.csv"
    write_small_csv(path, small_log())
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    rows[3][column] = cell
    path.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        read_dataset(formats.open_log(str(path)))


@pytest.mark.parametrize("form", ["utf-8", "utf-16", "gzip"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_empty_lines_are_counted(tmp_path, end, form):
    path = tmp_path / ("a.csv.gz" if form == "gzip" else "a.csv")
    cells = ["observation_0,action_0,reward", *(f"{i},{i % 7 / 7},1" for i in range(30))]
    cells[21] = ",0,1"
    lines = [line for i, row in enumerate(cells) for line in (row, *[""] * (i % 3))]
    content = end.join(lines).encode("utf-16" if form == "utf-16" else "utf-8")
    path.write_bytes(gzip.compress(content) if form == "gzip" else content)
    with pytest.raises(UserError, match=rf"first in row 20 \(line {lines.index(',0,1') + 1}\)"):
        read_dataset(formats.open_log(str(path)))


@pytest.mark.parametrize("block", [200, 2**20])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_takes_no_rows_with_it(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", block)
    path = tmp_path / "a.csv"
    write_small_csv(path, small_log())
    lines = path.read_text(encoding="utf-8").splitlines()

    def write(texts):
        cells = ["text", *(texts.get(row, '"a ""text"", quoted"') for row in range(2, len(lines) + 1))]
        path.write_bytes(end.join(f"{line},{cell}" for line, cell in zip(lines, cells, strict=True)).encode())

    write({4: '5" pipe', 5: "", 6: '"x"y'})
    assert len(read_steps(formats.open_log(str(path))).rewards) == len(lines) - 1
    for texts in ({5: '"begin', 8: 'end"'}, {5: f'"begin{end}end"'}, {5: '"begin'}):
        write(texts)
        with pytest.raises(UserError, match=r"a\.csv: line 5 ends within quotes: a stray quote, or a text") as error:
            read_dataset(formats.open_log(str(path)))
        assert_one_line(error.value, "a.csv")


@pytest.mark.parametrize("place", ["header", "episode"])
def test_other_encodings_are_told(tmp_path, place):
    path = tmp_path / "a.csv"
    label, name = ("Süd", "wind") if place == "episode" else ("south", "höhe")
    lines = [f"observation_0,action_0,reward,episode,{name}", *[f"{i}.5,0.1,1,{label},3" for i in range(9)]]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(UserError, match="save it as UTF-8, or name its `encoding`"):
        read_dataset(formats.open_log(str(path)))
    assert len(read_steps(formats.open_log(str(path), {"encoding": "latin-1"})).rewards) == 9
    path.write_bytes("\n".join(lines).encode("utf-16"))
    assert len(read_steps(formats.open_log(str(path))).rewards) == 9


CELLS = ["", "nan", "inf", "-inf", "1e39", "1e400", "x", '"', '"a', "1,5", "1;5", "true", "2", "0.5", "\xff", "\0", "٣"]


@examples(150)
@given(
    cells=st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 5), st.sampled_from(CELLS) | st.text(max_size=6)), max_size=3
    ),
    encoding=st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-8-sig"]),
    end=st.sampled_from(["\n", "\r\n", "\r", ""]),
)
def test_csv_with_any_cells_is_refused_or_harmless(tmp_path, cells, encoding, end):
    path = tmp_path / "a.csv"
    write_small_csv(path, small_log())
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    for row, column, cell in cells:
        rows[row][column] = cell
    path.write_bytes(end.join(",".join(row) for row in rows).encode(encoding, "replace"))
    reads_or_refuses(path)


@pytest.mark.parametrize("block", [40, 41, 2**20])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("form", ["packed", "utf-16"])
def test_a_packed_or_recoded_file_is_read_in_blocks(tmp_path, monkeypatch, block, end, form):
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", block)
    path = tmp_path / ("a.csv.gz" if form == "packed" else "a.csv")

    def write(rows):
        text = end.join(["observation_0,action_0,reward", "", *rows])
        path.write_bytes(gzip.compress(text.encode()) if form == "packed" else text.encode("utf-16"))

    write([f"{i}.5,0.1,{i}" for i in range(99)])
    assert read_steps(formats.open_log(str(path))).rewards.tolist() == list(range(99))
    write(["1,2,3"] * 50 + ["1,2"])
    with pytest.raises(UserError, match="line 53 has 2 cells, and there are 3 names"):
        read_steps(formats.open_log(str(path)))
    write(["1,2,3", "1,2," + "3" * 200])
    with pytest.raises(UserError, match="a line is longer than 4[01] bytes" if block < 2**20 else "too large a number"):
        read_dataset(formats.open_log(str(path)))
