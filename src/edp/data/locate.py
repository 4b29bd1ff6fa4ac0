"""Where the data files of tasks are: published files, look-alikes, and built-in sets that are made when first used."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from edp.data.tasks import SERVER, Task
from edp.errors import UserError, printable
from edp.files import cache_folder, write_json


class MissingDataError(UserError):
    """The file of a task is in none of the data folders."""


def data_folders() -> list[Path]:
    """Return the folders in which published files are looked for: ``$EDP_DATA``, D4RL's folder and the cache."""
    chosen = [Path(os.environ["EDP_DATA"])] if "EDP_DATA" in os.environ else []
    return [*chosen, Path.home() / ".d4rl" / "datasets", cache_folder() / "d4rl"]


def find_task_file(task: Task, on_progress: Callable[[int], None] = lambda _: None) -> Path:
    """Return the task's data file. A built-in set is made first, unless it exists."""
    if task.local:
        path = cache_folder() / task.file
        if not is_made(task, path):
            make_built_in(task, path, on_progress)
        return path
    path = file_on_disk(task) or look_alike_on_disk(task)
    if path is None:
        places = " or ".join(str(folder) for folder in data_folders())
        raise MissingDataError(f"{task.name}: {task.file} is not in {places}")
    return path


def file_on_disk(task: Task) -> Path | None:
    """Return the task's file if it is in one of the data folders."""
    folders = [cache_folder()] if task.local else data_folders()
    return next((folder / task.file for folder in folders if (folder / task.file).exists()), None)


def download_path(task: Task) -> Path:
    """Return where a download of the task's file belongs: in ``$EDP_DATA`` or the cache."""
    folder = Path(os.environ["EDP_DATA"]) if "EDP_DATA" in os.environ else cache_folder() / "d4rl"
    return folder / task.file


def download_task(task: Task, on_progress: Callable[[int, int], None] = lambda done, total: None) -> Path:
    """Download a task's file, check that it holds the task's data, and record what was downloaded."""
    from edp.data.download import Published, fetch

    path, known = download_path(task), Published(task.sha256, task.size)
    url = os.environ.get("EDP_SERVER", SERVER) + task.url
    done = fetch(url, path, known, lambda part: check_task_file(task, part), on_progress)
    write_json(record_path(path), done._asdict())
    return path


def check_task_file(task: Task, path: Path) -> None:
    """Refuse a file that is not a whole HDF5 file with the arrays of a task, in their sizes."""
    from edp.data.formats.hdf5 import column_shapes, open_hdf5

    open_hdf5(path)
    for key, width in zip(("observations", "actions"), task.dims, strict=True):
        shape = column_shapes(path)[key]
        if len(shape) != 2 or shape[1] != width:
            raise UserError(f"{path}: {key} have shape {shape}, and those of {task.name} have {width} numbers in a row")


def record_path(path: Path) -> Path:
    """Return the file that says from where a data file was downloaded, its size and its SHA-256."""
    return path.with_name(path.name + ".json")


def describe_download(path: Path) -> str:
    """Say in one line what was downloaded to a path, or nothing if there is no record of it."""
    try:
        record = json.loads(record_path(path).read_text(encoding="utf-8"))
        url, size, digest = str(record["url"]), int(record["size"]), str(record["sha256"])
        known = "the published one" if record["published"] else "not compared: none is published"
        open_line = "" if record["authenticated"] else "; the connection was not authenticated (HTTP)"
        return printable(f"{size:,} bytes from {url}, SHA-256 {digest} ({known}){open_line}")
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def look_alike_path(task: Task) -> Path:
    """Return where a look-alike of the task's file belongs, apart from the files that D4RL published."""
    return cache_folder() / "regenerated" / f"{task.name}.hdf5"


def look_alike_on_disk(task: Task) -> Path | None:
    path = look_alike_path(task)
    return path if path.exists() else None


def is_made(task: Task, path: Path) -> bool:
    """Return whether a built-in set exists and was made by the present recipe."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("recipe") == recipe(task)
    except OSError:
        return False


def recipe(task: Task) -> str:
    """Describe everything that decides the content of a built-in set: the task's entry and its actors."""
    from edp.data.synthesis import behaviours

    actors = [sha256(behaviours.built_in_path(name).read_bytes()).hexdigest() for name, _ in task.behaviours]
    return json.dumps([task.env, task.behaviours, task.transitions, task.seed, actors])


def make_built_in(task: Task, path: Path, on_progress: Callable[[int], None] = lambda _: None) -> None:
    from edp.data.synthesis import behaviours
    from edp.data.synthesis.make import Behaviour, Style, make_dataset

    actors = [Behaviour(name, behaviours.load_built_in(name), share) for name, share in task.behaviours]
    about = {"recipe": recipe(task)}
    style = Style(parallel=16, narrow=False)  # never change this: the rows would differ
    make_dataset(path, task.env, actors, task.transitions, task.seed, on_progress, about, style=style)
