"""Environments that a file names: which options are taken from it."""

from typing import Any

from edp.errors import printable

MOST_VALUES = 1000  # in a list
LARGEST = 2.0**63  # of a number


def plain_environment(env_id: str, options: dict[str, Any]) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return an environment and its options as a file names them, or nothing and why it is left out.

    Options that are not plain could name files to open or code to import. Without them, the environment would be
    another one, so it is left out as well. The render mode is for the user to choose.
    """
    options = {name: value for name, value in options.items() if name != "render_mode"}
    refused = [name for name, value in options.items() if not is_plain(value)]
    if env_id and refused:
        why = f"option {printable(refused[0])} is not a number or a boolean"
        return "", {}, (f"environment {printable(env_id)} ({why})",)
    return env_id, options, ()


def is_plain(value: Any, depth: int = 3) -> bool:
    """Whether a value of an option is a number, a bool, or a small list of these, such as the map of a maze.

    Words could be paths, names of modules, or names of what an environment looks up.
    """
    if isinstance(value, list):
        return bool(depth) and len(value) <= MOST_VALUES and all(is_plain(each, depth - 1) for each in value)
    return isinstance(value, bool | int | float) and abs(value) < LARGEST
