"""The log of examples/plant, short, with the meaning of its columns, and options of a tiny run."""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "plant"))

import plant_logs

COLUMNS = {
    "observation_columns": ("mode", "level_%", "temp_C", "draw_l_min"),
    "one_hot": ("mode",),
    "action_columns": ("valve_%", "heater_%"),
    "reward_column": "cost_ct",
    "episode_column": "shift",
    "terminal_column": "trip",
    "time_column": "time",
    "calendar": ("hour", "weekday"),
}
OPTIONS = {"steps": 20, "epoch_steps": 20, "batch_size": 32, "hidden": (8,), "calls": 2, "eas": 1}
NUMBERS = ("level_%", "temp_C", "draw_l_min")


def write_plant(path: Path) -> Path:
    path.write_text(plant_logs.text_of(plant_logs.simulate(days=3)), encoding="utf-8")
    return path


def observations(path: Path) -> list[dict]:
    """What a control loop would see: the observed cells of each row, and the time."""
    with path.open(encoding="utf-8") as file:
        return [
            {"time": row["time"], "mode": row["mode"], **{name: float(row[name]) for name in NUMBERS}}
            for row in csv.DictReader(file)
        ]
