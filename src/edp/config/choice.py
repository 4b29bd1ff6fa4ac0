"""What the user asked for: an algorithm, a policy, a preset, and values of options."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from edp.algorithms import ALGORITHMS
from edp.config import defaults
from edp.config.presets import QUICK
from edp.config.spec import DataOptions, EvalOptions, TrainOptions
from edp.data.tasks import Task
from edp.errors import unknown
from edp.policies import POLICIES


class Choice(NamedTuple):
    """The algorithm, policy, preset and options that the user named. ``resolve`` decides the rest."""

    algorithm: str
    policy: str
    preset: str
    options: Mapping[str, Any]  # by name
    origins: Mapping[str, str] = {}  # of options that come from a file: its name

    @property
    def groups(self) -> dict[str, type]:
        """The dataclasses of all options that exist for this algorithm and this policy, by title."""
        return {
            f"algorithm {self.algorithm}": ALGORITHMS[self.algorithm],
            f"policy {self.policy}": POLICIES[self.policy],
            "data": DataOptions,
            "training": TrainOptions,
            "evaluation": EvalOptions,
        }

    def resolve(self, task: Task) -> defaults.Settings:
        """The value of every option, and where it comes from."""
        layers = defaults.layers(self.algorithm, self.policy, task.domain, task.settings, self.preset, task.name)
        return defaults.resolve(self.groups.values(), layers, dict(self.options), self.origins)


def choose(
    algorithm: str | None = None, policy: str | None = None, preset: str | None = None, options: Mapping[str, Any] = {}
) -> Choice:
    algorithm, policy = defaults.choose_names(algorithm, policy, preset)
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", algorithm, ALGORITHMS)
    if policy not in POLICIES:
        raise unknown("policy", policy, POLICIES)
    return Choice(algorithm, policy, preset or QUICK, options)
