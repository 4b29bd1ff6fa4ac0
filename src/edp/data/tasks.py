"""The tasks: where their data is, where they are evaluated, and what scores mean there."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from edp.errors import UserError, unknown


@dataclass(frozen=True)
class Task:
    name: str
    env: str
    domain: str
    episode_limit: int
    min_return: float  # scores are 0 here …
    max_return: float  # … and 100 here
    file: str  # below one of the data folders
    behaviours: tuple[tuple[str, float], ...] = ()  # of a built-in set: actors and shares
    transitions: int = 0
    seed: int = 0
    steps: int | None = None  # to train, where the domain's number is not meant

    @property
    def settings(self) -> dict:
        """Values of options that follow from the task."""
        scale = {"target_return": self.max_return, "return_scale": self.max_return - self.min_return}
        return scale | ({"steps": self.steps} if self.steps else {})

    @property
    def local(self) -> bool:
        return bool(self.behaviours)

    def score(self, returns):
        """D4RL's normalised score."""
        return 100 * (returns - self.min_return) / (self.max_return - self.min_return)


REFERENCE = {"halfcheetah": (-280.178953, 12135.0), "hopper": (-20.272305, 3234.3), "walker2d": (1.629008, 4592.3)}


def locomotion(body: str, **options) -> dict:
    low, high = REFERENCE[body]
    scores = {"min_return": low, "max_return": high}
    return {"env": f"edp/{body}-d4rl-v2", "domain": "locomotion", "episode_limit": 1000, **scores, **options}


def build() -> dict[str, Task]:
    tasks = [
        Task(f"{body}-{kind}-v2", file=f"{body}_{kind.replace('-', '_')}-v2.hdf5", **locomotion(body))
        for body in REFERENCE
        for kind in ("medium", "medium-replay", "medium-expert")
    ]
    halves = (("hopper-medium", 0.5), ("hopper-expert", 0.5))
    local = Task(
        "local/hopper-medium-expert",
        file="local/hopper-medium-expert.hdf5",
        **locomotion("hopper", behaviours=halves, transitions=100_000, steps=100_000),
    )
    return {task.name: task for task in [*tasks, local]}


TASKS = build()


def get(name: str) -> Task:
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def cache_folder() -> Path:
    """Where built-in sets are kept: ``$EDP_CACHE``, or ``edp`` in the user's cache folder."""
    if "EDP_CACHE" in os.environ:
        return Path(os.environ["EDP_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edp"


def data_folders() -> list[Path]:
    """Where data files are looked for: ``$EDP_DATA`` first, then D4RL's own folder."""
    own = [Path(os.environ["EDP_DATA"])] if "EDP_DATA" in os.environ else []
    return [*own, Path.home() / ".d4rl" / "datasets"]


def find(task: Task, on_progress: Callable[[int], None] = lambda _: None) -> Path:
    """The task's data file; a built-in set is made the first time."""
    if task.local:
        path = cache_folder() / task.file
        if not is_made(task, path):
            make_local(task, path, on_progress)
        return path
    for folder in data_folders():
        if (folder / task.file).exists():
            return folder / task.file
    places = " or ".join(str(folder) for folder in data_folders())
    raise UserError(f"{task.name}: {task.file} is not in {places}: put it there, or give --data FILE")


def is_made(task: Task, path: Path) -> bool:
    """Whether the file is there and was made by the task's present recipe."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("recipe") == recipe(task)
    except OSError:
        return False


def recipe(task: Task) -> str:
    """All that decides what a built-in set holds: its entry here, and its actors."""
    from edp.data import behaviours

    actors = [sha256(behaviours.path(name).read_bytes()).hexdigest() for name, _ in task.behaviours]
    return json.dumps([task.env, task.behaviours, task.transitions, task.seed, actors])


def make_local(task: Task, path: Path, on_progress: Callable[[int], None] = lambda _: None) -> None:
    from edp.data import behaviours
    from edp.data.make import Behaviour, make

    actors = [Behaviour(name, behaviours.built_in(name), share) for name, share in task.behaviours]
    make(path, task.env, actors, task.transitions, task.seed, on_progress, {"recipe": recipe(task)})
