"""Default values of options: by domain, task, algorithm, policy and preset.

The values are data, in layers. Algorithms and policies declare the values that suit them (see ``Algorithm`` and
``PolicyConfig``). A later layer overrides an earlier one, and a value that the user gives overrides all of them.
Options that the chosen algorithm and policy do not have are ignored, except in a preset.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from edp.algorithms import ALGORITHMS
from edp.config import presets
from edp.config.originals import ORIGINALS
from edp.config.presets import (
    DOMAINS,
    FEW_CHANGES,
    FEW_ROWS,
    LIKE_STEPS,
    LITTLE_NOISE,
    LONGEST_DISCOUNT,
    QUICK,
    CriticTimes,
    ShareOfSteps,
    Values,
)
from edp.config.successors import SUCCESSORS
from edp.errors import UserError, unknown
from edp.options import LARGEST, check_options
from edp.policies import POLICIES

PRESETS = presets.PRESETS | SUCCESSORS | ORIGINALS
USER = "user"  # the origin of values that the user gives
RECIPE_ORIGIN = f"preset {QUICK}"
FEW_ROWS_ORIGIN = f"{RECIPE_ORIGIN}, for fewer than {FEW_ROWS:,} rows"
SMOOTH_ORIGIN = f"{RECIPE_ORIGIN}, for smooth actions"
SPARSE_ORIGIN = f"{RECIPE_ORIGIN}, for sparse rewards"
DATA_ORIGINS = FEW_ROWS_ORIGIN, SMOOTH_ORIGIN, SPARSE_ORIGIN  # of values that depend on the data
DEFAULT_ALGORITHM, DEFAULT_POLICY = "td3bc", "diffusion"


class Setting(NamedTuple):
    value: Any
    origin: str


class Settings(NamedTuple):
    """The value of every option and its origin, and the dataclasses that the options belong to."""

    classes: tuple[type, ...]
    values: dict[str, Setting]

    @property
    def parts(self) -> list[Any]:
        """The dataclasses with these values, each value checked."""
        return [
            check_options(cls(**{entry.name: self.values[entry.name].value for entry in fields(cls)}))
            for cls in self.classes
        ]

    @property
    def origins(self) -> dict[str, str]:
        return {name: setting.origin for name, setting in self.values.items()}

    def with_defaults(self, values: Values, origin: str) -> "Settings":
        """Other values for the options whose value is the default or comes from the task."""
        free = {name for name, setting in self.values.items() if setting.origin in ("default", "task")}
        changed = {name: Setting(value, origin) for name, value in values.items() if name in free}
        return self._replace(values=self.values | changed)

    @property
    def uses_recipe(self) -> bool:
        return RECIPE_ORIGIN in self.origins.values()

    def for_data(self, rows: int, noise: float, reward_changes: float) -> "Settings":
        """These settings, or those of the recipe for this kind of data, if the recipe is used (see ``presets``).

        ``noise`` is the share of noise in the data's actions, and ``reward_changes`` the share of the steps in which
        the reward changes.
        """
        if not self.uses_recipe:
            return self
        trainer = self.classes[0]  # the first class is the algorithm
        settings = self
        if reward_changes < FEW_CHANGES:
            settings = settings.with_recipe(trainer.recipe_for_sparse_rewards, SPARSE_ORIGIN)
        if rows < FEW_ROWS or noise < LITTLE_NOISE:
            origin = FEW_ROWS_ORIGIN if rows < FEW_ROWS else SMOOTH_ORIGIN
            settings = settings.with_recipe(trainer.recipe_for_narrow_data, origin)
        if noise < LITTLE_NOISE and settings.values["eas"].value == 1:  # without noise there is nothing to select
            settings = settings.with_recipe(trainer.recipe_for_smooth_actions, SMOOTH_ORIGIN)
        return settings

    def with_recipe(self, values: Mapping[str, Any], origin: str) -> "Settings":
        """Other values for the options that have those of the recipe, or their defaults."""
        free = {name for name, setting in self.values.items() if setting.origin in ("default", RECIPE_ORIGIN)}
        changed = {name: Setting(value, origin) for name, value in values.items() if name in free}
        return self._replace(values=self.values | changed)


def choose_names(algorithm: str | None, policy: str | None, preset: str | None) -> tuple[str, str]:
    """The names of the algorithm and the policy, given those that the user named."""
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    named = PRESETS.get(preset or "", {})
    chosen = algorithm or str(named.get("algo", DEFAULT_ALGORITHM))
    usual = ALGORITHMS[chosen].default_policy if chosen in ALGORITHMS else DEFAULT_POLICY
    return chosen, policy or str(named.get("policy", usual))


def layers(
    algorithm: str, policy: str, domain: str, task: Values, preset: str | None, name: str = ""
) -> list[tuple[str, Values]]:
    """The layers of default values, each with its origin; later ones override earlier ones.

    ``task`` are values of the task, and ``name`` is its name.
    """
    trainer, trained = ALGORITHMS[algorithm], POLICIES[policy]
    of_domain = DOMAINS[domain] | dict(trainer.domain_defaults.get(domain, {}))
    if trained.has_likelihood:
        del of_domain["loss_weight"]  # the paper's loss weights balance values against the diffusion loss
    of_pair = [values for trait, values in trainer.policy_defaults.items() if getattr(trained, trait)]
    of_preset = {key: value for key, value in PRESETS.get(preset or "", {}).items() if key not in ("algo", "policy")}
    named = name_without_version(name)
    here = (domain, named.partition("-")[0], named)
    somewhere = of_preset.pop("where", {})
    if preset == QUICK:
        wait = CriticTimes(trainer.eas_waits, trainer.eas_least)
        of_preset |= {"eas_after": wait} | dict(trained.recipe) | dict(trainer.recipe)
    return [
        (f"domain {domain}", of_domain),
        ("task", task),
        (f"policy {policy}", dict(trained.defaults)),
        (f"algorithm {algorithm}", dict(trainer.defaults)),
        (f"{algorithm} with {policy}", {name: value for values in of_pair for name, value in values.items()}),
        (f"preset {preset}", of_preset),
        *((f"preset {preset} on {key}", somewhere[key]) for key in somewhere if key in here),
    ]


def name_without_version(task: str) -> str:
    """hopper-medium of hopper-medium-v2 and of local/hopper-medium."""
    name = task.rpartition("/")[2]
    return name.rpartition("-v")[0] if name.rpartition("-v")[2].isdigit() else name


def resolve(
    classes: Iterable[type], layers: list[tuple[str, Values]], given: Values, origins: Mapping[str, str] = {}
) -> Settings:
    """The value of every option of these dataclasses, from the layers and from what the user gave.

    ``origins`` are the names of the files in which the user gave some of them.
    """
    classes = tuple(classes)
    values = {entry.name: Setting(entry.default, "default") for cls in classes for entry in fields(cls)}
    for origin, layer in layers:
        for name, value in layer.items():
            if name in values:
                values[name] = Setting(value, origin)
            elif origin.startswith("preset") and origin != RECIPE_ORIGIN:
                raise UserError(f"{origin} sets `{name}`, which this algorithm with this policy does not have")
    for name in given:
        if name not in values:
            raise unknown("option of this algorithm with this policy", name, values)
    if "sampler" in given:  # the recipe's grid and calls are for another sampler, so they are ignored
        for entry in (entry for cls in classes for entry in fields(cls) if entry.name in ("grid", "calls")):
            if values[entry.name].origin == RECIPE_ORIGIN:
                values[entry.name] = Setting(entry.default, "default")
    values |= {name: Setting(value, origins.get(name, USER)) for name, value in given.items()}
    follow_critic(values)
    follow_steps(values)
    return Settings(classes, values)


def follow_critic(values: dict[str, Setting]) -> None:
    """Set the options whose default depends on how fast the critic learns; 0 for algorithms without a critic."""
    names = {"tau": 0, "discount": 0, "n_step": 0, "policy_every": 1}  # without the option
    given = [values[name].value if name in values else without for name, without in names.items()]
    known = all(type(value) in (int, float) for value in given)  # anything else is refused later
    tau, discount, n_step, delay = given
    spread = 1 - min(discount, LONGEST_DISCOUNT) ** n_step if known and "discount" in values else 0
    rate = tau * spread / delay if known and delay > 0 else 0
    for name, setting in values.items():
        if isinstance(setting.value, CriticTimes):
            values[name] = setting._replace(value=steps_of(setting.value, rate))


def steps_of(wait: CriticTimes, rate: float) -> int:
    """The number of steps, if one step is this part of a time constant; 0 without a critic."""
    return max(wait.least, round(wait.times / rate)) if rate > 0 else 0


def follow_steps(values: dict[str, Setting]) -> None:
    """Set the options whose default depends on the length of the run."""
    steps: Any = values["steps"].value if "steps" in values else None
    known = type(steps) is int and 0 < steps <= LARGEST  # anything else is refused later
    for name, setting in values.items():
        if setting.value == LIKE_STEPS and setting.origin != USER:
            values[name] = setting._replace(value=steps if known else 0)
        if isinstance(setting.value, ShareOfSteps):
            values[name] = setting._replace(value=max(1, round(setting.value.share * (steps if known else 0))))
    if not known:
        return
    if "evaluation_steps" in values and values["evaluation_steps"].origin == "default":
        values["evaluation_steps"] = Setting(max(1, steps // 2), "half of `steps`")
    after = values["policy_target_after"].value if "policy_target_after" in values else 0
    if "act_with" in values and values["act_with"].origin == "default" and type(after) is int and steps <= after:
        values["act_with"] = Setting("online", "no average before `policy_target_after`")
