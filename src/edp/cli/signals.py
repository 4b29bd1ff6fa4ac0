"""Signals that stop a command."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Make SIGTERM raise SystemExit, so that unfinished files are removed."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Signals:
    """Records Ctrl-C and SIGTERM, so that training can stop in an orderly way. A second Ctrl-C ends at once."""

    def __init__(self, tell: Callable[[str], None]):
        self.number, self.tell = 0, tell

    def __enter__(self) -> "Signals":
        self.before = {number: signal.signal(number, self.ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        return self.number != 0

    def ask(self, number: int, frame: object) -> None:
        if number == signal.SIGINT and self.number:
            raise KeyboardInterrupt
        self.number = number
        self.tell("stopping: finishing the current epoch and writing a checkpoint (Ctrl-C again: stop at once)")

    @property
    def exit_code(self) -> int:
        """The exit code for all processes, though only one of them may have received the signal."""
        from edp.devices import processes

        return 128 + max(processes.exchange(self.number))
