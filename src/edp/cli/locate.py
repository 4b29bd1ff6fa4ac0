"""Data files and checkpoints that a command needs, with progress, questions and notes on the way."""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.prompt import Confirm

from edp.cli.progress import counting, note
from edp.config.spec import Spec
from edp.data import tasks
from edp.errors import UserError
from edp.files import cache_folder
from edp.runs.checkpoints import Checkpoint
from edp.runs.directory import Run
from edp.runs.load import NoCheckpointError, load


def download_with_bar(task: tasks.Task) -> Path:
    """Download the file of a task, with a bar of the bytes."""
    console = Console(stderr=True)
    columns = TextColumn(task.file), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task(task.file, total=None)
        return tasks.download(task, lambda done, total: bar.update(shown, completed=done, total=total or None))


def find_file(task: tasks.Task, quiet: bool = False) -> Path:
    """The file of a task. A missing one is offered for download at a terminal; a built-in one is made."""
    missing = not task.local and tasks.on_disk(task) is None
    question = f"{task.name} is not here. Download {task.file} to {tasks.download_path(task).parent}?"
    if missing and sys.stdin.isatty() and not quiet and Confirm.ask(question):
        return download_with_bar(task)
    if not task.local or quiet or tasks.is_made(task, cache_folder() / task.file):
        return tasks.find(task)
    with counting(f"making {task.name}", task.transitions) as advance:
        return tasks.find(task, advance)


def load_noting(run: Run, step: int | str | None = None) -> tuple[Spec, Checkpoint]:
    """A run's spec and checkpoint, with a note about each damaged checkpoint after it."""
    try:
        spec, found = load(run, step)
    except NoCheckpointError as error:
        if error.kind == "fqe":
            raise UserError(f"{error} (edp eval {run.folder} --offline)") from None
        raise
    for damaged in found.damaged:
        note(f"{damaged}; that of step {found.step:,} is used")
    return spec, found
