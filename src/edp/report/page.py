"""One page of a set of runs, with everything that it needs in it."""

import base64
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import edp
from edp.report import summary
from edp.report.collect import Entry, Series, edge, mean_of, rounded
from edp.runs.scores import LAST, known_mean

STATES = ("finished", "running", "stopped", "failed", "killed", "damaged")


def build(
    entries: list[Entry],
    title: str,
    more: Sequence[summary.Table] = (),
    refresh: int = 0,
    pictures: Mapping[str, str] = {},
) -> str:
    """The page as text, with ``more`` tables and ``pictures`` (data URIs by name); with ``refresh``, it loads itself
    again after so many seconds."""
    here = Path(__file__).parent
    script, style = (here / "page.js").read_text(), (here / "page.css").read_text()
    digest = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = contents(entries)
    damaged = sum(bool(entry.damage) for entry in entries)
    about = f"{len(entries)} run{'s' * (len(entries) != 1)}" + f", {damaged} of them damaged" * bool(damaged)
    page = Environment(
        loader=PackageLoader("edp.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return page.get_template("page.html").render(
        title=title,
        about=f"{about}; made by edp {edp.__version__} on {time.strftime('%Y-%m-%d %H:%M')}.",
        refresh=refresh,
        style=Markup(style),
        script=Markup(script),
        digest=digest,
        states=STATES,
        tables=summary.tables(entries),
        details=[table for table in (*more, summary.differences(entries)) if table.rows or table.notes],
        pictures=pictures,
        commands=summary.commands(entries),
        versions=summary.versions(entries),
        data=data,
        json=Markup(embedded(data)),
    )


def embedded(data: Any) -> str:
    """JSON that nothing in it can end: no "<" is left."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def contents(entries: list[Entry]) -> dict[str, Any]:
    """What is drawn."""
    known = [entry for entry in entries if not entry.damage]
    names = dict.fromkeys(entry.task for entry in known if entry.curve or entry.losses)
    panels = []
    for name in sorted(names):
        runs = [entry for entry in known if entry.task == name]
        panels.append({"name": name, "measure": summary.measure(runs), "runs": [curves(entry) for entry in runs]})
    looks = [{"name": f"{entry.name}: {entry.method}", **behaviour(entry)} for entry in known]
    speeds = [{"name": entry.name, **vars(entry.speed)} for entry in known if entry.speed]
    found = {"tasks": panels, "looks": [look for look in looks if any(look[name] for name in PARTS)], "speed": speeds}
    return found | {"grids": shared_steps(found)}


def shared_steps(found: dict[str, Any]) -> list[list[int]]:
    """The steps of all curves, each list of them once; a curve has the number of its own instead. What can be told from
    its means, the spread of one seed, is left out."""
    grids: dict[tuple[int, ...], int] = {}
    runs = [run for task in found["tasks"] for run in task["runs"]]
    for one in [*(each for run in runs for each in (*run["losses"].values(), run["scores"]) if each), *found["speed"]]:
        one["steps"] = grids.setdefault(tuple(one["steps"]), len(grids))
        if one["low"] == one["mean"] == one["high"]:
            del one["low"], one["high"]
    return [list(steps) for steps in grids]


def curves(entry: Entry) -> dict[str, Any]:
    held = {f"{name} (held out)": vars(series).copy() for name, series in entry.held_out.items()}
    found: dict[str, Any] = {
        "run": entry.name,
        "name": f"{entry.method}, {entry.name}",
        "losses": {name: vars(series).copy() for name, series in entry.losses.items()} | held,
        "scores": None,
        "rat": None,
        "oms": None,
    }
    if entry.curve is None:
        return found
    steps, scores = [int(step) for step in entry.curve.steps], entry.curve.scores
    mean = mean_of(scores, 1)
    found["scores"] = vars(Series(steps, rounded(mean), rounded(edge(scores, np.fmin)), rounded(edge(scores, np.fmax))))
    if not np.isnan(mean).all():
        found["oms"] = [steps[0], steps[-1], float(known_mean(entry.curve.oms))]
        found["rat"] = [steps[-LAST:][0], steps[-1], float(known_mean(entry.curve.rat))]
        found |= {name: None for name in ("oms", "rat") if not np.isfinite(found[name][-1])}
    return found


def behaviour(entry: Entry) -> dict[str, Any]:
    """What the policy does, part by part; a part that is missing, or not as this version writes it, is None."""
    found = {}
    for name, make in PARTS.items():
        try:
            found[name] = make(entry)
            json.dumps(found[name], allow_nan=False)  # one number that JSON does not have would cost the whole page
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            found[name] = None
    return found


def histograms(entry: Entry) -> list[dict[str, Any]]:
    """The data's actions and the policy's, as shares of each bin; those of several seeds together."""
    data, policies = entry.looks["data"], [each for each in entry.looks["policy"] if each]
    shares = np.array(data["histogram"], float)
    policy = np.mean([np.array(each["histogram"], float) for each in policies], axis=0)
    units = entry.config.get("units") or {"low": [-1.0] * len(shares), "high": [1.0] * len(shares)}
    own = entry.config.get("own_task") or {}
    names = own.get("action_names") or []
    return [
        {
            "name": str(names[i]) if i < len(names) else f"action {i}",
            "low": float(low),
            "high": float(high),
            "data": rounded(shares[i]),
            "policy": rounded(policy[i]),
        }
        for i, (low, high) in enumerate(zip(units["low"], units["high"], strict=True))
    ]


def episode(entry: Entry) -> dict[str, Any]:
    """How it went; and if there is a critic, values along it, and what EAS chose from."""
    seen = entry.seen["episode"]
    about = f"{int(seen['length']):,} step{'s' * (seen['length'] != 1)}, return {float(seen['return']):.4g}"
    if "q" not in seen:
        return {"about": about, "q": None, "choices": []}
    steps = [int(step) for step in seen["at"]]
    values = {name: rounded(np.array(seen[key], float)) for name, key in VALUES.items()}
    if any(len(numbers) != len(steps) for numbers in values.values()):
        raise ValueError("as many values as steps")
    choices = [
        {"at": int(choice["at"]), "q": rounded(np.array(choice["q"], float)), "chosen": choice["chosen"]}
        for choice in seen["choices"]
        if choice["chosen"] is None or isinstance(choice["chosen"], int)
    ]
    return {"about": about, "q": {"steps": steps, **values}, "choices": choices}


def plane(entry: Entry) -> dict[str, Any]:
    """Two numbers at once, those of the data and of the policy: both actions, or the state and the action."""
    found = {name: points(entry.seen["plane"][name]) for name in ("data", "policy")}
    return found | {
        "what": "state (across) and action" if entry.seen["plane"].get("of") != "actions" else "both actions"
    }


def maze(entry: Entry) -> dict[str, Any] | None:
    """Paths on a plane, among walls if there are any."""
    ground, paths = entry.seen["map"] or {"walls": [], "cell": 0.0}, entry.seen["paths"]
    found = [{"points": points(path["points"]), "goal": path["goal"] and points([path["goal"]])[0]} for path in paths]
    return {"walls": points(ground["walls"]), "cell": float(ground["cell"]), "paths": found} if found else None


def points(pairs: Any) -> list[list[float]]:
    table = np.array(pairs, float).reshape(-1, 2)
    return [[float(f"{number:.4g}") for number in row] for row in table[np.isfinite(table).all(axis=1)]]


PARTS = {"actions": histograms, "episode": episode, "plane": plane, "maze": maze}
VALUES = {"mean": "q", "low": "q_low", "high": "q_high"}
