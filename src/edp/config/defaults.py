"""Default values of options: by domain, task, algorithm, policy and preset.

The values are data, in layers. A later layer overrides an earlier one, and a value that the user gives overrides all of
them. A layer may hold options that the chosen algorithm or policy does not have; they are ignored, except in a preset.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

from edp.errors import UserError, unknown
from edp.options import check_options

Values = dict[str, Any]

# The paper's table of hyper-parameters, and what its appendix and the authors' configuration add.
TABLE: Values = {"lr": 3e-4, "clip": 5.0, "loss_weight": 1.0, "steps": 1_000_000, "batch_size": 256}
DOMAINS: dict[str, Values] = {
    "locomotion": TABLE | {"steps": 2_000_000},
    "antmaze": TABLE | {"rewards": "centred", "expectile": 0.9},
    "adroit": TABLE | {"lr": 3e-5, "loss_weight": 0.1, "rewards": "min-max"},
    "kitchen": TABLE | {"loss_weight": 0.005, "rewards": "min-max"},
    # The scale of a user's data is unknown: rewards and observations are scaled to about 1.
    "own": TABLE | {"steps": 100_000, "rewards": "unit", "normalise": "standard", "validation": 0.1},
}
DOMAIN_WITH: dict[tuple[str, str], Values] = {
    **{("locomotion", name): {"rewards": "return-range"} for name in ("iql", "onestep")},
    **{("antmaze", name): {"rewards": "minus-one"} for name in ("iql", "onestep")},
}

# What a policy needs with every algorithm, and what an algorithm needs with one policy. A feed-forward policy has a
# likelihood, so that likelihood-based algorithms need no imitation loss beside it.
POLICY: dict[str, Values] = {"gaussian": {"eas": 1}, "deterministic": {"eas": 1}, "transformer": {"eas": 1}}
ALGORITHM: dict[str, Values] = {
    "bc": {"eas": 1},
    "awr": {"eas": 1},
    "dt": {"lr": 1e-4, "clip": 0.25, "rewards": "raw"},  # it counts down the environment's own rewards
}
WITHOUT_IMITATION = ("crr", "iql", "awac", "awr", "onestep", "cql")
PAIR: dict[tuple[str, str], Values] = {
    **{(name, policy): {"bc_weight": 0.0} for name in WITHOUT_IMITATION for policy in POLICY},
    ("td3bc", "deterministic"): {"target_noise": 0.2},
    ("cql", "gaussian"): {"bc_weight": 0.0, "squash": True, "entropy": 0.05},
}

# The paper's variants. Where every noise level is a network call, K is 100 as in the paper's timing, or Diffusion-QL's
# usual 5.
DDPM: Values = {"sampler": "ddpm", "calls": 0}
PRESETS: dict[str, Values] = {
    "edp": {"sampler": "dpm", "train_action": "approximate"},
    "edp-without-dpm": DDPM | {"diffusion_steps": 100, "train_action": "approximate"},
    "fast": {"sampler": "dpm++", "grid": "quadratic", "calls": 6, "train_action": "approximate"},
    "edp-without-ap": {"sampler": "dpm", "train_action": "chain"},
    "dql": DDPM | {"diffusion_steps": 5, "schedule": "vp", "train_action": "chain", "eas": 50, "act_with": "online"},
    "bc-10": {"algo": "bc", "best": 0.1},
}
DEFAULT_ALGORITHM, DEFAULT_POLICY = "td3bc", "diffusion"
OWN_POLICY = {"dt": "transformer"}  # of algorithms that go with one policy only


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
        """Other values for options that neither the user nor a preset has set."""
        free = {name for name, setting in self.values.items() if setting.origin in ("default", "task")}
        changed = {name: Setting(value, origin) for name, value in values.items() if name in free}
        return self._replace(values=self.values | changed)


def choose_names(algorithm: str | None, policy: str | None, preset: str | None) -> tuple[str, str]:
    """The names of the algorithm and the policy, given those that the user named."""
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    chosen = algorithm or str(PRESETS.get(preset or "", {}).get("algo", DEFAULT_ALGORITHM))
    return chosen, policy or OWN_POLICY.get(chosen, DEFAULT_POLICY)


def layers(algorithm: str, policy: str, domain: str, task: Values, preset: str | None) -> list[tuple[str, Values]]:
    """The layers of default values, each with its origin; later ones override earlier ones."""
    own = DOMAINS[domain] | DOMAIN_WITH.get((domain, algorithm), {})
    if policy != DEFAULT_POLICY:
        del own["loss_weight"]  # balances values against the diffusion loss
    return [
        (f"domain {domain}", own),
        ("task", task),
        (f"policy {policy}", POLICY.get(policy, {})),
        (f"algorithm {algorithm}", ALGORITHM.get(algorithm, {})),
        (f"{algorithm} with {policy}", PAIR.get((algorithm, policy), {})),
        (f"preset {preset}", {key: value for key, value in PRESETS.get(preset or "", {}).items() if key != "algo"}),
    ]


def resolve(classes: Iterable[type], layers: list[tuple[str, Values]], given: Values) -> Settings:
    """The value of every option of these dataclasses, from the layers and from what the user gave."""
    classes = tuple(classes)
    values = {entry.name: Setting(entry.default, "default") for cls in classes for entry in fields(cls)}
    for origin, layer in layers:
        for name, value in layer.items():
            if name in values:
                values[name] = Setting(value, origin)
            elif origin.startswith("preset"):
                raise UserError(f"{origin} sets `{name}`, which this algorithm with this policy does not have")
    for name in given:
        if name not in values:
            raise unknown("option of this algorithm with this policy", name, values)
    values |= {name: Setting(value, "command line") for name, value in given.items()}
    follow_steps(values)
    return Settings(classes, values)


def follow_steps(values: dict[str, Setting]) -> None:
    """Set the options whose default depends on the length of the run."""
    steps = values["steps"].value if "steps" in values else None
    if type(steps) is not int:  # refused later
        return
    if "evaluation_steps" in values and values["evaluation_steps"].origin == "default":
        values["evaluation_steps"] = Setting(max(1, steps // 2), "half of `steps`")
    after = values["policy_target_after"].value
    if values["act_with"].origin == "default" and type(after) is int and steps <= after:
        values["act_with"] = Setting("online", "no average before `policy_target_after`")
