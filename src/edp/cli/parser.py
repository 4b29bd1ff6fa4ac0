"""Command-line options from dataclasses, and errors in one line."""

import argparse
import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_origin, get_type_hints

from edp.errors import UserError, unknown
from edp.memory import limit_memory, parse_size

if TYPE_CHECKING:
    from edp.data.formats.columns import GivenColumns

OPTION_IN_TEXT = re.compile(r"`([a-z][a-z0-9_]*)(?:=([^`\n]*))?`")


def flag(name: str) -> str:
    """An option's name on the command line."""
    return "--" + name.replace("_", "-")


def as_flags(text: str) -> str:
    """Replace options that a message names as Python spells them, `n_step` or `eas=1`, by --n-step or --eas 1."""
    return OPTION_IN_TEXT.sub(lambda match: flag(match[1]) + (f" {match[2]}" if match[2] else ""), text)


class Parser(argparse.ArgumentParser):
    def __init__(self, prog: str, description: str, arguments: str = "", **options: Any):
        usage = " ".join(filter(None, [prog, arguments, "[option …]"]))
        super().__init__(prog, usage, description, allow_abbrev=False, formatter_class=Formatter, **options)
        self.register("type", int, whole_number)
        self._negative_number_matcher = re.compile(r"-[\d.][\d.,eE+-]*")  # also lists, such as -1,0

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")

    def parse(self, argv: list[str]) -> argparse.Namespace:
        """Parse ``argv``. The error about an unknown option suggests the nearest known one."""
        values, rest = self.parse_known_args(argv)
        for word in rest:
            if word.startswith("--"):
                raise unknown(
                    "option", word.split("=")[0], [o for o in self._option_string_actions if o.startswith("--")]
                )
        if rest:
            raise UserError(f"unexpected argument {rest[0]!r} (see {self.prog} --help)")
        return values

    def add_fields(self, cls: type, title: str, names: Iterable[str] = ()) -> None:
        """Add an option for each field of a dataclass, or for those with these ``names``."""
        group, hints = self.add_argument_group(title), get_type_hints(cls)
        for entry in (entry for entry in fields(cls) if not names or entry.name in names):
            default = None if entry.default is MISSING else entry.default
            shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
            text = entry.metadata["help"] if shown == "" else f"{entry.metadata['help']} (default: {shown})"
            group.add_argument(
                flag(entry.name),
                dest=entry.name,
                default=None,  # tells given options from others
                help=text.replace("%", "%%"),
                **converter(hints[entry.name]),
            )


class Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=30, width=110)


def whole_number(text: str) -> int:
    """Read a whole number, which may be written as 1e6."""
    try:
        return int(text) if not re.search("[.eE]", text) else exactly_whole(float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def exactly_whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError
    return int(number)


def converter(hint: Any) -> dict[str, Any]:
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        read = whole_number if item is int else item
        parse = lambda text: tuple(read(part) for part in text.split(","))  # noqa: E731
        parse.__name__ = f"comma-separated {item.__name__}"
        return {"type": parse, "metavar": "…"}
    return {"type": hint if hint in (int, float, str, Path) else str, "metavar": "…"}


def add_columns(parser: Parser) -> None:
    """Add the options that give the meaning of a table's columns."""
    from edp.data.formats import table_suffixes
    from edp.data.formats.columns import Columns

    title = f"columns of a table ({table_suffixes()}); names may contain *, or come from --columns FILE"
    parser.add_argument("--columns", type=Path, metavar="FILE", help="a TOML file that says what the columns mean")
    parser.add_fields(Columns, title)


def add_overwrite(parser: Parser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")


def add_max_memory(parser: Parser) -> None:
    parser.add_argument(
        "--max-memory",
        type=parse_size,
        action=LimitMemory,
        metavar="SIZE",
        help="refuse data that needs more memory than this, for example 4GB (default: what is free)",
    )
    limit_memory(None)


class LimitMemory(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        limit_memory(values)


def columns_of(values: argparse.Namespace) -> "GivenColumns":
    """The meaning of columns and ranges of actions, from the command line, which has precedence, and --columns FILE."""
    from edp.data.formats.columns import Columns, given_columns

    given, here = given_columns(values.columns), given_options([Columns], values)
    origins = {name: origin for name, origin in given.origins.items() if name not in here}
    return given._replace(meaning=given.meaning | here, origins=origins)


def given_options(classes: Iterable[type], values: argparse.Namespace) -> dict[str, Any]:
    """The options of these dataclasses that were given on the command line."""
    found = {entry.name: getattr(values, entry.name) for cls in classes for entry in fields(cls)}
    return {name: value for name, value in found.items() if value is not None}
