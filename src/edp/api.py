"""The whole of it from Python: data of one's own in, a trained policy out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edp.acting.policy import LoadedPolicy, load_policy
from edp.config.choice import build, choose
from edp.data import formats, locate, tasks
from edp.data.dataset import fingerprint
from edp.data.log import Log
from edp.runs.directory import Run
from edp.training.loop import Experiment


def open_log(data: str | Path, columns: Mapping[str, Any] | None = None) -> Log:
    """A file, a folder of tables or ``minari:NAME``. ``columns`` says what those of a table mean (see ``Columns``)."""
    return formats.open_log(str(data), columns or {})


def write(log: Log, to: str | Path) -> str:
    """Write a log in the format that the name says (``.hdf5``, ``.npz``, ``.csv``, ``.parquet`` or ``minari:NAME``)."""
    return formats.write_log(str(to), log)


def fit(
    data: Log | str | Path,
    out: str | Path,
    *,
    algo: str | None = None,
    policy: str | None = None,
    preset: str | None = None,
    env: str = "",
    columns: Mapping[str, Any] | None = None,
    on_event: Callable[[Any], None] = lambda event: None,
    **options: Any,
) -> LoadedPolicy:
    """Train as ``edp train`` does, with its options by their names (``steps=10_000``), and load the policy.

    ``data`` is a log, a place as for ``open_log``, or the name of a task. What happens is told to ``on_event``.
    """
    choice, meaning = choose(algo, policy, preset, options), dict(columns or {})
    Run.check_free(Path(out))
    if isinstance(data, str | Path) and str(data) in tasks.TASKS:
        task = tasks.get(str(data))
        place = str(locate.find_task_file(task))
        log = formats.open_log(place, episode_limit=task.episode_limit)
    else:
        log = data if isinstance(data, Log) else open_log(data, meaning)
        place = "" if isinstance(data, Log) else str(data)
        task = tasks.own_task(place or log.name, log, env)
    built = build(choice, task, log)
    experiment = Experiment(built.spec, built.dataset)
    about = {
        "file": formats.absolute(place) if place else "",
        "columns": meaning,
        "data_sha256": fingerprint(built.dataset),
        "regenerated": bool(built.dataset.regenerated),
        "command": [],
        "origins": built.origins,
    }
    with Run(Path(out)).claimed():
        folder = Run.create(Path(out), built.spec.to_json() | about)
        for event in experiment.run(folder):
            on_event(event)
    return load_policy(out)
