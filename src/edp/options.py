"""Options as dataclass fields: a default, a sentence of help, and the range that makes sense."""

from dataclasses import field, fields, replace
from typing import Any, get_args, get_origin

from edp.errors import UserError

LARGEST = 2**31 - 1  # that devices count to
NAMES = {int: "whole number", float: "number", str: "word", bool: "true or false"}
LISTED = {int: "whole numbers", float: "numbers", str: "names"}


def option(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high})


def flag(name: str) -> str:
    """The option's name on the command line."""
    return "--" + name.replace("_", "-")


def check(config: Any) -> Any:
    """Refuse values of the wrong kind or outside their range; gives the config back, with tuples where it has lists."""
    lists = {entry.name: getattr(config, entry.name) for entry in fields(config)}
    config = replace(config, **{name: tuple(value) for name, value in lists.items() if isinstance(value, list)})
    for entry in fields(config):
        value, low, high = getattr(config, entry.name), entry.metadata.get("low"), entry.metadata.get("high")
        many = get_origin(entry.type) is tuple
        kind = get_args(entry.type)[0] if many else entry.type
        if many != isinstance(value, tuple):
            wanted = f"a list of {LISTED[kind]}" if many else f"one {NAMES[kind]}"
            raise UserError(f"{flag(entry.name)} must be {wanted}, not {value!r}")
        if kind is int and high is None:
            high = LARGEST
        for number in value if many else (value,):
            if type(number) is not kind and not (kind is float and type(number) is int):
                raise UserError(f"{flag(entry.name)} must be a {NAMES[kind]}, not {number!r}")
            if (low is not None and not number >= low) or (high is not None and not number <= high):
                limits = (
                    f"at least {low}" if high in (None, LARGEST) and not number > LARGEST else f"from {low} to {high}"
                )
                raise UserError(f"{flag(entry.name)} must be {limits}, not {number}")
    return config
