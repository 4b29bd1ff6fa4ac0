"""The plan of a sweep: a TOML file, or a mapping with the same content, checked before anything runs."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from edp.data import formats, tasks
from edp.data.checks import check_exists
from edp.data.formats.columns import OPTIONS as COLUMN_OPTIONS
from edp.data.formats.columns import given_columns
from edp.data.locate import MissingDataError
from edp.errors import UserError, counted, first_line, unknown
from edp.options import LARGEST, check_options, option
from edp.runs.rows import Row
from edp.runs.sweep import METRICS
from edp.sweeps.space import MOST_TRIALS, NAMES, TEXTS, Range, Space, Values, read_space, read_values
from edp.training.prepare import Source, check_data
from edp.training.request import Request

METHODS = ("grid", "random", "optuna")
HELD_OUT = ("bc_loss", "offline")  # metrics that are measured when the run validates
TABLES = ("train", "space", "search", "stopping", "resources")
FEWEST_CORES, MOST_CORES = 0.01, 10_000.0  # of a trial
CHECKED = 200  # trials whose options are all resolved before the first one runs


@dataclass(frozen=True)
class SearchOptions:
    method: str = option("grid", f"how trials are chosen: {', '.join(METHODS)}")
    trials: int = option(0, "number of trials of random and optuna (a grid has its own)", low=0, high=MOST_TRIALS)
    seed: int = option(0, "seed of random and optuna", low=0)
    metric: str = option("score", f"what is compared: {', '.join(METRICS)} (of held-out data, and of the log)")
    confirm: int = option(1, "number of the best trials that are trained again with fresh seeds", low=0, high=100)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown("choice of `method`", self.method, METHODS)
        if self.metric not in METRICS:
            raise unknown("choice of `metric`", self.metric, METRICS)


@dataclass(frozen=True)
class StoppingOptions:
    """Asynchronous successive halving (ASHA, Li et al. 2020), off if ``first`` is 0."""

    first: int = option(0, "steps after which trials are compared for the first time (0: no early stopping)", low=0)
    factor: int = option(3, "one of so many trials goes on, and the steps to the next comparison grow by it", low=2)


@dataclass(frozen=True)
class ResourceOptions:
    cpus: float = option(
        0.0, "processor cores of a trial (0: one with Ray, and all in this process)", low=0.0, high=MOST_CORES
    )
    gpus: float = option(0.0, "GPUs of a trial; less than 1 if trials share one", low=0.0, high=MOST_CORES)

    def __post_init__(self) -> None:
        for name, number in (("cpus", self.cpus), ("gpus", self.gpus)):
            if 0 < number < FEWEST_CORES:
                raise UserError(f"`{name}` must be 0 or at least {FEWEST_CORES}, not {number:g}")


class Plan(NamedTuple):
    """What a sweep tries, and how."""

    train: Values  # the same for all trials
    spaces: tuple[Space, ...]  # trials belong to one of them
    search: SearchOptions
    stopping: StoppingOptions
    resources: ResourceOptions
    content: Row  # of the file

    def to_json(self) -> Row:
        parts = {"search": self.search, "stopping": self.stopping, "resources": self.resources}
        return {"train": self.train, "content": self.content} | {name: asdict(part) for name, part in parts.items()}

    @property
    def size(self) -> int:
        """The number of trials, without those that confirm the best."""
        if self.search.method == "grid":
            return sum(space.size for space in self.spaces)
        return self.search.trials

    @property
    def varied(self) -> list[str]:
        """The options that differ between trials."""
        names = [name for space in self.spaces for name in (*space.fixed, *space.dimensions)]
        single = {name for name in names if len(self.spaces) == 1 and name in self.spaces[0].fixed}
        return [name for name in dict.fromkeys(names) if name not in single]


def read_plan(source: Mapping[str, Any] | str | Path, where: str = "the plan") -> Plan:
    """Read a plan from a TOML file or a mapping."""
    if not isinstance(source, Mapping | str | Path):
        raise UserError(f"a plan is a TOML file or a mapping, not {type(source).__name__}")
    if not isinstance(source, Mapping):
        where, source = str(source), read_file(Path(source))
    content: Row = as_content(source, where)
    for name in content:
        if name not in TABLES:
            raise UserError(f"{where}: {unknown('table', str(name), TABLES)}")
    for name in ("train", "search", "stopping", "resources"):
        if not isinstance(content.get(name, {}), Mapping):
            raise UserError(f"{where}: {name} must be a table: [{name}]")
    given = content.get("space", {})
    tables = list(given) if isinstance(given, list | tuple) else [given]
    if not tables or not all(isinstance(table, Mapping) for table in tables):
        raise UserError(f"{where}: space must be a table, [space], or several, [[space]]")
    plan = Plan(
        read_values(content.get("train", {}), f"{where}: [train]"),
        tuple(read_space(table, f"{where}: [space]") for table in tables),
        read_options(SearchOptions, content.get("search", {}), f"{where}: [search]"),
        read_options(StoppingOptions, content.get("stopping", {}), f"{where}: [stopping]"),
        read_options(ResourceOptions, content.get("resources", {}), f"{where}: [resources]"),
        content,
    )
    check_plan(plan, where)
    return plan


def as_content(source: Any, where: str, name: str = "") -> Any:
    """The content of a plan as JSON keeps it, with paths that hold in every process: those of data and of columns."""
    source = source.tolist() if hasattr(source, "tolist") else str(source) if isinstance(source, Path) else source
    if isinstance(source, Mapping):
        return {str(key): as_content(value, f"{where}: {key}", str(key)) for key, value in source.items()}
    if isinstance(source, list | tuple):
        return [as_content(value, where, name) for value in source]
    if type(source) not in (str, bool, int, float):
        raise UserError(f"{where} must be text, a number, or true or false, not {source}")
    if isinstance(source, int) and abs(source) > LARGEST:
        raise UserError(f"{where} is too large: whole numbers end at {LARGEST}")
    if not isinstance(source, str) or name not in ("task", "data", "columns"):
        return source
    if name == "task" and (source in tasks.TASKS or not formats.is_source(source)):
        return source
    return str(Path(source).absolute()) if name == "columns" else formats.absolute(source)


def read_file(path: Path) -> Row:
    check_exists(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a TOML file ({first_line(error)})") from None


def read_options(cls: Any, given: Mapping[str, Any], where: str) -> Any:
    known = list(cls.__dataclass_fields__)
    for name in given:
        if name not in known:
            raise UserError(f"{where}: {unknown('entry', str(name), known)}")
    try:
        return check_options(cls(**given))
    except UserError as error:
        raise UserError(f"{where}: {str(error).replace('`', '')}") from None  # these are no options of the command


def check_plan(plan: Plan, where: str) -> None:
    """Refuse plans that cannot be carried out, before anything runs."""
    for space in plan.spaces:
        if "task" not in plan.train | space.fixed and "task" not in space.dimensions:
            raise UserError(f"{where}: which task or data? Give task in [train] or in [space]")
        ranges = [name for name, each in space.dimensions.items() if isinstance(each, Range) and not each.number]
        if plan.search.method == "grid" and ranges:
            raise UserError(
                f'{where}: {ranges[0]} is a range, which a grid needs `points` of; or use method = "random"'
            )
    if plan.search.method == "grid" and plan.search.trials:
        raise UserError(f"{where}: a grid has {counted(plan.size, 'trial')}: leave trials out of [search]")
    if plan.search.method != "grid" and not plan.search.trials:
        raise UserError(f"{where}: how many trials? Give trials in [search]")
    if "factor" in plan.content.get("stopping", {}) and not plan.stopping.first:
        raise UserError(f"{where}: [stopping] has a factor and no first: after how many steps are trials compared?")
    most = sum(space.most_trials for space in plan.spaces)
    if plan.search.method != "grid" and plan.size > most:
        raise UserError(f'{where}: the space has {most:.0f} different trials: ask for fewer, or use method = "grid"')
    if not 1 <= plan.size <= MOST_TRIALS:
        raise UserError(
            f"{where}: the grid has {plan.size:,} points, and {MOST_TRIALS:,} are the most: "
            'use method = "random" with a number of trials'
        )
    if plan.search.method == "optuna":
        check_optuna()


def check_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise UserError('Optuna is not installed: pip install "edp-rl[sweep]", or use method = "random"') from None


def check_trials(plan: Plan, trials: list[Values], where: str) -> list[str]:
    """Resolve the options of trials, so that mistakes show before the first one runs.

    Returns a sentence about each task whose data is not on this machine.
    """
    missing: dict[tuple[str, str], str] = {}  # by task and file
    for values in trials[:CHECKED]:
        try:
            source, settings = as_request(plan.train | values).resolve()
            if (place := (source.task.name, source.place)) not in missing:
                missing[place] = missing_data(source)
        except UserError as error:
            raise UserError(f"{where}: {describe(values)}: {error}" if values else f"{where}: {error}") from None
        has_environment, held_out = bool(source.task.env), settings.values["validation"].value
        if plan.search.metric == "score" and not has_environment:
            raise UserError(
                f"{where}: {source.task.name} has no environment, and so no score: "
                'use metric = "bc_loss" or "offline" in [search]'
            )
        if plan.search.metric in HELD_OUT and not held_out:
            raise UserError(
                f'{where}: metric = "{plan.search.metric}" needs held-out episodes: give validation in [train]'
            )
        steps, every = settings.values["steps"].value, settings.values["eval_every"].value
        if plan.stopping.first and not plan.stopping.first < steps:
            raise UserError(f"{where}: [stopping] first = {plan.stopping.first} must be below steps ({steps})")
        if plan.stopping.first and every > plan.stopping.first:
            raise UserError(
                f"{where}: eval_every ({every}) must be at most [stopping] first ({plan.stopping.first}): "
                "trials are compared by evaluations"
            )
    return [text for text in missing.values() if text]


def missing_data(source: Source) -> str:
    """Why a task cannot be trained on this machine, or nothing. A file that the plan names must be there."""
    try:
        check_data(source)
    except MissingDataError as error:
        return f"{error} (edp data get downloads it, edp data make makes a look-alike)"
    return ""


def as_request(values: Values) -> Request:
    """The run that a trial trains."""
    names = {name: values[name] for name in (*NAMES, "env", "columns") if name in values}
    meaning = {name: value for name, value in values.items() if name in COLUMN_OPTIONS}
    if meaning:
        given = given_columns(names.get("columns"))
        names["columns"] = given.ranges | given.meaning | meaning
    options = {name: value for name, value in values.items() if name not in (*TEXTS, *COLUMN_OPTIONS)}
    return Request(values["task"], **names, file=values.get("data", ""), options=options)


def describe(values: Values) -> str:
    """The values of a trial in one line."""
    return ", ".join(f"{name} {show_value(value)}" for name, value in values.items())


def show_value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) and math.isfinite(value) else str(value)
