"""Find or download data files and load checkpoints, with progress bars, questions and notes."""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.prompt import Confirm

from edp.cli.progress import counting, note
from edp.config.spec import Spec
from edp.data import locate
from edp.data.tasks import Task
from edp.errors import UserError
from edp.files import cache_folder
from edp.runs.checkpoints import Checkpoint
from edp.runs.directory import Run
from edp.runs.load import NoCheckpointError, load_checkpoint


def download_with_bar(task: Task) -> Path:
    """Download the file of a task, with a bar of the bytes, and say what was downloaded."""
    console = Console(stderr=True)
    columns = TextColumn(task.file), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task(task.file, total=None)
        path = locate.download_task(task, lambda done, total: bar.update(shown, completed=done, total=total or None))
    note(locate.describe_download(path))
    return path


def find_file(task: Task, quiet: bool = False) -> Path:
    """The file of a task. A missing one is offered for download at a terminal; a built-in one is made."""
    missing = not task.local and locate.file_on_disk(task) is None
    question = f"{task.name} is not here. Download {task.file} to {locate.download_path(task).parent}?"
    if missing and sys.stdin.isatty() and not quiet and Confirm.ask(question):
        return download_with_bar(task)
    if not task.local or quiet or locate.is_made(task, cache_folder() / task.file):
        try:
            return locate.find_task_file(task)
        except locate.MissingDataError as error:
            advice = f"edp data get {task.name} downloads it, edp data make {task.name} makes a look-alike"
            raise UserError(f"{error}: {advice}, or give --data FILE") from None
    with counting(f"making {task.name}", task.transitions) as advance:
        return locate.find_task_file(task, advance)


def load_noting(run: Run, step: int | str | None = None) -> tuple[Spec, Checkpoint]:
    """A run's spec and checkpoint, with a note about each damaged checkpoint after it."""
    try:
        spec, found = load_checkpoint(run, step)
    except NoCheckpointError as error:
        if error.kind == "offline":
            raise UserError(f"{error} (edp eval {run.folder} --offline)") from None
        raise
    for text in run.odd_rows():
        note(text)
    for damaged in found.damaged:
        note(f"{damaged}; that of step {found.step:,} is used")
    return spec, found
