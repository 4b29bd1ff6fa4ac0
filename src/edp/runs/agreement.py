"""Whether ``config.json`` is still the one with which a checkpoint was made.

A checkpoint has a copy of everything in the config that decides what its policy does. What may change later is not
compared: the number of steps, the environment's name, and where the data is.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from edp.config.spec import Spec
from edp.errors import UserError
from edp.runs.rows import Row
from edp.runs.schema import SCHEMA, upgrade


class ConfigChangedError(UserError):
    """The config is not the one with which a checkpoint was made."""


class Difference(NamedTuple):
    name: str
    before: Any
    now: Any


def recorded_config(spec: Spec, config: Row) -> Row:
    """The copy of a run's config that a checkpoint has."""
    return json.loads(json.dumps({"schema": SCHEMA, **spec.to_json(), "data_sha256": config.get("data_sha256")}))


def check_agreement(checkpoint: Path, recorded: Row, config: Row) -> None:
    """Refuse a config that is not the one of the checkpoint. Both are results of ``recorded_config``."""
    recorded = upgrade(recorded, checkpoint)
    recorded = recorded_config(Spec.from_json(recorded, checkpoint), recorded)  # has the options of this version
    found = first_difference("", comparable(recorded), comparable(config))
    if found:
        path = checkpoint.parent.parent / "config.json"
        raise ConfigChangedError(
            f"{path}: changed or damaged after the checkpoint of step {checkpoint.name} was written "
            f"({found.name} is {short(found.now)}, and was {short(found.before)}): put the old value back"
        )


def comparable(config: Row) -> Row:
    """The config without what may change. A decay of the learning rate over the whole run follows its steps."""
    steps, algorithm, own_task = config["training"]["steps"], config["algorithm"], config["own_task"]
    if algorithm.get("lr_decay") == steps:
        algorithm = algorithm | {"lr_decay": "steps"}
    own_task = own_task and {name: value for name, value in own_task.items() if name != "env"}
    training = {name: value for name, value in config["training"].items() if name != "steps"}
    return config | {"algorithm": algorithm, "own_task": own_task, "training": training}


def first_difference(name: str, before: Any, now: Any) -> Difference | None:
    """The first entry in which two JSON values differ."""
    if isinstance(before, dict) and isinstance(now, dict) and before.keys() == now.keys():
        parts = [(f"{name}.{key}".lstrip("."), before[key], now[key]) for key in before]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        parts = [(f"{name}[{at}]", *pair) for at, pair in enumerate(zip(before, now, strict=True))]
    else:
        same = json.dumps(before, sort_keys=True) == json.dumps(now, sort_keys=True)
        return None if same else Difference(name, before, now)
    return next(filter(None, (first_difference(*part) for part in parts)), None)


def short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
