"""The notebook examples/plant.ipynb, executed from its first cell to its last."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
CELLS = [
    "".join(cell["source"])
    for cell in json.loads((EXAMPLES / "plant.ipynb").read_text(encoding="utf-8"))["cells"]
    if cell["cell_type"] == "code"
]


def as_script(cells: list[str]) -> str:
    """The cells as one script, in which lines with ``!`` are run by a shell, and last expressions are printed."""
    lines = ["import subprocess"]
    for cell in cells:
        if cell.startswith("!"):
            lines += [f"subprocess.run({line[1:]!r}, shell=True, check=True)" for line in cell.splitlines()]
            continue
        *body, last = ast.parse(cell).body
        if isinstance(last, ast.Expr) and not (isinstance(last.value, ast.Call) and "print" in ast.unparse(last)):
            last = ast.parse(f"print({ast.unparse(last)!s})").body[0]
        lines += [ast.unparse(part) for part in [*body, last]]
    return "\n".join(lines)


def test_the_notebook_has_fewer_than_fifteen_cells():
    assert len(CELLS) < 15


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_from_the_log_to_the_exported_action(tmp_path):
    pytest.importorskip("onnxruntime")
    shutil.copytree(EXAMPLES / "plant", tmp_path / "plant")
    (tmp_path / "notebook.py").write_text(as_script(CELLS), encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, "notebook.py"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "'temp_C' is 850" in run.stdout
    last = ast.literal_eval(run.stdout.strip().splitlines()[-1])
    assert set(last) == {"valve_%", "heater_%"}
    assert all(0 <= value <= 100 for value in last.values())
