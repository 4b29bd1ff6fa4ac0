"""Environments that a file names: which options are taken from it."""

import re
from typing import Any

from edp.errors import printable

MOST_VALUES = 1000  # in a list or dict
LARGEST = 2.0**63  # of a number


def plain_environment(env_id: str, options: dict[str, Any]) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return an environment and its options as a file names them, or nothing and why it is left out.

    Options that are not plain could name files to open or code to import. Without them, the environment would be
    another one, so it is left out as well.
    """
    refused = [name for name, value in options.items() if not is_plain(value)]
    if env_id and refused:
        return "", {}, (f"environment {printable(env_id)} (option {printable(refused[0])} is not a plain value)",)
    return env_id, options, ()


def is_plain(value: Any, depth: int = 3) -> bool:
    """Whether a value of an option is a number, a bool, None, a short word, or a small list or dict of these.

    Words have no dots, slashes and colons, with which they could be paths or names of modules.
    """
    if isinstance(value, list | dict) and depth and len(value) <= MOST_VALUES:
        inner = value if isinstance(value, list) else [*value.keys(), *value.values()]
        return all(is_plain(each, depth - 1) for each in inner)
    if isinstance(value, str):
        return re.fullmatch(r"[A-Za-z0-9_ -]{0,64}", value) is not None
    return value is None or (isinstance(value, int | float) and abs(value) < LARGEST)
