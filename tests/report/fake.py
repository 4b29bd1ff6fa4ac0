"""Run directories that were written rather than trained, and what tests ask of reports."""

import json
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.text import Text

from edp.config.choice import choose
from edp.config.spec import Spec
from edp.data import tasks
from edp.data.units import identity_units
from edp.report.collect import Entry, read_runs
from edp.report.markup import Table
from edp.runs.provenance import provenance
from edp.runs.schema import SCHEMA
from edp.training.prepare import resolve_settings

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


@cache
def config_of(task: str, algorithm: str, policy: str) -> str:
    known = tasks.get_task(task)
    parts = resolve_settings(choose(algorithm, policy, "edp" if policy == "diffusion" else None), known).parts
    spec = Spec(known, *parts, units=identity_units(*known.dims))
    about = {
        "command": ["edp", "train", task, "--algo", algorithm],
        "device": "1 × cpu",
        "file": f"/data/{tasks.get_task(task).file}",
    }
    return json.dumps({"schema": SCHEMA, **provenance(), **spec.to_json(), **about})


def make(
    folder: Path,
    task: str = "hopper-medium-v2",
    algorithm: str = "td3bc",
    policy: str = "diffusion",
    evaluations: int = 12,
    seeds: int = 3,
    level: float = 50.0,
    state: str = "finished",
    **changes,
) -> Path:
    """Write a run with scores that rise to ``level``, and make these ``changes`` to its config."""
    rng = np.random.default_rng(evaluations + int(level))
    folder.mkdir(parents=True)
    config = json.loads(config_of(task, algorithm, policy)) | changes
    config["training"] |= {"seeds": seeds, "steps": 1000 * evaluations, "eval_every": 1000}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    steps = [1000 * (i + 1) for i in range(evaluations)]
    status = {"state": state, "step": steps[-1] if steps else 0, "reason": "", "failed_seeds": {}}
    (folder / "status.json").write_text(json.dumps(status), encoding="utf-8")
    rise = level * (1 - np.exp(-np.arange(1, evaluations + 1) / max(1, evaluations / 4)))
    scores = rise[:, None, None] + rng.normal(0, 3, (evaluations, seeds, 10))
    about = {
        "seeds": list(range(seeds)),
        "env_seeds": list(range(10)),
        "lengths": [[1000] * 10] * seeds,
        "failures": [],
    }
    rows = [
        {"kind": "training", "step": s, "scores": each.tolist(), "returns": (32 * each).tolist(), **about}
        for s, each in zip(steps, scores, strict=True)
    ]
    write(folder / "evaluations.jsonl", rows)
    losses = [
        {
            "step": s,
            "metrics": {"bc_loss": (1 / (i + 1) + rng.random(seeds) / 9).tolist(), "q_data": [float(i)] * seeds}
            | {name: rng.random(seeds).tolist() for name in ("critic_loss", "policy_loss", "q_policy", "value_loss")},
        }
        for i, s in enumerate(steps)
    ]
    write(folder / "metrics.jsonl", losses)
    write(folder / "validations.jsonl", losses[::5])
    write(folder / "times.jsonl", [{"step": s, "steps_per_second": 50.0 + float(rng.random())} for s in steps])
    return folder


OWN_TASK = {"name": "log.csv", "env": "", "domain": "own", "min_return": 0.0, "max_return": 100.0}


def make_own(folder: Path, file: str = "log.csv", failed: int | None = None, **options) -> Path:
    """Write a run on a log without an environment, in which the seed ``failed`` has no numbers after the start."""
    make(folder, own_task=OWN_TASK | {"action_names": ["valve_%", "heater_%"]}, **options)
    (folder / "evaluations.jsonl").unlink()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"task": file, "file": f"/data/{file}"}
    config["units"] |= {"low": [0.0, -5.0], "high": [100.0, 5.0]}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = folder / "validations.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        seeds = len(row["metrics"]["bc_loss"])
        bars = [{"histogram": np.eye(24)[[seed, 23]].tolist(), "distance": 1.0 + seed} for seed in range(seeds)]
        row["actions"] = {"data": {"histogram": np.full((2, 24), 1 / 24).tolist()}, "policy": bars}
        if failed is not None and number:
            for values in row["metrics"].values():
                values[failed] = None
    write(path, rows)
    return folder


def verdict(**changes) -> dict:
    content = {"sentence": "Better by 2 € a day.", "word": "better", "policy": -8.0, "log": -10.0, "unit": "€ a day"}
    return content | {"difference": [0.5, 2.0, 3.5], "operators": {"anna": -9.0, "bert": -11.0}} | changes


def look(folder: Path) -> None:
    """Write what inspecting its policy in a maze would have written."""
    rng = np.random.default_rng(0)
    step = json.loads((folder / "status.json").read_text(encoding="utf-8"))["step"]
    bars = {"histogram": np.full((3, 24), 1 / 24).tolist()}
    q = rng.normal(50, 3, 40)
    choices = [{"at": at, "q": rng.normal(50, 3, 10).tolist(), "chosen": at % 10} for at in range(0, 40, 4)]
    around = [[x, y] for x in range(6) for y in range(6) if x in (0, 5) or y in (0, 5)]
    path = {"points": (2 + np.cumsum(rng.normal(0, 0.1, (40, 2)), axis=0)).tolist(), "goal": [4, 4]}
    episode = {"at": list(range(40)), "length": 40, "return": 1.5, "q": q.tolist(), "choices": choices}
    seen = {"step": step, "seed": 0, "actions": {"data": bars, "policy": [bars]}}
    seen |= {"episode": episode | {"q_low": (q - 1).tolist(), "q_high": (q + 1).tolist()}}
    seen |= {"map": {"walls": around, "cell": 1.0}, "paths": [path]}
    seen |= {"plane": {name: rng.normal(0, 1, (200, 2)).tolist() for name in ("data", "policy")}}
    seen["plane"]["of"] = "actions"
    (folder / "look.json").write_text(json.dumps(seen), encoding="utf-8")


def write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def change_config(folder: Path, part: str, **options) -> None:
    """Change options in one part of a run's config."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config[part] |= options
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def make_sweep(folder: Path, trials: list[dict], rungs=(), **plan) -> Path:
    """Write a sweep. A trial has ``values``, perhaps ``again``, and what ``make`` takes; without a level it waits."""
    folder.mkdir(parents=True)
    usual = {
        "train": {},
        "content": {"space": {}},
        "search": {"metric": "score"},
        "stopping": {"first": 0, "factor": 2},
    }
    (folder / "sweep.json").write_text(json.dumps({"schema": 1} | usual | plan), encoding="utf-8")
    rows = []
    for number, trial in enumerate(trials):
        options = dict(trial)
        values, again = options.pop("values"), options.pop("again", None)
        name = f"{number:04d}" if again is None else f"again_{number:04d}"
        rows.append({"number": number, "name": name, "values": values, "again": again})
        if "level" in options:
            make(folder / name, **options)
            change_config(folder / name, "training", steps=12_000)
    write(folder / "trials.jsonl", rows)
    rows = [dict(zip(("number", "rung", "stops"), row, strict=True)) | {"value": 1.0} for row in rungs]
    write(folder / "rungs.jsonl", rows)
    return folder


def ablate(folder: Path, name: str, values=(1, 2, 4), seeds: int = 2, **changes) -> None:
    """Write an ablation of a run, with these ``changes`` to its content."""
    scores = np.arange(len(values) * seeds * 3.0).reshape(len(values), seeds, 3)
    content = {"title": "t", "label": f"values of {name}", "values": list(values), "scores": scores.tolist()} | changes
    (folder / "ablations").mkdir(exist_ok=True)
    (folder / "ablations" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def entries(*folders: Path) -> list[Entry]:
    return read_runs(list(folders))


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def column_after(table: Table, name: str, task: str) -> str:
    """The cell of a task in the column after the named one, where ours are."""
    (row,) = [row for row in table.rows if row[0].text == task]
    return row[table.columns.index(name) + 1].text


def figure_texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def check_svg(content: bytes) -> None:
    """Well-formed, without scripts, and without references to other places."""
    for part in ElementTree.fromstring(content).iter():
        assert part.tag.rpartition("}")[2].lower() not in ("script", "foreignobject", "image", "a")
        for name, value in part.attrib.items():
            assert not name.rpartition("}")[2].lower().startswith("on")
            assert not name.endswith("href") or value.startswith("#")
            assert "url(" not in value.replace("url(#", "")
    rest = content.replace(b"http://www.w3.org/2000/svg", b"").replace(b"http://www.w3.org/1999/xlink", b"")
    assert b"http" not in rest
    assert b"@import" not in rest
