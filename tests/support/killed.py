"""Jobs that make data, whose process or whose parent process is killed."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from edp.data.synthesis.jobs import run_jobs


@dataclass(frozen=True)
class KilledJob:
    rows: int = 50

    def __call__(self, on_progress):
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class SleepingJob:
    """Writes the number of its process into a file, and sleeps for a minute."""

    file: Path
    rows: int = 50

    def __call__(self, on_progress):
        self.file.write_text(str(os.getpid()))
        time.sleep(60)


def run_sleeping_jobs(folder: Path) -> None:
    run_jobs([SleepingJob(folder / "0"), SleepingJob(folder / "1")], 2, lambda rows: None, narrow=False)
