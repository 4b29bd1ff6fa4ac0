"""Errors that the user can fix."""

from collections.abc import Iterable
from typing import Any


class UserError(Exception):
    """One line that says what is wrong, where, and what to do.

    Messages name options in backticks, as Python spells them: `steps`, `eas=1`. The command line shows the message with
    flags in their place (``--steps``, ``--eas 1``) and exits with code 2.
    """


def unknown(kind: str, name: object, known: Iterable[str]) -> UserError:
    """The error for an unknown name, or for what is none. It suggests the nearest known name."""
    import difflib

    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(known)}"
    return UserError(f"unknown {kind} {name!r}: {hint}")


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its type if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def counted(number: int, what: str) -> str:
    """Write a number of things: 1 step, 2 steps."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def short_repr(value: Any) -> str:
    """A value in a message, on one line."""
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def printable(text: str) -> str:
    """Escape everything that a terminal would not show as a character, such as line breaks and colours."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
