"""Tables that need cleaning: empty cells, texts, and the many ways in which CSV files are written."""

import gzip
import json

import numpy as np
import pytest

from edp.data import formats, health
from edp.data.arrays import from_arrays
from edp.data.dataset import read_steps
from edp.errors import UserError

HEADER = "observation_x,observation_mode,action_y,reward"
ROWS = 12


def lines(empty=(), column=0, cell=""):
    rows = [[f"{i}.5", "heat" if i % 3 else "cool", f"{i / 12:.2f}", "1.0"] for i in range(ROWS)]
    for i in empty:
        rows[i][column] = cell
    return [HEADER, *(",".join(row) for row in rows)]


def write(path, content, encoding="utf-8"):
    path.write_bytes(("\n".join(content) + "\n").encode(encoding))
    return str(path)


def log_of(path, **options):
    return formats.open_log(path, {"observation_columns": ("observation_x",)} | options)


def observed(path, **options):
    return read_steps(log_of(path, **options)).observations[:, 0].tolist()


def examine(path, options):
    return health.examine_log(formats.open_log(path, options)).findings


WHOLE = [i + 0.5 for i in range(ROWS)]


@pytest.mark.parametrize("block", [60, 2**20])
def test_empty_cells_are_filled_from_above(tmp_path, monkeypatch, block):
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", block)
    path = write(tmp_path / "a.csv", lines(empty=(0, 4, 5, 6)))
    with pytest.raises(UserError, match=r"first in row 0 \(line 2\), column 'observation_x'"):
        observed(path)
    assert observed(path, missing=("ffill",)) == [*WHOLE[1:4], 3.5, 3.5, 3.5, *WHOLE[7:]]
    log = log_of(path, missing=("observation_x=ffill",))
    read_steps(log)
    said = [finding.what for finding in log.findings()]
    assert said == ["cells of 'observation_x' filled: 3", "rows left out: 1"]


@pytest.mark.parametrize("block", [60, 2**20])
def test_rows_that_are_left_out_end_the_episode(tmp_path, monkeypatch, block):
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", block)
    path = write(tmp_path / "a.csv", lines(empty=(0, 4, 5, 11)))
    steps = read_steps(log_of(path, missing=("drop",)))
    assert steps.observations[:, 0].tolist() == [1.5, 2.5, 3.5, 6.5, 7.5, 8.5, 9.5, 10.5]
    assert np.flatnonzero(steps.timeouts).tolist() == [2, 7]


def test_cells_are_not_filled_from_another_episode(tmp_path):
    content = [f"{line},{'episode' if not i else i // 6}" for i, line in enumerate(lines(empty=(5,)))]
    steps = read_steps(log_of(write(tmp_path / "a.csv", content), missing=("ffill",)))
    assert steps.observations[:, 0].tolist() == [each for each in WHOLE if each != 5.5]


def test_messages_tell_the_row_of_the_file(tmp_path):
    content = lines(empty=(2,))
    content[10] = content[10].replace("1.0", "")
    with pytest.raises(UserError, match=r"rewards hold NaN, Inf or too large a number, first in row 9 \(line 11\)"):
        read_steps(log_of(write(tmp_path / "a.csv", content), missing=("observation_x=drop",)))


def test_texts_become_columns(tmp_path):
    options = {"observation_columns": ("observation_*",), "one_hot": ("observation_mode",)}
    path = write(tmp_path / "a.csv", lines(empty=(4,), column=1))
    log = formats.open_log(path, options | {"missing": ("ffill",)})
    assert log.observation_names == ("observation_x", "observation_mode=cool", "observation_mode=heat")
    modes = read_steps(log).observations[:, 1:]
    wanted = np.array([[i % 3 == 0, i % 3 != 0] for i in range(ROWS)], float)
    wanted[4] = wanted[3]
    assert modes.tolist() == wanted.tolist()
    assert [finding.what for finding in log.findings()] == ["cells of 'observation_mode' filled: 1"]
    for missing in (("observation_mode=drop",), ("drop",), ("observation_mode=heat=drop",)):
        assert len(read_steps(formats.open_log(path, options | {"missing": missing})).rewards) == ROWS - 1
    (bad,) = (each.what for each in examine(path, options) if each.level == "error")
    assert bad.startswith("1 NaN, Inf or too large number in 1 observation column, most in 'observation_mode', there")
    with pytest.raises(UserError, match="observation_mode=cool"):
        read_steps(formats.open_log(path, options))
    with pytest.raises(
        UserError, match=r"'cool' in column 'observation_mode', row 0 \(line 2\), is not a number: name"
    ):
        read_steps(formats.open_log(path, {"observation_columns": ("observation_*",)}))
    with pytest.raises(UserError, match="'action_y' is not one of the observed columns"):
        formats.open_log(path, options | {"one_hot": ("action_y",)})
    many = write(tmp_path / "b.csv", [HEADER, *(f"1,mode{i},0,0" for i in range(101))])
    with pytest.raises(UserError, match="more than 100 different texts"):
        formats.open_log(many, options)


DIALECTS = {
    "spaces in the header": (lambda text: text.replace(HEADER, HEADER.replace(",", " , ")), "utf-8", {}),
    "semicolons and commas": (lambda text: text.replace(",", ";").replace(".", ","), "utf-8", {}),
    "Excel's sep": (lambda text: "sep=;\n" + text.replace(",", ";"), "utf-8", {}),
    "UTF-16": (lambda text: text, "utf-16", {}),
    "Windows": (lambda text: text.replace("heat", "größer"), "cp1252", {"encoding": "cp1252"}),
    "a mark at the start": (lambda text: text, "utf-8-sig", {}),
    "texts for nothing": (lambda text: text, "utf-8", {"missing_texts": ("No Data",)}),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_of_csv(tmp_path, dialect, packed):
    change, encoding, options = DIALECTS[dialect]
    path = tmp_path / "a.csv"
    content = change("\n".join(lines())).split("\n")
    write(path, content, encoding)
    if packed:
        path = tmp_path / "b.csv.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    assert observed(str(path), **options) == WHOLE


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(tmp_path, encoding):
    path = write(tmp_path / "a.csv", lines(), encoding)
    assert observed(path) == WHOLE
    log = log_of(path)
    read_steps(log)
    assert [each.what for each in log.findings()] == [f"the encoding is {encoding}"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_files_are_unpacked_whatever_their_name(tmp_path, name, times):
    content = "\n".join(lines()).encode()
    for _ in range(times):
        content = gzip.compress(content)
    (tmp_path / name).write_bytes(content)
    assert observed(str(tmp_path / name)) == WHOLE


def test_lines_with_more_or_fewer_cells_are_named(tmp_path):
    for cells, count in ((",7", "5 cells"), ("", "3 cells")):
        content = lines()
        content[5] = content[5] + cells if cells else content[5].rpartition(",")[0]
        content.insert(3, "")
        with pytest.raises(UserError, match=rf"a\.csv: line 7 has {count}, and there are 4 names: correct it"):
            observed(write(tmp_path / "a.csv", content))


def test_rows_are_named_below_a_line_of_excel(tmp_path):
    content = ["sep=,", *lines(empty=(3,))]
    with pytest.raises(UserError, match=r"first in row 3 \(line 6\), column 'observation_x'"):
        observed(write(tmp_path / "a.csv", content))


def test_tabs(tmp_path):
    assert observed(write(tmp_path / "a.tsv", [line.replace(",", "\t") for line in lines()])) == WHOLE


def test_a_file_without_names_is_told(tmp_path):
    for first in ("1.5,2,3", "2,2,3", "2026-03-02 06:00,anna,0,0", "2026-03-02T06:00:00Z,0", "anna,0,0,48.5"):
        with pytest.raises(
            UserError, match=r"a\.csv: the first line has '[-\d:.TZ ]+' where the name of a column should be"
        ):
            log_of(write(tmp_path / "a.csv", [first, first]))
    for names in ("observation_x,0,0.5", "label,0,1", "x,y"):
        with pytest.raises(UserError, match=r"`action_columns`|unknown column in `observation_columns`"):
            log_of(write(tmp_path / "a.csv", [names, "1,2,3"]))
    numbered = write(tmp_path / "b.csv", ["0,1", *(f"{i},{i}" for i in range(9))])
    log = formats.open_log(numbered, {"observation_columns": ("0",), "action_columns": ("1",)})
    assert len(read_steps(log).rewards) == 9


def test_wrong_dialects_are_one_line(tmp_path):
    path = write(tmp_path / "a.csv", lines())
    for options, message in (
        ({"encoding": "klingon"}, "Python has no encoding 'klingon'"),
        ({"decimal": "'"}, "unknown `decimal`"),
        ({"missing": ("guess",)}, "unknown choice of `missing` 'guess'"),
        ({"missing": ("x=drop",)}, "unknown column in `missing` 'x'"),
    ):
        with pytest.raises(UserError, match=message):
            log_of(path, **options)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"observation_x,action_y\n" + b"1,2\n" * 5000)[:60])
    with pytest.raises(UserError, match=r"b\.csv\.gz: "):
        read_steps(formats.open_log(str(tmp_path / "b.csv.gz")))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda x: np.where((np.arange(len(x)) // 1000) == 2, x + 273.15, x), True),
        (lambda x: np.where(np.arange(len(x)) < 2500, x * 1000, x), True),
        (lambda x: x + 40 * np.sin(np.arange(len(x)) / 700), False),  # seasons
        (lambda x: np.where(x > 20, 1.0, 0.0) * 100, False),  # a switch
        (lambda x: x + 5 * (np.arange(len(x)) > 3000), False),  # a change of the process
    ],
)
def test_a_change_of_the_unit_is_found(change, found):
    rng = np.random.default_rng(0)
    temp = 20 + np.cumsum(rng.normal(size=6000)) * 0.05 + rng.normal(size=6000)
    log = from_arrays(
        observations=change(temp)[:, None],
        actions=rng.uniform(-1, 1, (6000, 1)),
        rewards=rng.normal(size=6000),
        terminals=np.zeros(6000, bool),
        timeouts=np.arange(6000) % 100 == 99,
    )
    told = [finding.what for finding in health.examine_log(log).findings]
    assert any("observation '0' is at" in what and "elsewhere" in what for what in told) == found


def test_a_change_of_the_unit_of_actions_and_rewards_is_found():
    rng, rows = np.random.default_rng(0), np.arange(6000)
    noise = lambda: np.clip(50 + 10 * rng.normal(size=6000), 0, 100)  # noqa: E731
    log = from_arrays(
        observations=rng.normal(size=(6000, 1)),
        actions=np.stack([noise(), noise() / np.where(rows > 3000, 100, 1)], axis=1),
        rewards=-noise() / np.where(rows > 3000, 1, 100),
        terminals=np.zeros(6000, bool),
        timeouts=rows % 100 == 99,
    )
    told = [finding.what for finding in health.examine_log(log).findings if "elsewhere" in finding.what]
    assert [what.split(" is at")[0] for what in told] == ["action '1'", "reward"]


@pytest.mark.parametrize("form", [".jsonl", ".jsonl.gz", ".xlsx"])
def test_other_tables_are_read_as_csv_is(tmp_path, form):
    openpyxl = pytest.importorskip("openpyxl")
    header, *rows = (line.split(",") for line in lines())
    records = [dict(zip(header, (float(x), mode, float(y), float(r)), strict=True)) for x, mode, y, r in rows]
    records[5]["observation_x"] = None
    path = tmp_path / f"a{form}"
    if form == ".xlsx":
        book = openpyxl.Workbook()
        for row in [header, *(list(record.values()) for record in records)]:
            book.active.append(row)
        book.save(path)
    else:
        content = "".join(json.dumps(record) + "\n" for record in records).encode()
        path.write_bytes(gzip.compress(content) if form.endswith(".gz") else content)
    options = {"observation_columns": ("observation_*",), "one_hot": ("observation_mode",), "missing": ("ffill",)}
    steps = read_steps(formats.open_log(str(path), options))
    wanted = read_steps(formats.open_log(write(tmp_path / "b.csv", lines(empty=(5,))), options))
    np.testing.assert_array_equal(steps.observations, wanted.observations)
    np.testing.assert_array_equal(steps.actions, wanted.actions)
