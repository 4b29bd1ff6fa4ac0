"""From what the user asked for to a run that is ready to train, for the command line and for Python.

``open_source`` finds the task or opens the user's data, ``resolve_settings`` decides every option, and ``start_run`` or
``resume_run`` read the data, make the experiment and claim the run directory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from edp.acting.reference import add_reference, keep_reference, learned_rows, observed_ranges
from edp.config.choice import Choice
from edp.config.defaults import DATA_ORIGINS, FEW_ROWS_ORIGIN, SMOOTH_ORIGIN, SPARSE_ORIGIN, USER, Settings
from edp.config.sizes import check_sizes
from edp.config.spec import Spec, check_together
from edp.data import findings, formats, locate, tasks, units
from edp.data.dataset import Dataset, fingerprint, read_dataset
from edp.data.error_values import find_repeated
from edp.data.log import Log
from edp.data.signals import name_signals
from edp.data.smoothness import noise_share, reward_changes
from edp.data.tasks import Task
from edp.devices import processes
from edp.envs.make import action_range, import_env
from edp.errors import UserError, counted
from edp.options import check_options
from edp.runs.directory import RemoteRun, Run
from edp.runs.load import check_config, locate_run_data, read_run_data, read_spec, with_environment
from edp.runs.logs import Lost, find_lost_rows
from edp.runs.provenance import device_name, provenance
from edp.training.loop import Experiment

ROWS_CHECKED = 100_000  # rows in which observations that do not change are looked for


class Source(NamedTuple):
    """A task, and where its data is."""

    task: Task
    place: str = ""  # of the data; empty for a registered task whose file is not located yet, and for a log in memory
    log: Log | None = None  # already opened
    columns: Mapping[str, Any] = {}  # the meaning of a table's columns
    origins: Mapping[str, str] = {}  # of entries of ``columns`` that come from a file: its name

    @property
    def column_origins(self) -> dict[str, str]:
        return {name: self.origins.get(name, USER) for name in self.columns}


class Ready(NamedTuple):
    """A run that is ready to train, in a directory that this process has claimed."""

    experiment: Experiment
    dataset: Dataset
    place: str
    run: Run
    notes: tuple[str, ...]  # what the user should know before training


def open_source(source: Any, *, data: str = "", columns: Mapping[str, Any] | None = None, env: str = "") -> Source:
    """A registered task by its name, or the user's data: a place, an open log, or a table in memory.

    ``data`` is a place from which to read a registered task's data, and ``env`` the environment of the user's data.
    """
    columns = dict(columns or {})
    named = isinstance(source, str | Path)
    name = str(source) if named else ""
    own = not named or (name not in tasks.TASKS and formats.is_source(name))
    if own and data:
        raise UserError(f"`data` is for tasks, and {name or 'a log'} is already data")
    if columns and isinstance(source, Log):
        raise UserError(f"{source.name}: `columns` is for tables, and this is a log: give it when the log is opened")
    if env and not own:
        raise UserError(f"`env` is for your own data, and {name} has an environment")
    if not own:
        return Source(tasks.get_task(name), data, None, columns)
    import_env(env)
    if isinstance(source, Log):
        log = source
    else:
        log = formats.open_log(name, columns) if named else formats.open_frame(source, columns)
    return Source(tasks.own_task(name or log.name, log, env), name, log, columns)


def check_data(source: Source) -> None:
    """Refuse a source whose data is not here. A built-in set is made when it is used."""
    if source.log is None and source.place:
        formats.open_log(source.place, source.columns, source.task.episode_limit)
    elif source.log is None and not source.task.local:
        locate.find_task_file(source.task)


def resolve_settings(choice: Choice, task: Task) -> Settings:
    """Decide the value of every option, and refuse options that contradict each other."""
    settings = choice.resolve(task)
    algorithm, policy, data, training, evaluation = settings.parts
    check_sizes(algorithm, policy, training, evaluation)
    check_together(algorithm, policy, data, evaluation)
    return settings


@contextmanager
def start_run(
    source: Source,
    settings: Settings,
    out: Path,
    *,
    command: Sequence[str] = (),
    find_file: Callable[[Task], Path] = locate.find_task_file,
    data_sha256: str = "",
) -> Iterator[Ready]:
    """Read the data, make the experiment, and create the run directory. ``find_file`` finds the file of a task.

    Data with another hash than ``data_sha256``, if that is given, is refused.
    """
    Run.check_free(out)
    place = source.place or ("" if source.log else str(find_file(source.task)))
    log = source.log or formats.open_log(place, source.columns, source.task.episode_limit)
    spec, dataset, settings = read_data(source.task, settings, log)
    place = formats.absolute(place) if place else ""
    plan = make_plan(spec, place, source.columns, fingerprint(dataset))
    if data_sha256 and plan["data_sha256"] != data_sha256:
        raise UserError(f"{place or log.name}: has changed since the other trials were trained on it")
    processes.exchange(plan)
    experiment = Experiment(spec, dataset)
    about = {
        "file": plan["file"],
        "columns": plan["columns"],
        "data_sha256": plan["data_sha256"],
        "regenerated": bool(dataset.regenerated),
        "command": list(command),
        "device": device_name(),
        "origins": settings.origins | source.column_origins,
    }
    run = Run(out)
    with run.claimed():
        run.start(spec.to_json() | about)
        keep_reference(run.folder, spec, dataset)
        notes = *data_notes(spec, dataset, log), *recipe_notes(settings, dataset)
        yield Ready(experiment, dataset, place, run, notes)


@contextmanager
def resume_run(
    folder: Path,
    *,
    steps: int | None = None,
    data: str = "",
    log: Log | None = None,
    env: str = "",
    command: Sequence[str] = (),
    find_file: Callable[[Task], Path] = locate.find_task_file,
) -> Iterator[Ready]:
    """Continue a run after its last good checkpoint, as if it had not stopped.

    ``steps`` is a new total, ``data`` the new place of the data, ``log`` the data itself if it is not in a file, and
    ``env`` an environment of the user's code.
    """
    run = Run.open(folder)
    done = run.status
    with run.claimed():
        config, spec = run.config, read_spec(run)
        check_config(run, spec)
        if steps is not None:
            spec = with_steps(spec, steps)
        spec = with_environment(spec.check(), env, run)
        finished = done["state"] == "finished" and done["step"] >= spec.training.steps
        lost = find_lost_rows(run) if finished else Lost()
        if finished and lost.step is None:
            missing = "".join(f"; {note}, and cannot be made again" for note in lost.notes)
            raise UserError(
                f"{run.folder}: finished after {counted(done['step'], 'step')}; give more of them with `steps`{missing}"
            )
        place = "" if log else formats.absolute(data or locate_run_data(run, spec, find_file))
        dataset = read_run_data(run, spec, place, log)
        plan = make_plan(spec, place, config.get("columns") or {}, fingerprint(dataset))
        processes.exchange(plan | {"resumes": True})
        experiment = Experiment(spec, dataset)
        here = provenance() | {"device": device_name()}
        differs = [name for name in here if name != "commit" and here[name] != config.get(name)]
        resumed = experiment.resume(run)
        before = config.get("resumed")
        history = [
            *(before if isinstance(before, list) else []),
            {"step": resumed.step, "command": [*command], **here},
        ]
        run.set_config(config | spec.to_json() | {"data_sha256": plan["data_sha256"], "resumed": history})
        keep_reference(run.folder, spec, dataset)
        notes = list(resumed.notes)
        if differs:
            changed = " and ".join(differs)
            notes.append(f"{changed} changed since the run began: the numbers may differ in their last digits")
        yield Ready(experiment, dataset, place, run, tuple(notes))


def with_steps(spec: Spec, steps: int) -> Spec:
    """The spec with another number of steps. A decay of the learning rate over the whole run follows it."""
    algorithm: Any = spec.algorithm
    if algorithm.lr_decay == spec.training.steps:
        algorithm = check_options(replace(algorithm, lr_decay=steps))
    return replace(spec, algorithm=algorithm, training=check_options(replace(spec.training, steps=steps)))


def follow() -> tuple[Experiment, Run]:
    """The experiment of a process that does not lead. It trains its seeds; the leading process writes the run."""
    plan = processes.exchange()[0]
    run = RemoteRun(plan)
    import_env(plan["env"])
    spec = Spec.from_json(plan["spec"], run.folder)
    spec = replace(spec, task=replace(spec.task, env=plan["env"]))
    experiment = Experiment(spec, read_run_data(run, spec, plan["file"]))
    if plan["resumes"]:
        experiment.resume(run)
    return experiment, run


def make_plan(spec: Spec, place: str, columns: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """What the other processes need to make the same experiment (see ``follow``)."""
    config = {"spec": spec.to_json(), "env": spec.task.env, "file": place, "columns": dict(columns)}
    return config | {"data_sha256": digest, "resumes": False}


def read_data(task: Task, settings: Settings, log: Log) -> tuple[Spec, Dataset, Settings]:
    """Read a log, in the units of the run. Options whose default depends on the data are set here, and returned."""
    _, _, options, _, _ = settings.parts
    log = replace(log, limit=options.episode_limit)
    dataset = read_dataset(log, task.episode_return, on_disk=options.block > 0)
    if task.own and len(dataset.returns):
        task = replace(task, returns=(float(dataset.returns.min()), float(dataset.returns.max())))
        settings = settings.with_defaults(task.settings, "task")
    if settings.uses_recipe:
        settings = settings.for_data(len(dataset.reward), noise_share(dataset), reward_changes(dataset))
    low, high = usual_action_range(task, log)
    run_units = units.fit_units(
        dataset, options.normalise, options.action_low or low, options.action_high or high, log.name
    )
    algorithm, policy, options, training, evaluation = settings.parts
    signals = name_signals(log.observation_names, log.action_names, log.encoding, run_units.dims)
    low, high = observed_ranges(dataset.obs, learned_rows(options, dataset))
    signals = replace(signals, low=low, high=high)
    spec = Spec(task, algorithm, policy, options, training, evaluation, run_units, signals).check()
    dataset = run_units.convert_dataset(dataset, log)
    return add_reference(spec, dataset), dataset, settings


def usual_action_range(task: Task, log: Log) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The range of actions if the user gives none: D4RL's, the environment's, or the log's."""
    if not task.own:
        return (-1.0,), (1.0,)
    if task.env:
        env = task.make_env()
        try:
            low, high = action_range(env)
        finally:
            env.close()
        if low:
            return low, high
    return log.low, log.high


def data_notes(spec: Spec, dataset: Dataset, log: Log) -> tuple[str, ...]:
    """Possible mistakes in the user's data that do not prevent training."""
    reward = dataset.reward
    notes = data_warnings(spec, dataset, log) if spec.task.own else []
    if spec.task.own and reward.min() == reward.max() and spec.names[0] != "bc":
        text = f"every reward is {reward[0]:g}: nothing tells good actions from bad ones (`algo=bc` learns to imitate)"
        notes.append(text)
    obs = dataset.obs[:ROWS_CHECKED]
    still = (obs.max(axis=0) - obs.min(axis=0) < 1e-3).sum()
    if spec.task.own and still and spec.data.normalise != "none":
        notes.append(f"{counted(still, 'observation')} with hardly any change, which the policy can learn nothing from")
    return tuple(notes)


def data_warnings(spec: Spec, dataset: Dataset, log: Log) -> list[str]:
    """The warnings of ``edp data check`` that cost little, once the data is read."""
    rows, every = len(dataset.reward), 1 + len(dataset.reward) // ROWS_CHECKED
    observed = spec.units.observations_from_network(dataset.obs[::every])
    found = [
        *log.findings(),
        *find_repeated(spec.signals.observations if spec.signals else (), observed).values(),
        *findings.find_few(rows, int(dataset.episode[-1]) + 1, len(dataset.returns)),
        *findings.find_duplicates(observed, dataset.action[::every], every),
    ]
    return [f"{each.what} ({each.effect})" for each in found if each.level == "warning"]


def recipe_notes(settings: Settings, dataset: Dataset) -> tuple[str, ...]:
    """Which options have other values than usual because of the data, and why."""
    reasons = {
        FEW_ROWS_ORIGIN: f"the data has {counted(len(dataset.reward), 'row')}, which is few",
        SMOOTH_ORIGIN: "each action follows closely from the one before it, as in demonstrations",
        SPARSE_ORIGIN: "rewards are sparse: most are equal to the one before",
    }
    notes = []
    for origin in DATA_ORIGINS:
        changed = [f"`{name}={item.value}`" for name, item in settings.values.items() if item.origin == origin]
        if changed:
            notes.append(f"{reasons[origin]}: the recipe sets {', '.join(changed)}")
    return tuple(notes)
