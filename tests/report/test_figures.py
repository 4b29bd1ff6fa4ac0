"""Figures as files."""

import base64
import json
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from fake import make
from matplotlib.text import Text

from edp.cli import main
from edp.report import collect, figures, summary

HOSTILE = '_../../$\\frac{a}{$ <script>alert(1)</script>&"\x00\x1b\ud800\u202e 中'
BENCH = {"dql": 2.0, "edp-without-dpm": 4.0, "edp": 30.0}


def ablate(folder: Path, name: str, values=(1, 2, 4), seeds: int = 2, **changes) -> None:
    """What ``edp ablate`` leaves in a run."""
    scores = np.arange(len(values) * seeds * 3.0).reshape(len(values), seeds, 3)
    content = {"title": "t", "label": f"values of {name}", "values": list(values), "scores": scores.tolist()} | changes
    (folder / "ablations").mkdir(exist_ok=True)
    (folder / "ablations" / f"{name}.json").write_text(json.dumps(content))


def bench(path: Path, rates: dict[str, float]) -> Path:
    rows = [
        {"name": name, "what": what, "steps_per_second": rate}
        for name, rate in rates.items()
        for what in ("training", "acting")
    ]
    path.write_text(json.dumps({"variants": rows}))
    return path


def all_of(folder: Path, **options):
    return figures.all_figures(collect.read_all([folder]), **options)


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    first, second = make(folder / "runs" / "a"), make(folder / "runs" / "b", task="pen-human-v0", algorithm="iql")
    make(folder / "runs" / "bad").joinpath("config.json").write_text("{")
    for name in ("noise", "eas", "calls", "other", "scale"):
        ablate(first, name)
    ablate(second, "eas", (0.5, 2, 8), seeds=1)
    ablate(second, "network", ("small", "large"))
    return folder / "runs"


@pytest.fixture(scope="module")
def made(runs):
    return all_of(runs, bench=bench(runs.parent / "bench.json", BENCH), paper=True)


def test_every_figure_is_there(made):
    kinds = [f"ablation-{name}" for name in ("eas", "calls", "scale", "noise", "network", "other")]
    assert list(made) == ["curves-hopper-medium-v2", "curves-pen-human-v0", *kinds, "speed", "domains"]


def test_a_curve_has_its_ring_and_its_thick_line(runs, made):
    (axes,) = made["curves-hopper-medium-v2"].axes
    line, ring, thick = axes.lines
    curve = collect.read(runs / "a").curve
    assert curve is not None
    np.testing.assert_allclose(line.get_ydata(), curve.scores.mean(axis=1), rtol=1e-3)
    assert ring.get_ydata() == pytest.approx(curve.scores.mean(axis=1).max())
    assert thick.get_xdata().tolist() == [3000, 12000]
    np.testing.assert_allclose(thick.get_ydata(), curve.rat.mean())


def test_an_ablation_has_the_values_of_all_its_runs(made):
    (axes,) = made["ablation-eas"].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "1", "2", "4", "8"]
    first, second = axes.lines
    assert first.get_xdata().tolist() == [1, 2, 3]
    assert first.get_ydata().tolist() == [2.5, 8.5, 14.5]  # means over two seeds of three episodes
    assert second.get_xdata().tolist() == [0, 2, 4]
    assert "values of eas" in texts(made["ablation-eas"])
    assert "eas (the paper's figure 4)" in texts(made["ablation-eas"])


def test_speeds_are_multiples_of_the_same_machine_s_dql(tmp_path, made):
    found = texts(made["speed"])
    for text in ("5.2 × (116.2/s)", "3.3 × (411.8/s)", "1 × (2/s)", "15 × (30/s)"):
        assert text in found
    assert found.count("not measured") == 4  # of two figures: the original, and EDP without action approximation
    without = all_of(tmp_path, bench=bench(tmp_path / "b.json", {"edp": 30.0, "dql": 0.0}), paper=True)
    assert texts(without["speed"]).count("not measured") == 10


def test_a_domain_needs_a_run_of_every_task(tmp_path):
    for kind in ("complete", "partial"):
        make(tmp_path / kind, task=f"kitchen-{kind}-v0", algorithm="iql", level=40)
    found = texts(all_of(tmp_path, paper=True)["domains"])
    assert "2 of\n3 tasks" in found
    assert found.count("no runs") == 3
    assert "locomotion\nother: CQL\nEDP: TD3+BC" in found
    assert {"77.6", "85.5", "53.3", "59.4"} <= set(found)
    make(tmp_path / "mixed", task="kitchen-mixed-v0", algorithm="iql", level=40)
    axes = all_of(tmp_path, paper=True)["domains"].axes[0]
    means = [entry.curve.rat.mean() for entry in collect.read_all([tmp_path]) if entry.curve]
    assert axes.containers[5].patches[0].get_height() == pytest.approx(np.mean(means), abs=0.01)


def test_more_runs_than_colours_are_the_best_ones(tmp_path):
    for level in range(22):
        make(tmp_path / f"run{level}", level=10 * (level + 1), evaluations=3, seeds=1)
    found = texts(all_of(tmp_path)["curves-hopper-medium-v2"])
    assert "hopper-medium-v2\nthe 20 of 22 runs with the highest RAT" in found
    shown = [int(text.rpartition("run")[2]) for text in found if text.startswith("td3bc")]
    assert shown == list(range(21, 1, -1))


def test_files_are_safe_and_the_same_every_time(tmp_path, runs, made):
    out = tmp_path / "new" / "folder"
    some = {
        name: made[name] for name in ("curves-pen-human-v0", "ablation-eas", "ablation-network", "speed", "domains")
    }
    written = figures.save(some, out)
    assert sorted(written) == sorted(out.iterdir())
    assert len(written) == 2 * len(some)
    again = all_of(runs, bench=runs.parent / "bench.json", paper=True)
    for name in some:
        check_svg((out / f"{name}.svg").read_bytes())
        assert (out / f"{name}.svg").read_bytes() == figures.svg(again[name])
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    kind, _, text = figures.as_data_uri(made["speed"]).partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(text) == (out / "speed.svg").read_bytes()
    assert b">EDP without DPM</text>" in base64.b64decode(text)


def check_svg(content: bytes) -> None:
    """Well-formed, without scripts, and without a word of other places."""
    for part in ElementTree.fromstring(content).iter():
        assert part.tag.rpartition("}")[2].lower() not in ("script", "foreignobject", "image", "a")
        for name, value in part.attrib.items():
            assert not name.rpartition("}")[2].lower().startswith("on")
            assert not name.endswith("href") or value.startswith("#")
            assert "url(" not in value.replace("url(#", "")
    rest = content.replace(b"http://www.w3.org/2000/svg", b"").replace(b"http://www.w3.org/1999/xlink", b"")
    assert b"http" not in rest
    assert b"@import" not in rest


def test_hostile_names_are_text_and_stay_in_the_folder(tmp_path):
    for name, task in (("a", HOSTILE), ("_$x^2$<b>", HOSTILE.upper()), ("c", "/" * 5000), ("d", "..")):
        folder = make(tmp_path / "runs" / name, evaluations=2)
        config = json.loads((folder / "config.json").read_text())
        config["task"], config["algorithm"]["name"] = task, HOSTILE
        (folder / "config.json").write_text(json.dumps(config))
    ablate(folder, "$\\x", values=(HOSTILE, "$$"), label=HOSTILE)
    found = all_of(tmp_path / "runs")
    assert len(found) == 5
    written = figures.save(found, tmp_path / "out")
    assert sorted(written) == sorted((tmp_path / "out").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "runs"]
    for path in written:
        assert set(path.stem) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
        assert len(path.name) < 120
    assert len({path.name.lower() for path in written}) == 10
    for path in (path for path in written if path.suffix == ".svg"):
        check_svg(path.read_bytes())
        assert b"$\\frac{a}{$ " in path.read_bytes()
    assert [path.name for path in figures.save({"": found[f"curves-{HOSTILE}"]}, tmp_path / "x")] == [
        *("figure.svg", "figure.png")
    ]


DAMAGED = {
    "half": '{"values": [1',
    "list": "[]",
    "number": "1" * 5000,
    "deep": "[" * 100_000,
    "keys": "{}",
    "types": '{"values": 3, "scores": "x"}',
    "rows": '{"values": [1, 2], "scores": [3, null]}',
    "lengths": '{"values": [1, 2], "scores": [[[1]]]}',
    "seeds": '{"values": [1, 2], "scores": [[[1]], [[1], [2]]]}',
    "ragged": '{"values": [1], "scores": [[[1], [1, 2]]]}',
    "words": '{"values": [1], "scores": [[["a"]]]}',
    "objects": '{"values": [{}], "scores": [[[1]]]}',
    "infinite": '{"values": [Infinity], "scores": [[[1]]]}',
    "twice": '{"values": [1, 1.0], "scores": [[[1]], [[2]]]}',
    "unknown": '{"values": [1], "scores": [[[null, NaN]]]}',
    "overflow": f'{{"values": [1], "scores": [[[1{"0" * 400}]]]}}',
    "many": json.dumps({"values": list(range(500)), "scores": [[[1]]] * 500}),
    "large": " " * 10_000_001,
}


def test_damaged_ablations_are_noted_and_passed_over(tmp_path):
    folder = make(tmp_path / "a", evaluations=0)
    ablate(folder, "eas")
    ablate(folder, "gaps", scores=[[[1, None]], [[None, None]], [[float("nan"), 1e300, 4]]], label=None)
    for name, content in DAMAGED.items():
        (folder / "ablations" / f"{name}.json").write_text(content)
    (folder / "ablations" / "bytes.json").write_bytes(b"\xff\xfe")
    (folder / "ablations" / "folder.json").mkdir()
    make(tmp_path / "b", evaluations=0).joinpath("ablations").write_text("")
    entries = collect.read_all([tmp_path])
    found = figures.all_figures(entries)
    figures.all_figures(entries)
    assert list(found) == ["ablation-eas", "ablation-gaps"]
    first, second = found["ablation-gaps"].axes[0].lines[0].get_xydata()
    assert (first[1], second[1]) == (1, 4)
    names = sorted([*DAMAGED, "bytes", "folder"])
    assert [note.split(" (")[0] for note in entries[0].notes] == [
        f"ablations/{name}.json could not be read" for name in names
    ]
    assert "eas" not in summary.runs(entries).rows[1][-1].text


def test_scores_that_are_none(tmp_path):
    rows = {"a": [[[float("inf")]], [[1.0]], [[1e300]]], "b": [[[None]]] * 3}
    for name, scores in rows.items():
        folder = make(tmp_path / name, evaluations=0, seeds=1)
        lines = [{"kind": "training", "step": i + 1, "scores": each} for i, each in enumerate(scores)]
        (folder / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (figure,) = all_of(tmp_path).values()
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[2, 1]]
    check_svg(figures.svg(figure))


def test_nothing_makes_no_figures(tmp_path):
    assert figures.all_figures([], bench=tmp_path / "none.json") == {}  # the paper's only if asked for
    assert figures.save({}, tmp_path / "x") == []
    (figure,) = figures.all_figures([], paper=True).values()
    assert texts(figure).count("no runs") == 4


def test_the_command_writes_them_again_and_again(tmp_path, monkeypatch, capsys, fails):
    monkeypatch.chdir(tmp_path)
    ablate(make(Path("runs/a"), evaluations=2), "eas")
    Path("runs/a/ablations/broken.json").write_text("{")
    bench(Path("bench.json"), BENCH)
    assert main(["report", "--paper", "--bench", "bench.json", "--figures", "new/figures"]) == 0
    assert capsys.readouterr().out == "report.html\nnew/figures\n"
    names = ["ablation-eas", "curves-hopper-medium-v2", "domains", "speed"]
    assert sorted(path.name for path in Path("new/figures").glob("*.svg")) == [f"{name}.svg" for name in names]
    assert "ablations/broken.json could not be read" in Path("report.html").read_text()
    assert "cannot write here" in fails("report", "--figures", "bench.json")

    def interrupt(seconds):
        if Path("f/curves-hopper-medium-v2.svg").exists() and not Path("f/ablation-eas.svg").exists():
            raise KeyboardInterrupt
        for path in Path("f").iterdir():
            path.unlink()
        Path("runs/a/ablations/eas.json").unlink(missing_ok=True)

    monkeypatch.setattr(time, "sleep", interrupt)
    main(["report", "--figures", "f", "--watch"])
    assert sorted(path.name for path in Path("f").iterdir()) == [f"curves-hopper-medium-v2.{k}" for k in ("png", "svg")]
