"""A computation in time, late, and after a late one."""

import threading
import time

import pytest

from edp.acting.deadline import Worker


def test_in_time():
    worker = Worker(10_000)
    assert [worker.run(lambda number=number: number, time.perf_counter()) for number in (1, 2)] == [1, 2]
    with pytest.raises(ZeroDivisionError):
        worker.run(lambda: 1 // 0, time.perf_counter())
    assert worker.run(lambda: 3, time.perf_counter()) == 3


def test_late_ones_are_dropped_and_never_queue_up():
    worker, gate, begun = Worker(50), threading.Event(), []

    def slow():
        begun.append(True)
        gate.wait()
        return "late"

    start = time.perf_counter()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            worker.run(slow, time.perf_counter())
    assert time.perf_counter() - start >= 0.15
    assert len(begun) == 1
    gate.set()
    assert worker.run(lambda: "new", None) == "new"
    assert len(begun) == 1


def test_time_before_the_computation_counts():
    worker, gate = Worker(50), threading.Event()
    start = time.perf_counter()
    with pytest.raises(TimeoutError):
        worker.run(gate.wait, start - 3600)
    gate.set()


def test_its_thread_ends_with_it():
    worker = Worker(10_000)
    worker.run(lambda: None, time.perf_counter())
    (thread,) = worker._thread._threads
    del worker
    thread.join(10)
    assert not thread.is_alive()
