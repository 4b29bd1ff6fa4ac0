"""A run as it is asked for in Python and in a sweep: data, names, and options by name."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from edp.config.choice import choose
from edp.config.defaults import Settings
from edp.config.presets import QUICK
from edp.data.formats.columns import given_columns
from edp.errors import UserError
from edp.runs.directory import Run
from edp.runs.load import read_run_data, read_spec
from edp.training import prepare

ColumnsGiven = Mapping[str, Any] | str | Path | None  # the meaning of a table's columns, or a TOML file with it


class Request(NamedTuple):
    """``data`` is the name of a task, or what ``edp.open_log`` opens; the rest is as in ``edp.fit``."""

    data: Any
    algo: str | None = None
    policy: str | None = None
    preset: str | None = None
    env: str = ""
    columns: ColumnsGiven = None
    file: str = ""  # from which to read a task's data, in the place of its own
    options: Mapping[str, Any] = {}

    def resolve(self) -> tuple[prepare.Source, Settings]:
        """Open the data, and decide every option."""
        meaning, ranges, origins = given_columns(self.columns)
        origins = {name: origin for name, origin in origins.items() if name not in self.options}
        choice = choose(self.algo, self.policy, self.preset, ranges | dict(self.options))._replace(origins=origins)
        source = prepare.open_source(self.data, data=self.file, columns=meaning, env=self.env)
        source = source._replace(origins=origins)
        return source, prepare.resolve_settings(choice, source.task)

    def is_done(self, out: Path) -> bool:
        """Whether the run in a directory has finished all of its steps, or as many as are asked for, on this data."""
        source, run = self.open_same(out), Run.open(out)
        status = run.status
        done = status["state"] == "finished" and status["step"] >= self.options.get("steps", 0)
        if done and source.task.own:
            read_run_data(run, read_spec(run), source.place, source.log)
        return done

    def open_same(self, out: Path) -> prepare.Source:
        """Open the data. A run in ``out`` that is not the one that is asked for, with any ``steps``, is refused."""
        source, settings = self.resolve()
        run = Run.open(out)
        task = None if source.task.own else source.task.name
        asked = {"task": task, "algo": self.algo, "policy": self.policy} | {
            name: as_tuple(settings.values[name].value) for name in self.options
        }
        for name, value in asked.items():
            there = recorded_value(run, name)
            if value is not None and name != "steps" and value != there:
                raise UserError(f"{out}: was started with `{name}={there}`, not {value}: resume it with the same value")
        self.check_preset(run, settings)
        return source

    def check_preset(self, run: Run, settings: Settings) -> None:
        """Refuse a run that was started with another preset, as the origins of its options say."""
        name = self.preset or QUICK
        origins = run.config.get("origins") or {}
        there = [str(each) for each in origins.values() if str(each).startswith("preset ")]
        sets_some = any(each.startswith(f"preset {name}") for each in settings.origins.values())
        others = [each for each in there if not each.startswith(f"preset {name}")]
        if others or (origins and sets_some and not there):
            raise UserError(f"{run.folder}: was not started with `preset={name}`: resume it with the same preset")

    def resume(self, out: Path, command: Sequence[str] = ()) -> AbstractContextManager[prepare.Ready]:
        """Continue the run in the directory ``out``, which must be the one that is asked for, with any ``steps``."""
        source = self.open_same(out)
        steps = self.options.get("steps")
        log = None if source.place else source.log
        return prepare.resume_run(out, steps=steps, data=source.place, log=log, env=self.env, command=command)

    def start(
        self, out: Path, command: Sequence[str] = (), data_sha256: str = ""
    ) -> AbstractContextManager[prepare.Ready]:
        """Start the run in the directory ``out``. Data with another hash than ``data_sha256`` is refused."""
        source, settings = self.resolve()
        return prepare.start_run(source, settings, out, command=command, data_sha256=data_sha256)


def recorded_value(run: Run, name: str) -> Any:
    """The value of an option in a run's config, or the name of its task, algorithm or policy."""
    if name == "task":
        return run.config.get("task")
    if name in ("algo", "policy"):
        return run.config["algorithm" if name == "algo" else "policy"]["name"]
    parts = (run.config[part] for part in ("algorithm", "policy", "data", "training", "evaluation"))
    return as_tuple(next((part[name] for part in parts if name in part), None))


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
