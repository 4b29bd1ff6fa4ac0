"""Figures as files."""

import base64
import json
import os
import subprocess
import sys

import pytest
from fake import ablate, check_svg, entries, make

from edp.drawing import data_uri, save_figures, svg
from edp.report.figures import all_figures

HOSTILE = '_../../$\\frac{a}{$ <script>alert(1)</script>&"\x00\x1b\ud800\u202e 中'
RATES = {("dql", "training"): 2.0, ("edp", "training"): 30.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawing")
    first, second = make(folder / "a"), make(folder / "b", task="pen-human-v0", algorithm="iql")
    ablate(first, "eas")
    ablate(second, "eas", (0.5, 2, 8), seeds=1)
    ablate(second, "network", ("small", "large"))
    return folder


def test_files_are_safe_and_the_same_every_time(tmp_path, runs):
    made = all_figures(entries(runs), RATES, paper=True)
    out = tmp_path / "new" / "folder"
    some = {
        name: made[name] for name in ("curves-pen-human-v0", "ablation-eas", "ablation-network", "speed", "domains")
    }
    written = save_figures(some, out)
    assert sorted(written) == sorted(out.iterdir())
    assert len(written) == 2 * len(some)
    again = all_figures(entries(runs), RATES, paper=True)
    for name in some:
        check_svg((out / f"{name}.svg").read_bytes())
        assert (out / f"{name}.svg").read_bytes() == svg(again[name])
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    kind, _, text = data_uri(made["speed"]).partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(text) == (out / "speed.svg").read_bytes()
    assert b">EDP without DPM</text>" in base64.b64decode(text)


def test_hostile_names_are_text_and_stay_in_the_folder(tmp_path):
    for name, task in (("a", HOSTILE), ("_$x^2$<b>", HOSTILE.upper()), ("c", "/" * 5000), ("d", "..")):
        folder = make(tmp_path / "runs" / name, evaluations=2)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config["task"], config["algorithm"]["name"] = task, HOSTILE
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    ablate(folder, "$\\x", values=(HOSTILE, "$$"), label=HOSTILE)
    found = all_figures(entries(tmp_path / "runs"))
    assert len(found) == 5
    written = save_figures(found, tmp_path / "out")
    assert sorted(written) == sorted((tmp_path / "out").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "runs"]
    for path in written:
        assert set(path.stem) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
        assert len(path.name) < 120
    assert len({path.name.lower() for path in written}) == 10
    for path in (path for path in written if path.suffix == ".svg"):
        check_svg(path.read_bytes())
        assert b"$\\frac{a}{$ " in path.read_bytes()
    assert [path.name for path in save_figures({"": found[f"curves-{HOSTILE}"]}, tmp_path / "x")] == [
        *("figure.svg", "figure.png")
    ]


def test_no_figures_make_no_files(tmp_path):
    assert save_figures({}, tmp_path / "x") == []


DRAW = """
import sys
from pathlib import Path
from edp.drawing import drawing_style, save_figure
with drawing_style():
    from matplotlib.figure import Figure
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, 1], [1, 0])
    save_figure(figure, Path(sys.argv[1]))
"""
STYLES = {
    "another style": b"axes.facecolor: red\nlines.linewidth: 9\nfigure.facecolor: black\n",
    "a backend to import": b"backend: module://evil_module\nbackend_fallback: False\n",
    "no text": b"\xff\xfe\x00",
    "wrong keys": b"nothing: 3\naxes.facecolor\n",
}


@pytest.mark.parametrize("style", [*STYLES, "a pipe"])
def test_a_matplotlibrc_in_the_current_folder_is_ignored(style, tmp_path):
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "evil_module.py").write_text("import os\nos._exit(9)\n")
    if style == "a pipe":
        os.mkfifo(folder / "matplotlibrc")
    else:
        (folder / "matplotlibrc").write_bytes(STYLES[style])
    pictures = []
    for place in (tmp_path, folder):
        pictures.append(tmp_path / f"{place.name}.png")
        command = [sys.executable, "-P", "-c", DRAW, str(pictures[-1])]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
