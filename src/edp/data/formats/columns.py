"""The meaning of a table's columns."""

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from edp.data.checks import check_exists
from edp.errors import UserError, counted, first_line, printable, unknown
from edp.options import check_options, option

RANGES = ("action_low", "action_high")  # may also be given in a TOML file
RESAMPLE = ("mean", "last", "first", "min", "max", "sum")
CALENDAR = {"hour": 86_400.0, "weekday": 7 * 86_400.0, "year": 365.2425 * 86_400}  # seconds after which it repeats
MISSING = ("refuse", "drop", "ffill")


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
    operator_column: str = option("", "a column that tells who acted; it is not observed")
    time_column: str = option("", "the column of the time: numbers (seconds), ISO dates, or as in time_format")
    time_format: str = option("", "how times are written: %d.%m.%Y %H:%M, or s, ms, us, ns (default: ISO)")
    newest_first: bool = option(False, "the newest row is the first: turn the table around")
    max_gap: str = option("", "rows that are farther apart in time are not neighbours: the episode ends (5min, 2h, …)")
    every: str = option("", "average the rows of each such time (1min, 1h, …) into one")
    resample: tuple[str, ...] = option((), f"how rows become one: {', '.join(RESAMPLE)}, or COLUMN=HOW (default: mean)")
    calendar: tuple[str, ...] = option((), f"observe the time as sine and cosine: {', '.join(CALENDAR)}")
    missing: tuple[str, ...] = option((), f"empty cells: {', '.join(MISSING)}, or COLUMN=HOW (default: refuse)")
    missing_texts: tuple[str, ...] = option((), "texts that mean an empty cell, for example 'No Data' (CSV)")
    one_hot: tuple[str, ...] = option((), "observed columns of text: each different text becomes a column of 0 and 1")
    decimal: str = option("", "the decimal point of CSV files (default: a comma if the cells have commas)")
    encoding: str = option("", "the encoding of CSV files, for example cp1252 (default: UTF-8)")


DEFAULTS = {
    "observation_columns": ("observation_*",),
    "action_columns": ("action_*",),
    "reward_column": "reward",
    "episode_column": "episode",
    "terminal_column": "terminal",
    "timeout_column": "timeout",
    "next_observation_columns": ("next_observation_*",),
    "time_column": "",
    "operator_column": "",
}
NEEDED = ("observation_columns", "action_columns")
OPTIONS = tuple(entry.name for entry in fields(Columns))


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
    time_column: str
    operator_column: str = ""

    @property
    def all(self) -> list[str]:
        ends = (self.episode_column, self.terminal_column, self.timeout_column)
        return [
            *self.observation_columns,
            *self.action_columns,
            *self.next_observation_columns,
            *filter(None, (self.reward_column, *ends, self.time_column, self.operator_column)),
        ]


def choose_columns(columns: Columns, names: list[str], path: Path) -> ChosenColumns:
    """Find the columns of a table with these ``names``."""
    matched: dict[str, Any] = {}
    for key, default in DEFAULTS.items():
        given = getattr(columns, key)
        wanted = given or default
        patterns = wanted if isinstance(wanted, tuple) else (wanted,)
        matches = [[name for name in names if name == pattern or fnmatchcase(name, pattern)] for pattern in patterns]
        if given and not all(matches):
            missing = patterns[[bool(match) for match in matches].index(False)]
            raise UserError(f"{path}: {unknown(f'column in `{key}`', missing, map(printable, names))}")
        together = tuple(name for match in matches for name in match)
        if key in NEEDED and not together:
            what = key.removesuffix("_columns")
            raise UserError(f"{path}: which columns are the {what}s? Say it with `{key}` (has: {list_names(names)})")
        matched[key] = together if isinstance(wanted, tuple) else "".join(together[:1])
    chosen = ChosenColumns(**matched)
    twice = [name for name in chosen.all if chosen.all.count(name) > 1]
    if twice:
        raise UserError(f"{path}: column {twice[0]!r} is used twice")
    after, before = len(chosen.next_observation_columns), len(chosen.observation_columns)
    if after and after != before:
        raise UserError(f"{path}: {counted(after, 'column')} of next observations for {before} of observations")
    return chosen


def wanted_names(columns: Columns) -> list[str]:
    """The names of columns that are looked for; they may hold ``*``."""
    wanted = [getattr(columns, key) or default for key, default in DEFAULTS.items()]
    return [name for each in wanted for name in (each if isinstance(each, tuple) else (each,)) if name]


def way_of(names: Sequence[str], given: Sequence[str], default: str) -> str:
    """How a column with one of these names is treated: ``COLUMN=HOW``, or ``HOW`` for all columns, or the default."""
    single = dict(way.rsplit("=", 1) for way in given if "=" in way)
    general = next((way for way in given if "=" not in way), default)
    return next((single[name] for name in names if name in single), general)


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
    known = [*OPTIONS, *RANGES]
    for name in content:
        if name not in known:
            raise UserError(f"{path}: {unknown('entry', name, known)}")
    return {name: checked_entry(name, value, path) for name, value in content.items()}


def checked_entry(name: str, value: Any, path: Path) -> Any:
    several = list(value) if isinstance(value, list | tuple) else [value]
    if name in RANGES:
        if not several or not all(
            type(number) in (int, float) and abs(number) <= sys.float_info.max for number in several
        ):
            raise UserError(f"{path}: {name} must be a number, or a list of them")
        return tuple(float(number) for number in several)
    default = getattr(Columns(), name)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise UserError(f"{path}: {name} must be true or false")
        return value
    what = "the name of a column" if name in DEFAULTS else "a text"
    if not several or not all(isinstance(text, str) and text for text in several):
        many = ", or a list of them" if isinstance(default, tuple) else ""
        raise UserError(f"{path}: {name} must be {what}{many}")
    if isinstance(default, tuple):
        return tuple(several)
    if len(several) > 1:
        raise UserError(f"{path}: {name} must be {what.replace('a column', 'one column')}")
    return several[0]


class GivenColumns(NamedTuple):
    """What the user says about a table: the meaning of its columns, and the ranges of actions."""

    meaning: dict[str, Any]
    ranges: dict[str, tuple[float, ...]]
    origins: dict[str, str]  # the name of the file, for every entry of either that comes from a file


def given_columns(columns: Mapping[str, Any] | str | Path | None) -> GivenColumns:
    """Take the meaning of columns from a mapping, or read it from a TOML file."""
    if isinstance(columns, str | Path):
        content, origins = read_toml(Path(columns)), Path(columns).name
    elif columns is None or isinstance(columns, Mapping):
        content, origins = dict(columns or {}), ""
    else:
        raise UserError(f"`columns` is a mapping or the name of a TOML file, not {columns!r}")
    origins = dict.fromkeys(content, origins) if origins else {}
    ranges = {name: checked_entry(name, content.pop(name), Path("columns")) for name in RANGES if name in content}
    return GivenColumns(content, ranges, origins)


def columns_from(given: Mapping[str, Any]) -> Columns:
    for name in given:
        if name not in OPTIONS:
            raise unknown("meaning of columns", str(name), OPTIONS)
    return check_options(Columns(**given))
