"""The meaning of a table's columns."""

import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from edp.data.checks import check_exists
from edp.errors import UserError, first_line, printable, unknown
from edp.options import check_options, option

RANGES = ("action_low", "action_high")  # may also be given in a TOML file


@dataclass(frozen=True)
class Columns:
    """Columns as the user gives them; names may hold ``*``. The defaults are the names that ``write_table`` writes."""

    observation_columns: tuple[str, ...] = option((), "columns that are observed (default: observation_*)")
    action_columns: tuple[str, ...] = option((), "columns that are the actions (default: action_*)")
    reward_column: str = option("", "the column of rewards (default: reward; without one, all are 0)")
    episode_column: str = option("", "a column that changes where an episode begins (default: episode)")
    terminal_column: str = option("", "a column that is 1 where an episode ended by itself (default: terminal)")
    timeout_column: str = option("", "a column that is 1 where an episode was cut off (default: timeout)")
    next_observation_columns: tuple[str, ...] = option((), "columns of the state afterwards (default: the next row's)")


DEFAULTS = {
    "observation_columns": ("observation_*",),
    "action_columns": ("action_*",),
    "reward_column": "reward",
    "episode_column": "episode",
    "terminal_column": "terminal",
    "timeout_column": "timeout",
    "next_observation_columns": ("next_observation_*",),
}
NEEDED = ("observation_columns", "action_columns")


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of one table, by name. A name is empty if the table has no such column."""

    observation_columns: tuple[str, ...]
    action_columns: tuple[str, ...]
    reward_column: str
    episode_column: str
    terminal_column: str
    timeout_column: str
    next_observation_columns: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        single = (self.reward_column, self.episode_column, self.terminal_column, self.timeout_column)
        return [
            *self.observation_columns,
            *self.action_columns,
            *self.next_observation_columns,
            *filter(None, single),
        ]


def choose_columns(columns: Columns, names: list[str], path: Path) -> ChosenColumns:
    """Find the columns of a table with these ``names``."""
    matched: dict[str, Any] = {}
    for entry in fields(columns):
        given = getattr(columns, entry.name)
        wanted = given or DEFAULTS[entry.name]
        patterns = wanted if isinstance(wanted, tuple) else (wanted,)
        matches = [[name for name in names if name == pattern or fnmatchcase(name, pattern)] for pattern in patterns]
        if given and not all(matches):
            missing = patterns[[bool(match) for match in matches].index(False)]
            raise UserError(f"{path}: {unknown(f'column in `{entry.name}`', missing, map(printable, names))}")
        together = tuple(name for match in matches for name in match)
        if entry.name in NEEDED and not together:
            what = entry.name.removesuffix("_columns")
            raise UserError(
                f"{path}: which columns are the {what}s? Say it with `{entry.name}` (has: {list_names(names)})"
            )
        matched[entry.name] = together if isinstance(wanted, tuple) else "".join(together[:1])
    chosen = ChosenColumns(**matched)
    twice = [name for name in chosen.all if chosen.all.count(name) > 1]
    if twice:
        raise UserError(f"{path}: column {twice[0]!r} is used twice")
    after, before = len(chosen.next_observation_columns), len(chosen.observation_columns)
    if after and after != before:
        raise UserError(f"{path}: {after} columns of next observations for {before} of observations")
    return chosen


def list_names(names: Iterable[str]) -> str:
    names = [printable(name) for name in names]
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "") or "nothing"


def read_toml(path: Path) -> dict[str, Any]:
    """Read the meaning of columns, and the ranges of actions, from a TOML file."""
    check_exists(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # wrong TOML, wrong UTF-8, or a number with thousands of digits
        raise UserError(f"{path}: not a TOML file ({first_line(error)})") from None
    known = [*DEFAULTS, *RANGES]
    for name in content:
        if name not in known:
            raise UserError(f"{path}: {unknown('entry', name, known)}")
    return {name: checked_entry(name, value, path) for name, value in content.items()}


def checked_entry(name: str, value: Any, path: Path) -> Any:
    several = value if isinstance(value, list) else [value]
    if name in RANGES:
        if not several or not all(
            type(number) in (int, float) and abs(number) <= sys.float_info.max for number in several
        ):
            raise UserError(f"{path}: {name} must be a number, or a list of them")
        return tuple(float(number) for number in several)
    if not several or not all(isinstance(text, str) and text for text in several):
        many = ", or a list of them" if isinstance(DEFAULTS[name], tuple) else ""
        raise UserError(f"{path}: {name} must be the name of a column{many}")
    if isinstance(DEFAULTS[name], tuple):
        return tuple(several)
    if len(several) > 1:
        raise UserError(f"{path}: {name} must be the name of one column")
    return several[0]


def columns_from(given: Mapping[str, Any]) -> Columns:
    for name in given:
        if name not in DEFAULTS:
            raise unknown("meaning of columns", str(name), DEFAULTS)
    return check_options(Columns(**given))
