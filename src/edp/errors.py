"""The error that is the user's to fix: the command line shows it as one line and exits with code 2."""

from collections.abc import Iterable


class UserError(Exception):
    """Says what is wrong, where, and what to do, in one line."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """An unknown name, with the nearest known one."""
    import difflib

    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(known)}"
    return UserError(f"unknown {kind} {name!r}: {hint}")


def first_line(error: Exception) -> str:
    """What a library's error says, without its story."""
    return (str(error).splitlines() or [type(error).__name__])[0]
