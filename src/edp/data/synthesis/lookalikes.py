"""Look-alikes of D4RL's files: made in the same way, from the same kind of behaviour, with other random numbers.

A look-alike is marked as regenerated, and kept apart from the files that D4RL published.
"""

from pathlib import Path
from typing import Any

from edp.data.formats.npz import read_npz
from edp.data.synthesis import behaviours, demonstrations
from edp.data.synthesis.jobs import Progress
from edp.data.synthesis.make import Behaviour, make_dataset, run_and_write
from edp.data.tasks import Task
from edp.errors import UserError

WALKER_NOISE = 0.2  # std of the noise that D4RL added to the ant's actions
NEEDED = {
    "policies": "one or more `policy=FILE[:SHARE]`, policies that act in {env}",
    "walkers": "`policy=FILE`, an ant that walks where it is told to",
    "logs": "`logs=FILE`, the teleoperated demonstrations",
}


def default_noise(task: Task) -> float:
    return WALKER_NOISE if task.made_from == "walkers" else 0.0


def make_look_alike(
    task: Task,
    path: Path,
    policies: list[tuple[Path, float]],
    logs: Path | None,
    transitions: int,
    noise: float,
    seed: int,
    processes: int | None,
    on_progress: Progress,
) -> None:
    check_sources(task, policies, logs)
    options: dict[str, Any] = {
        "attributes": {"regenerated": task.name},
        "processes": processes,
        "episode_return": task.episode_return,
        "on_progress": on_progress,
    }
    if logs is not None:
        run_and_write(
            path,
            task.env,
            [(logs.stem, demonstrations.replay_jobs(task.env, demonstrations.load_demonstrations(logs), seed))],
            seed,
            **options,
        )
        return
    actors = [Behaviour(file.stem, load_behaviour(task, file, seed), share, noise) for file, share in policies]
    make_dataset(path, task.env, actors, transitions, seed, **options)


def check_sources(task: Task, policies: list[tuple[Path, float]], logs: Path | None) -> None:
    """Refuse policies or logs from which this task's look-alike is not made."""
    if not task.made_from:
        raise UserError(f"{task.name} consists of human demonstrations, and cannot be made: download its file")
    if (logs is not None, bool(policies)) != (task.made_from == "logs", task.made_from != "logs"):
        raise UserError(f"{task.name} is made from {NEEDED[task.made_from].format(env=task.env)}{offered(task)}")


def offered(task: Task) -> str:
    """Name the built-in policies from which a look-alike could be made."""
    names = behaviours.built_in_names(task.env) if task.made_from == "policies" else []
    return f"; built-in ones: {' or '.join(f'`policy={name}`' for name in names)}" if names else ""


def load_behaviour(task: Task, file: Path, seed: int) -> behaviours.Actor:
    if task.made_from != "walkers":
        return behaviours.load_actor(file)
    from edp.data.synthesis.mazes import WaypointAnt

    _, maze, *kind = task.name.split("-")
    anywhere = " RG"
    starts = "R" if maze == "umaze" else anywhere
    targets = "G" if maze == "umaze" and "diverse" not in kind else anywhere
    return behaviours.build_actor(WaypointAnt, read_npz(file, "policy file")[0], file, maze, starts, targets, seed)


def count_rows(task: Task, logs: Path | None, transitions: int) -> int:
    """Return how many rows a look-alike will have."""
    return transitions if logs is None else sum(d.rows for d in demonstrations.load_demonstrations(logs))
