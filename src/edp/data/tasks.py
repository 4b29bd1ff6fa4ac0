"""The tasks: where their data is, where they are evaluated, and what scores mean there."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from edp.data.log import Log
from edp.errors import UserError, unknown
from edp.files import cache_folder


@dataclass(frozen=True)
class Task:
    name: str
    env: str
    domain: str
    episode_limit: int  # steps after which an episode of the file is over, where the file does not say
    min_return: float  # scores are 0 here …
    max_return: float  # … and 100 here
    file: str  # below one of the data folders
    url: str = ""  # where D4RL publishes it, below SERVER
    sha256: str | None = None
    episode_return: str = "sum"  # how a recorded episode's rewards make the return that scores are about (see d4rl.py)
    made_from: str = ""  # what a look-alike of its file is made from: see lookalikes.py
    behaviours: tuple[tuple[str, float], ...] = ()  # of a built-in set: actors and shares
    transitions: int = 0  # rows of the file (of D4RL's: about)
    seed: int = 0
    steps: int | None = None  # to train, where the domain's number is not meant
    env_options: str = "{}"  # of an own data set's environment, as JSON
    returns: tuple[float, float] | None = None  # the worst and the best episode of an own data set
    action_names: tuple[str, ...] = ()

    @property
    def settings(self) -> dict:
        """Values of options that follow from the task."""
        low, high = self.returns or (self.min_return, self.max_return)
        scale = {"target_return": high, "return_scale": (high - low) or 1.0}
        return scale | ({"steps": self.steps} if self.steps else {})

    @property
    def local(self) -> bool:
        return bool(self.behaviours)

    @property
    def own(self) -> bool:
        """Somebody's own data, and not one of the tasks here."""
        return self.domain == OWN

    @property
    def measure(self) -> str:
        """What a score is."""
        return "return" if self.own and (self.min_return, self.max_return) == UNSCALED else "normalised score"

    def make_env(self, **options: Any) -> Any:
        from edp.envs.make import make_env

        return make_env(self.env, **json.loads(self.env_options), **options)

    def score(self, returns):
        """D4RL's normalised score."""
        return 100 * (returns - self.min_return) / (self.max_return - self.min_return)


OWN = "own"
UNSCALED = (0.0, 100.0)  # references with which a score is the return itself


def own(name: str, log: Log, env: str) -> Task:
    """The task that data of one's own is: its environment, if there is one, and what scores mean in it."""
    from edp.envs.make import is_registered

    low, high = log.reference or UNSCALED
    own_env = log.env if log.env and is_registered(log.env) else ""  # a file's word is not run as code
    options = {name: value for name, value in log.env_options.items() if name != "render_mode"}  # nobody looks on
    return Task(
        name=name if name.startswith("minari:") else Path(name).name,
        env=env or own_env,
        domain=OWN,
        episode_limit=0,
        min_return=low,
        max_return=high,
        file=name,
        env_options=json.dumps(options) if own_env and not env else "{}",
        action_names=log.action_names,
    )


def own_from_json(content: Any) -> Task:
    """As ``asdict`` wrote it. An environment that would import what its name says is not made on a file's word."""
    several = {name: value and tuple(value) for name, value in content.items() if name in ("returns", "action_names")}
    task = Task(**content | {"behaviours": ()} | several)
    texts = (task.name, task.env, task.domain, task.file, task.env_options, *task.action_names)
    numbers = (task.min_return, task.max_return, *(task.returns or ()))
    if not all(isinstance(text, str) for text in texts) or not all(type(number) in (int, float) for number in numbers):
        raise TypeError("own_task")
    if task.domain != OWN or task.name in TASKS or not isinstance(json.loads(task.env_options), dict):
        raise TypeError("own_task")
    from edp.envs.make import is_registered

    return task if not task.env or is_registered(task.env) else replace(task, env="")


SERVER = "http://rail.eecs.berkeley.edu/datasets/offline_rl/"
REFERENCE = {"halfcheetah": (-280.178953, 12135.0), "hopper": (-20.272305, 3234.3), "walker2d": (1.629008, 4592.3)}
SUMS = {
    "hopper-medium-replay-v2": "e121c5f7c9857a307baa9edc6a2c3b48e85fedb9ac316ecddd0f48ca7ef4e39b",
    "walker2d-medium-replay-v2": "e75de96a4f77acf7d4e0d6fdf0d7ccb177c26c44bb4388e4fd99f543ccfa18db",
    "kitchen-partial-v0": "57bfd9c5fe88a7cf702bbaf8b7cd800d30cd869e7f73416007238d26cd859800",
    "kitchen-mixed-v0": "a30382a50278fdaea2e2d88e5f2836a95bcf9b581d252617872fd6537302721b",
}


def locomotion(body: str) -> dict:
    low, high = REFERENCE[body]
    scores = {"min_return": low, "max_return": high}
    return {"env": f"edp/{body}-d4rl-v2", "domain": "locomotion", "episode_limit": 1000, **scores}


def published(name: str, url: str, **options) -> Task:
    """A task whose file D4RL publishes; on disk it has the name that D4RL's own downloads have."""
    return Task(name, file=url.rpartition("/")[2], url=url, sha256=SUMS.get(name), **options)


def locomotion_tasks() -> list[Task]:
    replayed = {"halfcheetah": 202_000, "hopper": 402_000, "walker2d": 302_000}
    return [
        published(
            f"{body}-{kind}-v2",
            f"gym_mujoco_v2/{body}_{kind.replace('-', '_')}-v2.hdf5",
            made_from="policies",
            transitions=rows,
            **locomotion(body),
        )
        for body in REFERENCE
        for kind, rows in (
            ("medium", 1_000_000),
            ("medium-replay", replayed[body]),
            ("medium-expert", 2_000_000),
        )
    ]


def antmaze_tasks() -> list[Task]:
    """Rewards of the files mark steps at the goal; what counts is whether it was reached."""
    files = {"umaze": ("u-maze", False), "medium": ("big-maze", True), "large": ("hardest-maze", True)}
    kinds = {"umaze": ("", "-diverse"), "medium": ("-play", "-diverse"), "large": ("-play", "-diverse")}
    return [
        published(
            f"antmaze-{maze}{kind}-v0",
            f"ant_maze_new/Ant_maze_{file}_noisy_multistart_{starts}_multigoal_{kind == '-diverse'}_sparse.hdf5",
            env=f"edp/antmaze-{maze}-d4rl-v0",
            domain="antmaze",
            episode_limit=700 if maze == "umaze" else 1000,
            min_return=0.0,
            max_return=1.0,
            episode_return="reached",
            made_from="walkers",
            transitions=1_000_000,
        )
        for maze, (file, starts) in files.items()
        for kind in kinds[maze]
    ]


def adroit_tasks() -> list[Task]:
    files = {
        "pen-human-v0": "hand_dapg/pen-v0_demos_clipped.hdf5",
        "pen-cloned-v0": "hand_dapg/pen-demos-v0-bc-combined.hdf5",
        "pen-human-v1": "hand_dapg_v1/pen-human-v1.hdf5",
        "pen-cloned-v1": "hand_dapg_v1/pen-cloned-v1.hdf5",
    }
    scores = {"min_return": 96.262799, "max_return": 3076.8331017826877}
    cloned = {"episode_limit": 100, "made_from": "policies", "transitions": 500_000}
    return [
        published(
            name,
            url,
            env="edp/pen-d4rl-v1",
            domain="adroit",
            **(cloned if "cloned" in name else {"episode_limit": 200}),
            **scores,
        )
        for name, url in files.items()
    ]


def kitchen_tasks() -> list[Task]:
    """Rewards of the files count the tasks that are done at that moment; what counts is how many were."""
    files = {
        "complete": "mini_kitchen_microwave_kettle_light_slider-v0.hdf5",
        "partial": "kitchen_microwave_kettle_light_slider-v0.hdf5",
        "mixed": "kitchen_microwave_kettle_bottomburner_light-v0.hdf5",
    }
    return [
        published(
            f"kitchen-{kind}-v0",
            f"kitchen/{file}",
            env=f"edp/kitchen-{kind}-d4rl-v0",
            domain="kitchen",
            episode_limit=280,
            min_return=0.0,
            max_return=4.0,
            episode_return="max",
            made_from="" if kind == "complete" else "logs",
        )
        for kind, file in files.items()
    ]


def local_tasks() -> list[Task]:
    return [
        Task(
            "local/hopper-medium-expert",
            file="local/hopper-medium-expert.hdf5",
            behaviours=(("hopper-medium", 0.5), ("hopper-expert", 0.5)),
            transitions=100_000,
            steps=100_000,
            **locomotion("hopper"),
        )
    ]


def build() -> dict[str, Task]:
    kinds = locomotion_tasks, antmaze_tasks, adroit_tasks, kitchen_tasks, local_tasks
    return {task.name: task for kind in kinds for task in kind()}


TASKS = build()


def get(name: str) -> Task:
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def data_folders() -> list[Path]:
    """Where data files are looked for: ``$EDP_DATA``, D4RL's own folder, and the cache."""
    own = [Path(os.environ["EDP_DATA"])] if "EDP_DATA" in os.environ else []
    return [*own, Path.home() / ".d4rl" / "datasets", cache_folder() / "d4rl"]


def download_path(task: Task) -> Path:
    """Where a download of the task's file belongs: in ``$EDP_DATA`` or the cache."""
    folder = Path(os.environ["EDP_DATA"]) if "EDP_DATA" in os.environ else cache_folder() / "d4rl"
    return folder / task.file


def download(task: Task, on_progress: Callable[[int, int], None] = lambda done, total: None) -> Path:
    from edp.data.download import fetch

    path = download_path(task)
    fetch(os.environ.get("EDP_SERVER", SERVER) + task.url, path, task.sha256, on_progress)
    return path


def find(task: Task, on_progress: Callable[[int], None] = lambda _: None) -> Path:
    """The task's data file; a built-in set is made the first time."""
    if task.local:
        path = cache_folder() / task.file
        if not is_made(task, path):
            make_local(task, path, on_progress)
        return path
    path = on_disk(task) or regenerated(task)
    if path is None:
        places = " or ".join(str(folder) for folder in data_folders())
        raise UserError(
            f"{task.name}: {task.file} is not in {places}: edp data get {task.name} downloads it, "
            f"edp data make {task.name} makes a look-alike, or give --data FILE"
        )
    return path


def on_disk(task: Task) -> Path | None:
    """The task's file, if it is in one of the data folders."""
    folders = [cache_folder()] if task.local else data_folders()
    return next((folder / task.file for folder in folders if (folder / task.file).exists()), None)


def look_alike_path(task: Task) -> Path:
    """Where a look-alike of the task's file belongs: apart from the files that D4RL published."""
    return cache_folder() / "regenerated" / f"{task.name}.hdf5"


def regenerated(task: Task) -> Path | None:
    """The look-alike of the task's file, if there is one."""
    path = look_alike_path(task)
    return path if path.exists() else None


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
    from edp.data.synthesis import behaviours

    actors = [sha256(behaviours.path(name).read_bytes()).hexdigest() for name, _ in task.behaviours]
    return json.dumps([task.env, task.behaviours, task.transitions, task.seed, actors])


def make_local(task: Task, path: Path, on_progress: Callable[[int], None] = lambda _: None) -> None:
    from edp.data.synthesis import behaviours
    from edp.data.synthesis.make import Behaviour, Style, make

    actors = [Behaviour(name, behaviours.built_in(name), share) for name, share in task.behaviours]
    about = {"recipe": recipe(task)}
    style = Style(parallel=16, narrow=False)  # as ever: another one would make other rows
    make(path, task.env, actors, task.transitions, task.seed, on_progress, about, style=style)
