"""The versions of ``config.json``: each older one is upgraded when it is read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edp.data import tasks
from edp.data.units import identity_units
from edp.errors import UserError
from edp.runs.rows import Row

SCHEMA = 4


def read_config(path: Path) -> Row:
    """The config of a run, in the current schema."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: damaged ({error})") from None
    return upgrade(config, path)


def upgrade(config: Any, path: Path) -> Row:
    """A config of any schema in the current one; ``path`` is the file that errors name."""
    if not isinstance(config, dict) or not isinstance(config.get("schema"), int):
        raise UserError(f"{path}: damaged (not the config of a run)")
    if config["schema"] not in (*UPGRADES, SCHEMA):
        raise UserError(f"{path}: written with schema {config['schema']}, this version reads up to {SCHEMA}")
    try:
        while config["schema"] != SCHEMA:
            config = UPGRADES[config["schema"]](config)
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: damaged (no {error})") from None
    return config


def from_schema_2(config: Row) -> Row:
    """Schema 2 had one checkpoint, at the end of the run."""
    training = config["training"] | {"checkpoint_every": config["training"]["steps"]}
    return config | {"schema": 3, "training": training, "commit": None, "data_sha256": None}


def from_schema_3(config: Row) -> Row:
    """Schema 3 had registered tasks only, with observations as they are and actions in [-1, 1]."""
    units = identity_units(*tasks.get_task(config["task"]).dims).to_json()  # pyright: ignore
    return config | {"schema": 4, "units": units, "own_task": None, "columns": {}}


UPGRADES: dict[int, Callable[[Row], Row]] = {2: from_schema_2, 3: from_schema_3}
