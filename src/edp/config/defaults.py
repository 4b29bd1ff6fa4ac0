"""Where the values of options come from: the task's domain, the policy, the algorithm, a preset, the user.

Algorithms and policies declare the values that suit them (see ``Algorithm`` and ``PolicyConfig``). Later layers win
over earlier ones, and the user's values win over all of them. A value of an option that the chosen algorithm and policy
do not have is ignored, but a preset with such a value is refused.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

from edp.algorithms import ALGORITHMS
from edp.config.presets import DOMAINS, PRESETS, Values
from edp.errors import UserError, unknown
from edp.options import check, flag
from edp.policies import POLICIES

DEFAULT_ALGORITHM, DEFAULT_POLICY = "td3bc", "diffusion"


class Setting(NamedTuple):
    value: Any
    origin: str


class Settings(NamedTuple):
    """Dataclasses of options in the order in which they were asked for, and where each value came from."""

    parts: list[Any]
    origins: dict[str, Setting]


def choose(given_algorithm: str | None, given_policy: str | None, preset: str | None) -> tuple[str, str]:
    """The names of the algorithm and of the policy."""
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    algorithm = given_algorithm or PRESETS.get(preset or "", {}).get("algo", DEFAULT_ALGORITHM)
    usual = ALGORITHMS[algorithm].default_policy if algorithm in ALGORITHMS else DEFAULT_POLICY
    return algorithm, given_policy or usual


def layers(algorithm: str, policy: str, domain: str, task: Values, preset: str | None) -> list[tuple[str, Values]]:
    """The layers of values, from the first to the last, each with the text that names its origin."""
    trainer, trained = ALGORITHMS[algorithm], POLICIES[policy]
    of_domain = DOMAINS[domain] | dict(trainer.domain_defaults.get(domain, {}))
    if trained.has_likelihood:
        del of_domain["loss_weight"]  # the paper's loss weights balance values against the diffusion loss
    of_pair = [values for trait, values in trainer.policy_defaults.items() if getattr(trained, trait)]
    return [
        (f"domain {domain}", of_domain),
        ("task", task),
        (f"policy {policy}", dict(trained.defaults)),
        (f"algorithm {algorithm}", dict(trainer.defaults)),
        (f"{algorithm} with {policy}", {name: value for values in of_pair for name, value in values.items()}),
        (f"preset {preset}", {key: value for key, value in PRESETS.get(preset or "", {}).items() if key != "algo"}),
    ]


def resolve(classes: Iterable[type], layers: list[tuple[str, Values]], given: Values) -> Settings:
    """Build each dataclass from the layers and what was given, with every value in its range."""
    classes = list(classes)
    settings = {entry.name: Setting(entry.default, "default") for cls in classes for entry in fields(cls)}
    for origin, values in layers:
        for name, value in values.items():
            if name in settings:
                settings[name] = Setting(value, origin)
            elif origin.startswith("preset"):
                raise UserError(f"{origin} sets {flag(name)}, which this algorithm with this policy does not have")
    for name in given:
        if name not in settings:
            raise unknown("option of this algorithm with this policy", name, settings)
    settings |= {name: Setting(value, "command line") for name, value in given.items()}
    follow_steps(settings)
    parts = [check(cls(**{entry.name: settings[entry.name].value for entry in fields(cls)})) for cls in classes]
    return Settings(parts, settings)


def follow_steps(settings: dict[str, Setting]) -> None:
    """Values that depend on the length of the run, unless somebody chose them."""
    steps = settings["steps"].value if "steps" in settings else None
    if type(steps) is not int:  # which is refused later
        return
    if "evaluation_steps" in settings and settings["evaluation_steps"].origin == "default":
        settings["evaluation_steps"] = Setting(max(1, steps // 2), "half of --steps")
    after = settings["policy_target_after"].value
    if settings["act_with"].origin == "default" and type(after) is int and steps <= after:
        settings["act_with"] = Setting("online", "no average before --policy-target-after")
