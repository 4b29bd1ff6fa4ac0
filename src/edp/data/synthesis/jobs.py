"""Jobs that make rows of a data set, run in several processes."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from edp.errors import UserError

Progress = Callable[[int], None]


class Part(NamedTuple):
    """Rows that one job made."""

    columns: dict[str, np.ndarray]
    cut: bool  # the last episode was cut off


class Job(Protocol):
    """A number of rows that one process makes."""

    @property
    def rows(self) -> int: ...

    def __call__(self, on_progress: Progress) -> Part: ...


def run_jobs(jobs: Sequence[Job], processes: int, on_progress: Progress, narrow: bool) -> list[Part]:
    """Run jobs and return their parts in order."""
    if min(processes, len(jobs)) == 1 and not narrow:
        done, parts = 0, []
        for job in jobs:
            parts.append(job(lambda n, d=done: on_progress(d + n)))
            done += job.rows
        return parts
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", len(jobs), lock=False)
    with (
        environment_variables(worker_environment(narrow)),
        ProcessPoolExecutor(min(processes, len(jobs)), context, start_worker, (counters,)) as pool,
    ):
        futures = [pool.submit(run_counted, job, i) for i, job in enumerate(jobs)]
        try:
            while wait(futures, timeout=0.2).not_done:
                on_progress(sum(counters))
                if any(future.done() and future.exception() for future in futures):
                    break
            return [future.result() for future in futures]
        except BrokenProcessPool:
            raise UserError(
                "a process that makes data was killed (too little memory?): try fewer `processes`"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def worker_environment(narrow: bool) -> dict[str, str]:
    """Return variables for the processes: one thread for linear algebra, since every core has a process."""
    wide = narrow and "avx512f" in cpu_flags()
    return {"OPENBLAS_NUM_THREADS": "1"} | ({"OPENBLAS_CORETYPE": "Haswell"} if wide else {})


def cpu_flags() -> set[str]:
    """Return the features of the processor, or nothing if this is not Linux."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("flags"):
                return set(line.split())
    return set()


@contextmanager
def environment_variables(values: dict[str, str]):
    """Set environment variables for a while; processes that start meanwhile inherit them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


COUNTERS: Any = None  # of a worker process: the rows that each job has made so far


def start_worker(counters: Any) -> None:
    """Prepare a worker process. It ends with the process that started it, even if that one is killed."""
    global COUNTERS
    COUNTERS = counters
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "only worker processes call this"
    parent.join()
    os._exit(1)


def run_counted(job: Job, index: int) -> Part:
    def note(rows: int) -> None:
        COUNTERS[index] = rows

    return job(note)
