"""Waiting for a computation until a deadline, and no longer."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Worker:
    """Computes in a thread of its own, because a computation of JAX cannot be stopped.

    One that is late goes on, and its result is dropped. The next one begins when it has ended: they never queue up.
    """

    def __init__(self, deadline_ms: float):
        self.deadline_ms, self._thread = deadline_ms, ThreadPoolExecutor(1, "edp-act")
        self._running: Future[Any] | None = None

    def run(self, compute: Callable[[], Any], start: float | None) -> Any:
        """The result of ``compute()``. Raises TimeoutError at the deadline, counted from ``start`` (perf_counter).

        If ``start`` is None, there is no deadline.
        """
        until = None if start is None else start + self.deadline_ms / 1000
        if self._running is not None:
            self._running.exception(remaining(until))  # waits until the late one has ended
        self._running = self._thread.submit(compute)
        return self._running.result(remaining(until))


def remaining(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.perf_counter())
