"""The claim of a process on a run directory: a lock file in it, which other processes cannot lock."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from edp.errors import UserError
from edp.files import remove_temporary, write_errors

LOCK = ".lock"
REMAINS = 1.0  # seconds for which a removed directory is watched
PATIENCE = 0.1  # seconds to wait for a lock that `is_claimed` holds briefly in another process


class RunRemovedError(UserError):
    """The directory of a run was removed, or replaced by another, while this process was training in it."""

    def __init__(self, folder: Path):
        super().__init__(f"{folder}: was removed or replaced during training; nothing more is written to it")


class Claim:
    """The claim on a directory, while this process holds it."""

    def __init__(self, folder: Path, use: str = "training in it"):
        self.folder, self.use = folder, use
        self.lock: tuple[int, int] | None = None  # device and inode of the lock file that this process holds

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from training in the directory. The claim ends with the process, even after a kill."""
        lock = FileLock(self.folder / LOCK, timeout=PATIENCE, poll_interval=0.02)
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise UserError(f"{self.folder}: another process is {self.use}") from None
        try:
            with write_errors(self.folder):
                remove_temporary(self.folder)
            self.lock = lock_identity(self.folder)
            yield
        finally:
            self.lock = None
            lock.release()

    def check(self) -> None:
        """Refuse to write if the directory that this process has claimed is no longer there, or is another one."""
        if self.lock is not None and self.lock != lock_identity(self.folder):
            raise RunRemovedError(self.folder)

    def remove_remains(self) -> None:
        """Remove the folders that a checkpoint in the background has made again after the directory was removed.

        TensorStore's threads may go on writing for a moment after Orbax has reported the error.
        """
        if self.lock is None or self.lock == lock_identity(self.folder):
            return
        end = time.monotonic() + REMAINS
        while time.monotonic() < end:
            with suppress(FileNotFoundError):
                if [entry.name for entry in self.folder.iterdir()] == ["checkpoints"]:  # a new run has a lock file, too
                    shutil.rmtree(self.folder, ignore_errors=True)
            time.sleep(0.02)


def lock_identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode of the lock file; None if there is none. An inode is not reused while the file is open."""
    try:
        found = (folder / LOCK).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def is_claimed(folder: Path) -> bool:
    """Whether a process is training in the directory."""
    path = folder / LOCK
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=PATIENCE, poll_interval=0.02):
            return False
    except Timeout:
        return True
    except OSError:
        return False
