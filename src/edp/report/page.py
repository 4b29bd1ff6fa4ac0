"""The HTML page of a set of runs: one file that needs no other."""

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
from edp.drawing import COLOURS
from edp.errors import counted
from edp.report.collect import Entry, rounded, seed_series
from edp.report.markup import Table
from edp.report.tables import common_versions, difference_table, report_tables, run_commands, score_kind
from edp.runs.scores import LAST, nan_mean

RUN_STATES = ("finished", "running", "stopped", "failed", "killed", "damaged")


def build_page(
    entries: list[Entry],
    title: str,
    more: Sequence[Table] = (),
    refresh: int = 0,
    pictures: Mapping[str, str] = {},
) -> str:
    """Return the page as text, with ``more`` tables and ``pictures`` (data URIs by name).

    The page reloads itself every ``refresh`` seconds, if that is not 0.
    """
    here = Path(__file__).parent
    script, style = (here / "page.js").read_text(encoding="utf-8"), (here / "page.css").read_text(encoding="utf-8")
    digest = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = page_data(entries)
    damaged = sum(bool(entry.damage) for entry in entries)
    about = counted(len(entries), "run") + f", {damaged} of them damaged" * bool(damaged)
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
        states=RUN_STATES,
        tables=report_tables(entries),
        details=[table for table in (*more, difference_table(entries)) if table.rows or table.notes],
        pictures=pictures,
        commands=run_commands(entries),
        versions=common_versions(entries),
        data=data,
        json=Markup(script_json(data)),
    )


def script_json(data: Any) -> str:
    """Encode as JSON without "<", so that no text in it can end the script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page_data(entries: list[Entry]) -> dict[str, Any]:
    """Collect what the page's script draws."""
    known = [entry for entry in entries if not entry.damage]
    names = dict.fromkeys(entry.task for entry in known if entry.curve or entry.losses)
    panels = []
    for name in sorted(names):
        runs = [entry for entry in known if entry.task == name]
        panels.append({"name": name, "measure": score_kind(runs), "runs": [run_curves(entry) for entry in runs]})
    looks = [{"name": f"{entry.name}: {entry.method}", **policy_behaviour(entry)} for entry in known]
    looks = [look for look in looks if any(look[name] for name in BEHAVIOUR)]
    speeds = [{"name": entry.name, **vars(entry.speed)} for entry in known if entry.speed]
    grids = share_steps([run for panel in panels for run in panel["runs"]], speeds)
    return {"tasks": panels, "looks": looks, "speed": speeds, "grids": grids, "colours": COLOURS}


def share_steps(runs: list[dict[str, Any]], speeds: list[dict[str, Any]]) -> list[list[int]]:
    """Return each distinct list of steps once, and replace it in every curve by its index.

    ``low`` and ``high`` are removed where they equal the mean, as with one seed.
    """
    grids: dict[tuple[int, ...], int] = {}
    for curve in [*(each for run in runs for each in (*run["losses"].values(), run["scores"]) if each), *speeds]:
        curve["steps"] = grids.setdefault(tuple(curve["steps"]), len(grids))
        if curve["low"] == curve["mean"] == curve["high"]:
            del curve["low"], curve["high"]
    return [list(steps) for steps in grids]


def run_curves(entry: Entry) -> dict[str, Any]:
    """Collect the losses and scores of a run. ``oms`` and ``rat`` are first step, last step and score, or None."""
    held_out = {f"{name} (held out)": vars(series).copy() for name, series in entry.held_out.items()}
    curves: dict[str, Any] = {
        "run": entry.name,
        "name": f"{entry.method}, {entry.name}",
        "losses": {name: vars(series).copy() for name, series in entry.losses.items()} | held_out,
        "scores": None,
        "rat": None,
        "oms": None,
    }
    if entry.curve is None:
        return curves
    steps = [int(step) for step in entry.curve.steps]
    curves["scores"] = vars(seed_series(steps, entry.curve.scores))
    if not np.isnan(entry.curve.means).all():
        curves["oms"] = [steps[0], steps[-1], float(nan_mean(entry.curve.oms))]
        curves["rat"] = [steps[-LAST:][0], steps[-1], float(nan_mean(entry.curve.rat))]
        curves |= {name: None for name in ("oms", "rat") if not np.isfinite(curves[name][-1])}
    return curves


def policy_behaviour(entry: Entry) -> dict[str, Any]:
    """Collect what the policy does, part by part. A part that is missing or malformed is None."""
    parts = {}
    for name, make in BEHAVIOUR.items():
        try:
            parts[name] = make(entry)
            json.dumps(parts[name], allow_nan=False)  # NaN in one part would break the whole page
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            parts[name] = None
    return parts


def action_histograms(entry: Entry) -> list[dict[str, Any]]:
    """Collect histograms of the data's actions and of the policy's (mean over seeds), as shares of each bin."""
    data, policies = entry.actions["data"], [each for each in entry.actions["policy"] if each]
    shares = np.array(data["histogram"], float)
    policy = np.mean([np.array(each["histogram"], float) for each in policies], axis=0)
    units = entry.config.get("units") or {"low": [-1.0] * len(shares), "high": [1.0] * len(shares)}
    names = (entry.config.get("own_task") or {}).get("action_names") or []
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


def episode_values(entry: Entry) -> dict[str, Any]:
    """Describe one episode. If there is a critic, collect the values along it and the candidates of EAS."""
    episode = entry.look["episode"]
    about = f"{counted(int(episode['length']), 'step')}, return {float(episode['return']):.4g}"
    if "q" not in episode:
        return {"about": about, "q": None, "choices": []}
    steps = [int(step) for step in episode["at"]]
    values = {name: rounded(np.array(episode[key], float)) for name, key in VALUES.items()}
    if any(len(numbers) != len(steps) for numbers in values.values()):
        raise ValueError("the numbers of values and steps differ")
    choices = [
        {"at": int(choice["at"]), "q": rounded(np.array(choice["q"], float)), "chosen": choice["chosen"]}
        for choice in episode["choices"]
        if choice["chosen"] is None or isinstance(choice["chosen"], int)
    ]
    return {"about": about, "q": {"steps": steps, **values}, "choices": choices}


def action_plane(entry: Entry) -> dict[str, Any]:
    """Collect points of the data and of the policy: both actions, or the state and the action."""
    plane = entry.look["plane"]
    names = "state (across) and action" if plane.get("of") != "actions" else "both actions"
    return {name: finite_points(plane[name]) for name in ("data", "policy")} | {"what": names}


def maze_paths(entry: Entry) -> dict[str, Any] | None:
    """Collect paths on a plane, and the walls around them if it is a maze."""
    maze, paths = entry.look["map"] or {"walls": [], "cell": 0.0}, entry.look["paths"]
    drawn = [
        {"points": finite_points(path["points"]), "goal": path["goal"] and finite_points([path["goal"]])[0]}
        for path in paths
    ]
    return {"walls": finite_points(maze["walls"]), "cell": float(maze["cell"]), "paths": drawn} if drawn else None


def finite_points(pairs: Any) -> list[list[float]]:
    table = np.array(pairs, float).reshape(-1, 2)
    return [[float(f"{number:.4g}") for number in row] for row in table[np.isfinite(table).all(axis=1)]]


BEHAVIOUR = {"actions": action_histograms, "episode": episode_values, "plane": action_plane, "maze": maze_paths}
VALUES = {"mean": "q", "low": "q_low", "high": "q_high"}
