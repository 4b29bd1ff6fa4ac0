"""Data and runs found for a command, with progress and notes on the way."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.prompt import Confirm

from edp.config.spec import Spec
from edp.data import formats, locate
from edp.data.tasks import Task
from edp.errors import UserError
from edp.files import cache_folder
from edp.runs.checkpoints import Checkpoint
from edp.runs.directory import Run
from edp.runs.load import load


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that counts to ``total``; without a terminal, a line at each quarter."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(
            TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
        ) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    shown = 0

    def line(done: int) -> None:
        nonlocal shown
        quarter = 4 * done // total
        if quarter > shown:
            shown = quarter
            print(f"{title}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    yield line


def download(task: Task) -> Path:
    """Fetch the task's file, with a bar of the bytes."""
    console = Console(stderr=True)
    columns = TextColumn(task.file), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task(task.file, total=None)
        return locate.download_task(task, lambda done, total: bar.update(shown, completed=done, total=total or None))


def find_data(task: Task, quiet: bool) -> Path:
    """The task's file; where it is missing and somebody is there to ask, a download is offered."""
    missing = not task.local and locate.file_on_disk(task) is None
    question = f"{task.name} is not here. Download {task.file} to {locate.download_path(task).parent}?"
    if missing and sys.stdin.isatty() and not quiet and Confirm.ask(question):
        return download(task)
    if not task.local or quiet or locate.is_made(task, cache_folder() / task.file):
        try:
            return locate.find_task_file(task)
        except locate.MissingDataError as error:
            advice = f"edp data get {task.name} downloads it, edp data make {task.name} makes a look-alike"
            raise UserError(f"{error}: {advice}, or give --data FILE") from None
    with counting(f"making {task.name}", task.transitions) as advance:
        return locate.find_task_file(task, advance)


def find_data_of(folder: Run, spec: Spec, quiet: bool = False, advice: str = ": say with --data where it is") -> str:
    """The data that a run was trained on: where it was, or where the task's file is here."""
    recorded = str(folder.config.get("file") or "")
    if formats.prefix_of(recorded) or (recorded and Path(recorded).exists()):
        return recorded
    if spec.task.own:
        where = f"is no longer at {recorded}" if recorded else "was never in a file"
        raise UserError(f"{folder.folder}: its data {where}{advice}")
    return str(find_data(spec.task, quiet))


def note(text: str) -> None:
    """Something that people should know, apart from the results."""
    print(f"edp: {text}", file=sys.stderr, flush=True)


def load_noting(folder: Run, step: int | str | None = None) -> tuple[Spec, Checkpoint]:
    """A run's spec and checkpoint, with a note of those that could not be used."""
    spec, found = load(folder, step)
    for damaged in found.damaged:
        note(f"{damaged}; that of step {found.step:,} is used")
    return spec, found
