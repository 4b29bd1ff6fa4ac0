"""Options as dataclass fields: a default, a help text and a range.

One field is the option everywhere: in Python, on the command line, in a run's ``config.json`` and in messages.
"""

from dataclasses import field, fields, replace
from typing import Any, TypeVar, get_args, get_origin

from edp.errors import UserError

LARGEST = 2**31 - 1  # of int32, which devices count in
KINDS = {int: "whole number", float: "number", str: "word", bool: "true or false"}
KINDS_IN_LISTS = {int: "whole numbers", float: "numbers", str: "names"}
Options = TypeVar("Options")


def option(
    default: Any, help: str, low: float | None = None, high: float | None = None, is_input: bool | None = None
) -> Any:
    """A field. Of an algorithm's options, those with ``is_input`` are inputs of compiled programs (default: floats).

    A number can be an input if no shape and no branch of the program depends on it, unless it is 0.
    """
    is_input = type(default) is float if is_input is None else is_input
    return field(default=default, metadata={"help": help, "low": low, "high": high, "is_input": is_input})


def check_options(options: Options) -> Options:
    """Refuse values of the wrong type or outside of their range. Returns the options, with lists as tuples."""
    entries: Any = fields(options)  # pyright: ignore
    lists = {entry.name: tuple(value) for entry in entries if isinstance(value := getattr(options, entry.name), list)}
    options = replace(options, **lists)  # pyright: ignore
    for entry in entries:
        check_option(entry, getattr(options, entry.name))
    return options


def check_option(entry: Any, value: Any) -> None:
    many = get_origin(entry.type) is tuple
    kind = get_args(entry.type)[0] if many else entry.type
    if many != isinstance(value, tuple):
        wanted = f"a list of {KINDS_IN_LISTS[kind]}" if many else f"one {KINDS[kind]}"
        raise UserError(f"`{entry.name}` must be {wanted}, not {value!r}")
    low, high = entry.metadata.get("low"), entry.metadata.get("high")
    if kind is int and high is None:
        high = LARGEST
    for number in value if many else (value,):
        if type(number) is not kind and not (kind is float and type(number) is int):
            raise UserError(f"`{entry.name}` must be a {KINDS[kind]}, not {number!r}")
        if (low is not None and not number >= low) or (high is not None and not number <= high):
            open_ended = high in (None, LARGEST) and not number > LARGEST
            limits = f"at least {low}" if open_ended else f"from {low} to {high}"
            raise UserError(f"`{entry.name}` must be {limits}, not {number}")
