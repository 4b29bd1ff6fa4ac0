"""The tasks: their data files, their environments, and what scores mean.

To add a task, add an entry to one of the functions below that list them.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edp.data.environments import plain_environment
from edp.data.log import Log
from edp.data.published_files import FILES
from edp.errors import printable, unknown


@dataclass(frozen=True)
class Task:
    name: str
    env: str
    domain: str
    episode_limit: int  # the length at which episodes of the file were cut off, if the file has no timeouts
    min_return: float  # the return with score 0
    max_return: float  # the return with score 100
    file: str  # below one of the data folders
    dims: tuple[int, int] = (0, 0)  # the sizes of observations and actions; (0, 0) for the user's own data
    url: str = ""  # where D4RL publishes the file, below SERVER
    size: int | None = None  # of the published file, in bytes
    sha256: str | None = None
    episode_return: str = "sum"  # how rewards of the file make an episode's return (see dataset.episode_returns)
    made_from: str = ""  # what a look-alike of the file is made from (see synthesis/lookalikes.py)
    behaviours: tuple[tuple[str, float], ...] = ()  # the actors and their shares, of a built-in set
    transitions: int = 0  # rows of the file (of D4RL's files: roughly)
    seed: int = 0
    steps: int | None = None  # training steps, if they differ from those of the domain
    env_options: str = "{}"  # options of the environment of the user's own data, as JSON
    returns: tuple[float, float] | None = None  # of the worst and the best episode of the user's own data
    action_names: tuple[str, ...] = ()

    @property
    def settings(self) -> dict:
        """Return values of options that follow from the task."""
        low, high = self.returns or (self.min_return, self.max_return)
        scale = {"target_return": high, "return_scale": (high - low) or 1.0}
        return scale | ({"steps": self.steps} if self.steps else {})

    @property
    def local(self) -> bool:
        """Whether this is a built-in set, which is made on the user's machine."""
        return bool(self.behaviours)

    @property
    def own(self) -> bool:
        """Whether this is the user's own data and not a task of the table."""
        return self.domain == OWN

    @property
    def measure(self) -> str:
        """The name of what ``score`` returns."""
        return "return" if self.own and (self.min_return, self.max_return) == UNSCALED else "normalised score"

    def make_env(self, **options: Any) -> Any:
        from edp.envs.make import make_env

        return make_env(self.env, **json.loads(self.env_options), **options)

    def score(self, returns):
        """D4RL's normalised score."""
        return 100 * (returns - self.min_return) / (self.max_return - self.min_return)


OWN = "own"
UNSCALED = (0.0, 100.0)  # the range of returns for which the score equals the return


def own_task(name: str, log: Log, env: str) -> Task:
    """Make a task of the user's own data, with its environment, if it has one, and its reference returns."""
    from edp.data.formats import prefix_of
    from edp.envs.make import is_registered

    low, high = log.reference or UNSCALED
    own_env, options, _ = plain_environment(log.env, dict(log.env_options))
    own_env = own_env if own_env and is_registered(own_env) else ""  # other names could run any code
    return Task(
        name=printable(name if prefix_of(name) else Path(name).name),
        env=env or own_env,
        domain=OWN,
        episode_limit=0,
        min_return=low,
        max_return=high,
        file=name,
        env_options=json.dumps(options) if own_env and not env else "{}",
        action_names=log.action_names,
    )


def own_task_from_json(content: Any) -> Task:
    """Read a task that ``asdict`` wrote. An environment that could run any code is dropped, with its options."""
    tuples = ("returns", "action_names", "dims")
    several = {name: value and tuple(value) for name, value in content.items() if name in tuples}
    task = Task(**content | {"behaviours": ()} | several)
    texts = (task.name, task.env, task.domain, task.file, task.env_options, *task.action_names)
    numbers = (task.min_return, task.max_return, *(task.returns or ()), *task.dims)
    if not all(isinstance(text, str) for text in texts) or not all(type(number) in (int, float) for number in numbers):
        raise TypeError("own_task")
    if task.domain != OWN or task.name in TASKS or not isinstance(json.loads(task.env_options), dict):
        raise TypeError("own_task")
    from edp.envs.make import is_registered

    env, options, _ = plain_environment(task.env, json.loads(task.env_options))
    return replace(task, env=env if env and is_registered(env) else "", env_options=json.dumps(options))


SERVER = "http://rail.eecs.berkeley.edu/datasets/offline_rl/"
REFERENCE = {"halfcheetah": (-280.178953, 12135.0), "hopper": (-20.272305, 3234.3), "walker2d": (1.629008, 4592.3)}
DIMS = {"halfcheetah": (17, 6), "hopper": (11, 3), "walker2d": (17, 6)}


def locomotion(body: str) -> dict:
    low, high = REFERENCE[body]
    scores = {"min_return": low, "max_return": high}
    return {"env": f"edp/{body}-d4rl-v2", "domain": "locomotion", "episode_limit": 1000, "dims": DIMS[body], **scores}


def published(name: str, url: str, **options) -> Task:
    """Make a task whose file D4RL publishes. On disk the file has the name that D4RL gives its downloads."""
    size, digest = FILES.get(url, (None, None))
    return Task(name, file=url.rpartition("/")[2], url=url, size=size, sha256=digest, **options)


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
    """Rewards of the files mark steps at the goal; the return says whether the goal was reached."""
    files = {"umaze": "u-maze", "medium": "big-maze", "large": "hardest-maze"}
    kinds = {"umaze": ("", "-diverse"), "medium": ("-play", "-diverse"), "large": ("-play", "-diverse")}
    return [
        published(
            f"antmaze-{maze}{kind}-v0",
            f"ant_maze_new/Ant_maze_{file}_noisy_multistart_{bool(kind)}_multigoal_{kind == '-diverse'}_sparse.hdf5",
            env=f"edp/antmaze-{maze}-d4rl-v0",
            domain="antmaze",
            dims=(29, 8),
            episode_limit=700 if maze == "umaze" else 1000,
            min_return=0.0,
            max_return=1.0,
            episode_return="reached",
            made_from="walkers",
            transitions=1_000_000,
        )
        for maze, file in files.items()
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
            dims=(45, 24),
            **(cloned if "cloned" in name else {"episode_limit": 200}),
            **scores,
        )
        for name, url in files.items()
    ]


def kitchen_tasks() -> list[Task]:
    """Rewards of the files count the tasks that are done at that moment; the return is the largest count."""
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
            dims=(60, 9),
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


def all_tasks() -> dict[str, Task]:
    groups = locomotion_tasks, antmaze_tasks, adroit_tasks, kitchen_tasks, local_tasks
    return {task.name: task for group in groups for task in group()}


TASKS = all_tasks()


def get_task(name: str) -> Task:
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]
