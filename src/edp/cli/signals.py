"""Signals that stop a command."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
GRACE = 1.0  # seconds that a second Ctrl-C leaves for an orderly end


@contextmanager
def ending_at_second_interrupt() -> Iterator[None]:
    """Make a second Ctrl-C end the process within ``GRACE`` seconds, whatever it is doing.

    Python runs the handlers of signals only between two of its own instructions, and a compilation in JAX is one
    instruction that may take minutes. So a thread counts the signals. Files are safe at any instant: they are replaced
    as a whole, and rows and checkpoints that are unfinished are removed by the next resume.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield
        return
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    ended = threading.Event()
    threading.Thread(target=end_at_second_interrupt, args=(reads, ended), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        os.close(writes)  # ends the thread


def end_at_second_interrupt(reads: int, ended: threading.Event) -> None:
    """Read the numbers of signals until there is a second SIGINT, or until the pipe is closed."""
    count = 0
    while number := os.read(reads, 1):
        count += number[0] == signal.SIGINT
        if count == 2 and not ended.wait(GRACE):
            print("edp: interrupted", file=sys.stderr, flush=True)
            os._exit(EXIT_INTERRUPTED)
    os.close(reads)


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
