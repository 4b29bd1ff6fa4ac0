"""How a run is asked to stop."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the process as an exception does, so that what was half written goes away."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Signals:
    """Ctrl-C and SIGTERM ask to stop; a second Ctrl-C ends at once."""

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
        """For all processes, of which one may have heard the signal."""
        from edp.devices import processes

        return 128 + max(processes.exchange(self.number))
