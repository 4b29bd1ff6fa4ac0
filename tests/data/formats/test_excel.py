"""Excel files: cells of every kind, sheets, names, and files that are made to do harm."""

import datetime
import io
import sys
import zipfile

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given

from edp import memory
from edp.data.formats import excel
from edp.data.formats.excel import read_excel
from edp.errors import UserError
from support.logs import examples
from support.malformed import assert_one_line, damages

NOON, MIDNIGHT = datetime.datetime(2024, 5, 1, 12, 30), datetime.datetime(2024, 5, 2)
SHEET = "xl/worksheets/sheet1.xml"
FIRST = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'


def write(path, rows, **others):
    book = openpyxl.Workbook()
    book.active.title = "first"
    for title, content in {"first": rows, **others}.items():
        sheet = book.active if title == "first" else book.create_sheet(title)
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def write_xml(path, rows, head=""):
    """Write a sheet with this XML between its tags."""
    write(path, [["a"]])
    xmlns = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = f'{head}<worksheet xmlns="{xmlns}"><dimension ref="A1"/><sheetData>{rows}</sheetData></worksheet>'
    return replace_member(path, SHEET, text.encode())


def replace_member(path, name, content):
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, text in (members | {name: content}).items():
            archive.writestr(each, text)
    return path


def refused(path, sheet=""):
    with pytest.raises(UserError) as error:
        read_excel(path, sheet)
    assert_one_line(error.value, str(path))
    assert str(error.value).isprintable()
    return str(error.value).removeprefix(f"{path}: ")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.xlsx"


def test_cells_of_every_kind_are_read(path):
    clock, span = datetime.time(10, 15), datetime.timedelta(hours=30)
    write(path, [["n", "flag", "when", "mode", "clock", "span"], [1, True, NOON, "a", clock, span], [2.5] + [None] * 5])
    table = read_excel(path)
    assert table.schema.types == [
        *(pa.float64(), pa.bool_(), pa.timestamp("us"), pa.string(), pa.time64("us"), pa.duration("us"))
    ]
    assert table.to_pylist()[0] == {"n": 1.0, "flag": True, "when": NOON, "mode": "a", "clock": clock, "span": span}
    assert table.column("n").to_pylist() == [1.0, 2.5]
    assert table.column("mode").to_pylist() == ["a", None]


def test_a_date_at_midnight_is_a_timestamp_too(path):
    assert read_excel(write(path, [["t"], [NOON], [MIDNIGHT]])).column("t").to_pylist() == [NOON, MIDNIGHT]


@pytest.mark.parametrize(
    ("cells", "odd", "texts"),
    [
        ([1, 2.5, "n/a", 4], "B4", ["1", "2.5", "n/a", "4"]),
        (["on", None, True], "B4", ["on", None, "True"]),
        ([None, NOON, 3], "B4", [None, str(NOON), "3"]),
        ([True, 0], "B3", ["True", "0"]),
    ],
)
def test_mixed_columns_are_text_and_name_the_cell(cells, odd, texts, path):
    table = read_excel(write(path, [["row", "x"], *([i, cell] for i, cell in enumerate(cells))]))
    assert table.schema.field("x").metadata == {b"mixed": odd.encode()}
    assert table.column("x").to_pylist() == texts
    assert table.schema.field("row").metadata is None


def test_empty_cells_at_the_end_are_dropped_and_others_kept(path):
    rows = [["a", None, " ", "b"], [1, "note", None, 2], [], [None] * 4, [3, None, None, " "], [], [" "], [None] * 9]
    assert read_excel(write(path, rows)).to_pydict() == {"a": [1, None, None, 3], "b": [2, None, None, None]}
    assert read_excel(write(path, [["a", "b"]])).schema == pa.schema([("a", pa.null()), ("b", pa.null())])


def test_errors_of_excel_are_empty_cells(path):
    assert read_excel(write(path, [["a"], [1], ["#N/A"], ["#DIV/0!"], [4]])).column("a").to_pylist() == [
        1,
        None,
        None,
        4,
    ]


def test_formulas_give_their_stored_values(path):
    write_xml(path, FIRST + '<row r="2"><c r="A2"><f>1+2</f><v>3</v></c></row><row r="3"><c r="A3"><f>A2</f></c></row>')
    assert read_excel(path).to_pydict() == {"a": [3.0]}


def test_a_wrong_dimension_hides_no_rows(path):
    write_xml(path, FIRST + "".join(f'<row r="{i}"><c r="A{i}"><v>{i}</v></c></row>' for i in range(2, 6)))
    assert read_excel(path).column("a").to_pylist() == [2, 3, 4, 5]


def test_sheets_are_chosen_by_name(path):
    write(path, [["a"], [1]], notes=[["b"], [2]])
    assert read_excel(path).to_pydict() == {"a": [1]}
    assert read_excel(path, "notes").to_pydict() == {"b": [2]}
    assert refused(path, "note") == "unknown sheet 'note': did you mean 'notes'?"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the first row is empty, and should hold the columns' names"),
        ([[], ["a"], [1]], "the first row is empty, and should hold the columns' names"),
        ([["a", 1.5], [1, 2]], "B1 is 1.5, and the first row should hold the columns' names"),
        ([["a", "b", " a"], [1, 2, 3]], "two columns are called 'a', the second in C1"),
    ],
)
def test_names_are_checked(rows, message, path):
    assert refused(write(path, rows)) == message


def test_it_says_what_to_install(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert refused(write(path, [["a"]])).startswith("Excel files need openpyxl: pip install 'edp-rl[excel]'")


def test_other_files_are_refused(path):
    for content in (b"", b"a,b\n1,2\n", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600)):
        path.write_bytes(content)
        assert "not an .xlsx file" in refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"")
    assert "not as Excel writes it" in refused(path)
    path.unlink()
    assert "no such file" in refused(path)


def test_a_bomb_is_refused_before_it_is_expanded(path, monkeypatch):
    write(path, [["a"], [1]])
    replace_member(path, "xl/sharedStrings.xml", b"<sst>" + b" " * 20_000_000)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(memory, "free_memory", lambda: 100_000_000)
    monkeypatch.setattr(openpyxl, "load_workbook", lambda *_, **__: pytest.fail("it was read"))
    assert refused(path).startswith("its sheets need 200 MB of memory, and there are 100 MB")


def test_cells_that_do_not_fit_are_refused(path, monkeypatch):
    write(path, [["a"], *([i] for i in range(2000))])
    monkeypatch.setattr(excel, "PIECE", 100)
    monkeypatch.setattr(excel, "check_size", lambda path: None)
    with memory.limited_memory(20_000):
        assert refused(path).startswith("needs at least 24,000 bytes of memory, and there are 20,000 bytes")


@pytest.mark.parametrize(
    "row",
    [
        '<row r="1024"><c r="A1024"><v>1</v></c></row>',
        '<row r="9999999999"><c r="A9999999999"><v>1</v></c></row>',
        '<row r="2"><c r="XFD2"><v>1</v></c></row>',
        '<row r="2"><c r="ZZZZZZZ2"><v>1</v></c></row>',
        '<row r="2"><c r="A2"><v>1e400</v></c></row>',
        f'<row r="2"><c r="A2"><v>{"9" * 400}</v></c></row>',
        f'<row r="2"><c r="A2"><v>{"9" * 9000}</v></c></row>',
        '<row r="2"><c r="A2" t="s"><v>77</v></c></row>',
        '<row r="x"><c r="A2"><v>1</v></c></row>',
        '<row r="2"><c r="A2"><v>text</v></c></row>',
    ],
)
def test_strange_cells_are_refused_or_harmless(row, path, monkeypatch):
    monkeypatch.setattr(excel, "ROWS", 1024)  # it takes seconds to pass over a million empty rows
    write_xml(path, FIRST + row)
    try:
        assert read_excel(path).num_rows < 1024
    except UserError as error:
        assert_one_line(error, str(path))


def test_wide_sheets_with_a_far_cell_do_not_fill_the_memory(path):
    names = "".join(f'<c t="inlineStr"><is><t>n{i}</t></is></c>' for i in range(2000))
    write_xml(path, f'<row r="1">{names}</row><row r="1048576"><c r="A1048576"><v>1</v></c></row>')
    with memory.limited_memory(50_000_000):
        assert refused(path).startswith("needs at least")


def test_entities_are_not_expanded(path):
    inner = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(9))
    head = f'<!DOCTYPE worksheet [<!ENTITY e0 "0123456789">{inner}]>'
    write_xml(path, '<row r="1"><c r="A1" t="inlineStr"><is><t>&e9;</t></is></c></row>', head)
    assert "not as Excel writes it" in refused(path)
    secret = path.with_name("secret")
    secret.write_text("secret", encoding="utf-8")
    head = f'<!DOCTYPE worksheet [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    write_xml(path, '<row r="1"><c r="A1" t="inlineStr"><is><t>&x;</t></is></c></row>', head)
    assert "secret" not in refused(path)


WHOLE = io.BytesIO()
write(WHOLE, [["a", "b"], [1, "x"], [2, "y"]])


@examples(60)
@given(damage=damages())
def test_any_damage_is_refused_or_harmless(damage, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / "a.xlsx"
    path.write_bytes(damage(WHOLE.getvalue()))
    try:
        read_excel(path)
    except UserError as error:
        assert_one_line(error, str(path))
