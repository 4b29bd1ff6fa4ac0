"""The HTML page of a set of runs: one file that needs no other."""

import base64
import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import edp
from edp.drawing import COLOURS, data_uri
from edp.errors import counted
from edp.report.behaviour import BEHAVIOUR, policy_behaviour
from edp.report.collect import Entry
from edp.report.curves import task_charts
from edp.report.markup import Table
from edp.report.offline import WORDS
from edp.report.sweep import Part
from edp.report.tables import common_versions, difference_table, result_tables, run_commands, run_table

RUN_STATES = ("finished", "running", "stopped early", "stopped", "failed", "killed", "damaged")


def build_page(
    entries: list[Entry],
    title: str,
    more: Sequence[Table] = (),
    refresh: int = 0,
    pictures: Mapping[str, str] = {},
    sweeps: Mapping[str, Sequence[Part]] = {},
) -> str:
    """Return the page as text, with ``more`` tables, ``pictures`` (data URIs by name), and ``sweeps`` by name.

    The page reloads itself every ``refresh`` seconds, if that is not 0.
    """
    here = Path(__file__).parent
    script, style = (here / "page.js").read_text(encoding="utf-8"), (here / "page.css").read_text(encoding="utf-8")
    digest = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = page_data(entries)
    page = Environment(
        loader=PackageLoader("edp.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return page.get_template("page.html").render(
        title=title,
        about=f"{describe_states(entries)}; made by edp {edp.__version__} on {time.strftime('%Y-%m-%d %H:%M')}.",
        refresh=refresh,
        style=Markup(style),
        script=Markup(script),
        digest=digest,
        states=(*RUN_STATES, *WORDS),
        sweeps={name: [(part, pictures_of(part)) for part in parts] for name, parts in sweeps.items()},
        tables=result_tables(entries),
        runs=run_table(entries),
        scored=any(entry.curve is not None for entry in entries),
        details=[table for table in (*more, difference_table(entries)) if table.rows or table.notes],
        pictures=pictures,
        commands=run_commands(entries),
        versions=common_versions(entries),
        data=data,
        json=Markup(script_json(data)),
    )


def pictures_of(part: Part) -> dict[str, str]:
    """Render the figures of a part of a sweep."""
    return {name: data_uri(figure) for name, figure in part.figures.items()}


def describe_states(entries: list[Entry]) -> str:
    """Count the runs, and those that are not finished."""
    states = Counter("damaged" if entry.damage else entry.state for entry in entries)
    counts = [f"{states[state]} of them {state}" for state in RUN_STATES if states[state] and state != "finished"]
    return ", ".join([counted(len(entries), "run"), *counts])


def script_json(data: Any) -> str:
    """Encode as JSON without "<", so that no text in it can end the script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page_data(entries: list[Entry]) -> dict[str, Any]:
    """Collect what the page's script draws."""
    known = [entry for entry in entries if not entry.damage]
    tasks = {name: [entry for entry in known if entry.task == name] for name in sorted({entry.task for entry in known})}
    charts = {name: made for name, runs in tasks.items() if (made := task_charts(runs))}
    colours = run_colours([tasks[name] for name in charts])
    panels = [panel(name, tasks[name], made, colours) for name, made in charts.items()]
    timed = [(entry, entry.speed) for entry in known if entry.speed]
    curves = [{"run": i, "kind": "", **vars(speed)} for i, (_, speed) in enumerate(timed)]
    speeds = [{"name": "steps/s", "wide": True, "curves": curves}] if timed else []
    speed = panel("speed", [entry for entry, _ in timed], speeds, colours)
    looks = [{"name": f"{entry.name}: {entry.method}", **policy_behaviour(entry)} for entry in known]
    looks = [look for look in looks if any(look[name] for name in BEHAVIOUR)]
    grids = share_steps([curve for each in (*panels, speed) for chart in each["charts"] for curve in chart["curves"]])
    return {"tasks": panels, "looks": looks, "speed": speed, "grids": grids, "colours": COLOURS}


def panel(name: str, runs: list[Entry], charts: list[dict[str, Any]], colours: dict[str, str]) -> dict[str, Any]:
    """Describe charts that have one legend."""
    named = [{"name": f"{entry.method}, {entry.name}", "colour": colours.get(entry.name, COLOURS[0])} for entry in runs]
    return {"name": name, "runs": named, "charts": charts}


def run_colours(tasks: list[list[Entry]]) -> dict[str, str]:
    """Choose the colour of each run: all different if there are enough colours, or else different on each task."""
    if sum(map(len, tasks)) <= len(COLOURS):
        tasks = [[entry for runs in tasks for entry in runs]]
    return {entry.name: COLOURS[i % len(COLOURS)] for runs in tasks for i, entry in enumerate(runs)}


def share_steps(curves: list[dict[str, Any]]) -> list[list[int]]:
    """Return each distinct list of steps once, and replace it in every curve by its index.

    ``low`` and ``high`` are removed where they equal the mean, as with one seed.
    """
    grids: dict[tuple[int, ...], int] = {}
    for curve in curves:
        curve["steps"] = grids.setdefault(tuple(curve["steps"]), len(grids))
        if curve["low"] == curve["mean"] == curve["high"]:
            del curve["low"], curve["high"]
    return [list(steps) for steps in grids]
