"""Reading ablations, and what damaged ones become."""

import json

from fake import ablate, entries, make

from edp.report.figures import all_figures
from edp.report.tables import run_table

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
        (folder / "ablations" / f"{name}.json").write_text(content, encoding="utf-8")
    (folder / "ablations" / "bytes.json").write_bytes(b"\xff\xfe")
    (folder / "ablations" / "folder.json").mkdir()
    make(tmp_path / "b", evaluations=0).joinpath("ablations").write_text("", encoding="utf-8")
    runs = entries(tmp_path)
    found = all_figures(runs)
    all_figures(runs)
    assert list(found) == ["ablation-eas", "ablation-gaps"]
    first, second = found["ablation-gaps"].axes[0].lines[0].get_xydata()  # pyright: ignore
    assert (first[1], second[1]) == (1, 4)
    names = sorted([*DAMAGED, "bytes", "folder"])
    assert [note.split(" (")[0] for note in runs[0].notes] == [
        f"ablations/{name}.json could not be read" for name in names
    ]
    assert "eas" not in run_table(runs).rows[1][-1].text
