"""What policies do, as the page draws it: their actions beside the data's, an episode, and paths."""

import json
from typing import Any

import numpy as np

from edp.errors import counted
from edp.report.collect import Entry
from edp.report.series import rounded


def policy_behaviour(entry: Entry) -> dict[str, Any]:
    """Collect what the policy does, part by part. A part that is missing or malformed is None."""
    parts: dict[str, Any] = {}
    for name, make in BEHAVIOUR.items():
        try:
            parts[name] = make(entry)
            json.dumps(parts[name], allow_nan=False)  # NaN in one part would break the whole page
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            parts[name] = None
    return parts


def action_histograms(entry: Entry) -> dict[str, Any]:
    """Collect histograms of the data's actions and of the policy's (mean over seeds), as shares of each bin."""
    data, policies = entry.actions["data"], [each for each in entry.actions["policy"] if each]
    shares = np.array(data["histogram"], float)
    policy = np.mean([np.array(each["histogram"], float) for each in policies], axis=0)
    units = entry.config.get("units") or {"low": [-1.0] * len(shares), "high": [1.0] * len(shares)}
    columns = [
        {
            "name": action_name(entry, i),
            "low": float(low),
            "high": float(high),
            "data": rounded(shares[i]),
            "policy": rounded(policy[i]),
        }
        for i, (low, high) in enumerate(zip(units["low"], units["high"], strict=True))
    ]
    states = "held-out episodes" if entry.actions_held_out else "the data"
    seeds = f", mean over {len(policies)} seeds" if len(policies) > 1 else ""
    about = f"Actions in states of {states}; the policy after {entry.made_after(entry.actions_step)}{seeds}."
    return {"about": about, "who": "log" if entry.own_task else "data", "columns": columns}


def action_name(entry: Entry, i: int) -> str:
    names = entry.own_task.get("action_names") or []
    return str(names[i]) if i < len(names) else f"action {i}"


def episode_values(entry: Entry) -> dict[str, Any]:
    """Describe one episode. If there is a critic, collect the values along it and the candidates of EAS."""
    episode = entry.look["episode"]
    about = f"{counted(int(episode['length']), 'step')}, return {float(episode['return']):.4g}"
    about += f"; the policy after {entry.made_after(int(entry.look['step']))}"
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
    names = [action_name(entry, i) for i in (0, 1)]
    if plane.get("of") != "actions":
        names = [*((entry.config.get("signals") or {}).get("observations") or ["state"])[:1], names[0]]
    points = {name: finite_points(plane[name]) for name in ("data", "policy")}
    return points | {"names": names, "after": entry.made_after(int(entry.look["step"]))}


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
