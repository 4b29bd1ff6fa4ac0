"""From names and values to a run that is ready to start: the data read, its units known, every option decided."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from edp.algorithms import ALGORITHMS
from edp.config import defaults
from edp.config.spec import DataOptions, EvalOptions, Spec, TrainOptions
from edp.data import tasks, units
from edp.data.dataset import Dataset, read_dataset
from edp.data.log import Log
from edp.envs.make import action_range
from edp.errors import unknown
from edp.policies import POLICIES


class Choice(NamedTuple):
    """What was asked for; everything else follows from the task."""

    algorithm: str
    policy: str
    preset: str | None
    given: Mapping[str, Any]  # options by name

    @property
    def groups(self) -> dict[str, type]:
        """The options that there are, under their titles."""
        return {
            f"algorithm {self.algorithm}": ALGORITHMS[self.algorithm],
            f"policy {self.policy}": POLICIES[self.policy],
            "data": DataOptions,
            "training": TrainOptions,
            "evaluation": EvalOptions,
        }

    def resolve(self, task: tasks.Task) -> defaults.Settings:
        layers = defaults.layers(self.algorithm, self.policy, task.domain, task.settings, self.preset)
        return defaults.resolve(self.groups.values(), layers, dict(self.given))

    def spec(self, task: tasks.Task) -> Spec:
        return Spec(task, *self.resolve(task).parts).check()


def choose(algorithm: str | None, policy: str | None, preset: str | None, given: Mapping[str, Any]) -> Choice:
    algorithm, policy = defaults.choose(algorithm, policy, preset)
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", algorithm, ALGORITHMS)
    if policy not in POLICIES:
        raise unknown("policy", policy, POLICIES)
    return Choice(algorithm, policy, preset, given)


class Built(NamedTuple):
    spec: Spec
    dataset: Dataset  # in the spec's units
    origins: dict[str, str]  # of the options' values


def build(choice: Choice, task: tasks.Task, log: Log) -> Built:
    spec = choice.spec(task)  # before the data is read, which may take its time
    log = replace(log, limit=spec.data.episode_limit)
    dataset = read_dataset(log, task.episode_return, on_disk=spec.data.block > 0)
    if task.own:
        task = replace(task, returns=extremes(dataset.returns))
        spec = choice.spec(task)
    low, high = spec.data.action_low, spec.data.action_high
    usual_low, usual_high = usual_range(task, log)
    found = units.fit_units(dataset, spec.data.normalise, low or usual_low, high or usual_high, log.name)
    origins = {name: setting.origin for name, setting in choice.resolve(task).origins.items()}
    return Built(replace(spec, units=found), found.apply(dataset, log), origins)


def extremes(returns: Any) -> tuple[float, float] | None:
    return (float(returns.min()), float(returns.max())) if len(returns) else None


def usual_range(task: tasks.Task, log: Log) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The range of actions, if nobody gives one: D4RL's, the environment's, or what the log says of itself."""
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
