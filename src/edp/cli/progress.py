"""Progress bars and notes on stderr, apart from the results on stdout."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edp.cli.parser import as_flags
from edp.errors import printable


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that counts to ``total``. Without a terminal, a line at each quarter."""
    console, title = Console(stderr=True), printable(title)
    if console.is_terminal:
        with Progress(
            TextColumn(escape(title)), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
        ) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    shown = 0

    def print_quarter(done: int) -> None:
        nonlocal shown
        quarter = 4 * done // total
        if quarter > shown:
            shown = quarter
            print(f"{title}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    yield print_quarter


def note(text: str) -> None:
    """Tell the user something that is not a result."""
    print(f"edp: {printable(as_flags(text))}", file=sys.stderr, flush=True)
