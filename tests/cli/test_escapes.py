"""Names in files may hold terminal codes, line breaks and rich's markup. They are shown as text."""

import json

import h5py
import numpy as np
import pytest
from small import TINY

import edp
from edp.cli import main
from edp.errors import printable
from support.malformed import small_log

CODE = "\x1b[31m\x1b]0;title\x07\u202e[/bold]"


def test_what_is_not_printable_is_escaped():
    assert printable("plain ± 中 \\") == "plain ± 中 \\"
    assert printable("a\x1b[0m\n\u202e\udc80\x9b") == r"a\x1b[0m\n\u202e\udc80\x9b"


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Files whose names, columns and attributes hold terminal codes."""
    monkeypatch.chdir(tmp_path)
    table = tmp_path / f"a{CODE.replace('/', '')}.csv"
    rows = "\n".join(f"{i},{i % 3},{i % 2},0" for i in range(30))
    table.write_text(f"observation_{CODE},action_{CODE},other{CODE},episode\n{rows}\n", encoding="utf-8")
    log = tmp_path / f"b{CODE.replace('/', '')}.hdf5"
    with h5py.File(log, "w") as file:
        for key, column in small_log().items():
            file[key] = np.tile(column, (10, *[1] * (column.ndim - 1)))
        file["extra" + CODE.replace("/", "")] = 1
        made = {"name": f"x{CODE}", "transitions": 3, "episodes": 1, "mean_return": 1.0}
        file.attrs.update({"regenerated": CODE, "behaviours": json.dumps([made]), "env": CODE})
    return table, log


def test_terminal_codes_do_not_reach_the_terminal(hostile, tmp_path, capsys):
    table, log = hostile
    words = ["--columns", str(tmp_path / f"none{CODE}.toml")]
    for command in (
        ["data", "check", str(table)],
        ["data", "check", str(log)],
        ["data", "check", str(table), *words],
        ["data", "check", str(table), "--observation-columns", CODE],
        ["data", "convert", str(table), str(tmp_path / "c.parquet")],
        ["data", "convert", str(log), str(tmp_path / f"d{CODE.replace('/', '')}.npz")],
        ["data", "convert", str(log), str(tmp_path / f"d{CODE.replace('/', '')}.xyz")],
        ["data", "get", CODE],
        ["train", str(table), *TINY, "--validation", "0.3", "--out", str(tmp_path / f"run{CODE.replace('/', '')}")],
        ["runs", str(tmp_path)],
        ["eval", str(tmp_path / f"no{CODE}")],
    ):
        assert main(command) in (0, 1, 2), command
        shown = capsys.readouterr()
        for text in (shown.out, shown.err):
            assert text.replace("\n", "").isprintable(), (command, text)


def test_names_are_still_whole_where_they_are_written(hostile, tmp_path):
    table, _ = hostile
    written = edp.write(edp.open_log(table), tmp_path / "a.parquet")
    assert edp.open_log(written).action_names == (f"action_{CODE}",)
