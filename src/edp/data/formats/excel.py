"""Excel's ``.xlsx`` files, read with openpyxl, which needs no more memory than the cells that it yields.

python-calamine is ten times faster, but it allocates every cell between the first and the last one: a small file with
a value in the last cell of a sheet would end the process.
"""

import datetime
import warnings
import zipfile
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from edp.data.checks import check_exists
from edp.errors import UserError, first_line, printable, unknown
from edp.memory import check_fits, free_memory

ROWS, COLUMNS = 2**20, 2**14  # the most that a sheet can have
CELL = 40  # bytes of a value in memory
EXPANDED = 10  # bytes in memory for a byte of the workbook's lists of texts and styles
PIECE = 2**18  # cells between looks at the memory
ERRORS = {"#DIV/0!", "#GETTING_DATA", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"}
KINDS = {
    bool: pa.bool_(),
    int: pa.float64(),
    float: pa.float64(),
    str: pa.string(),
    datetime.datetime: pa.timestamp("us"),
    datetime.time: pa.time64("us"),
    datetime.timedelta: pa.duration("us"),
}


def read_excel(path: Path, sheet: str = "") -> pa.Table:
    """Read the first sheet, or the one with this name. The first row holds the names of the columns.

    Formulas give the values that Excel stored for them, and errors such as #N/A are empty cells. Columns without a name
    are left out, and so are empty rows at the end. A column with cells of several kinds is text: the metadata of its
    field then has ``mixed``, the first cell of another kind than the first one, such as B17.
    """
    try:
        from openpyxl import load_workbook  # pyright: ignore
    except ImportError:
        raise UserError(f"{path}: Excel files need openpyxl: pip install 'edp-rl[excel]', or save it as .csv") from None
    check_size(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of charts and validation rules, which it does not keep
            workbook = load_workbook(path, read_only=True, data_only=True, keep_links=False)
            try:
                return read_sheet(find_sheet(workbook, sheet, path), path)
            finally:
                workbook.close()
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib, the XML parser and openpyxl raise many kinds
        raise UserError(f"{path}: damaged, or not as Excel writes it ({printable(first_line(error))})") from None


def check_size(path: Path) -> None:
    """Refuse what is not an archive, or one whose directory declares more than fits. Nothing is expanded."""
    check_exists(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except Exception as error:
        why = printable(first_line(error))
        raise UserError(f"{path}: not an .xlsx file ({why}): save it as .xlsx or .csv in Excel") from None
    needed = sum(each.file_size * (1 if "/worksheets/" in each.filename else EXPANDED) for each in members)
    check_fits(needed, f"{path}: its sheets need")


def find_sheet(workbook: Any, sheet: str, path: Path) -> Any:
    sheets = {one.title: one for one in workbook.worksheets}
    if not sheets:
        raise UserError(f"{path}: no sheet with cells in it")
    if sheet and sheet not in sheets:
        raise UserError(f"{path}: {unknown('sheet', sheet, map(printable, sheets))}")
    return sheets[sheet] if sheet else next(iter(sheets.values()))


def read_sheet(sheet: Any, path: Path) -> pa.Table:
    sheet.reset_dimensions()  # some programs write wrong ones
    names = column_names(next(sheet.iter_rows(max_row=1, max_col=COLUMNS, values_only=True), ()), path)
    width, free = max(names) + 1, free_memory()
    cells: dict[int, list[Any]] = {column: [] for column in names}
    rows = sheet.iter_rows(min_row=2, max_row=ROWS, max_col=width, values_only=True)
    count = 0
    while piece := list(islice(rows, max(1, PIECE // width))):
        count += len(piece)
        check_fits(count * width * CELL, f"{path}: needs at least", free)
        columns = list(zip(*piece, strict=True))
        for column, found in cells.items():
            found.extend(map(clean, columns[column]))
    height = max(map(filled_height, cells.values()))
    columns = [arrow_column(names[column], found[:height], column) for column, found in cells.items()]
    return pa.table([array for array, _ in columns], schema=pa.schema([field for _, field in columns]))


def column_names(row: tuple[Any, ...], path: Path) -> dict[int, str]:
    """Return the names in the first row by their columns, counted from 0."""
    names: dict[int, str] = {}
    for column, name in enumerate(map(clean, row)):
        if name is None:
            continue
        if not isinstance(name, str):
            raise UserError(
                f"{path}: {cell_name(column, 0)} is {name}, and the first row should hold the columns' names"
            )
        if name.strip() in names.values():
            raise UserError(f"{path}: two columns are called {name.strip()!r}, the second in {cell_name(column, 0)}")
        names[column] = name.strip()
    if not names:
        raise UserError(f"{path}: the first row is empty, and should hold the columns' names")
    return names


def clean(value: Any) -> Any:
    """Return a value, or None for texts without a letter and for Excel's errors."""
    return None if isinstance(value, str) and (not value.strip() or value in ERRORS) else value


def filled_height(column: list[Any]) -> int:
    return next((row + 1 for row in range(len(column) - 1, -1, -1) if column[row] is not None), 0)


def arrow_column(name: str, cells: list[Any], column: int) -> tuple[pa.Array, pa.Field]:
    kinds = [None if value is None else KINDS[type(value)] for value in cells]
    first = next((kind for kind in kinds if kind is not None), pa.null())
    odd = next((row for row, kind in enumerate(kinds) if kind not in (None, first)), None)
    if odd is not None:
        texts = [None if value is None else str(value) for value in cells]
        return pa.array(texts, pa.string()), pa.field(name, pa.string(), metadata={"mixed": cell_name(column, odd + 1)})
    values = [None if value is None else float(value) for value in cells] if first == pa.float64() else cells
    return pa.array(values, first), pa.field(name, first)


def cell_name(column: int, row: int) -> str:
    """Name a cell as Excel does. Both numbers are counted from 0."""
    from openpyxl.utils import get_column_letter  # pyright: ignore

    return f"{get_column_letter(column + 1)}{row + 1}"
