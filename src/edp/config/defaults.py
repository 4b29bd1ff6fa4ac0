"""Where values of options come from when nobody gives them: the task's domain, the algorithm and the policy, a preset.

All of it is data. Later layers win over earlier ones, and the command line over all of them; an option that the chosen
algorithm or policy does not have is passed over (but a preset that cannot be followed is refused).
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

from edp.errors import UserError, unknown
from edp.options import check, flag

Values = dict[str, Any]

# The paper's table of hyper-parameters, and what its appendix and the authors' configuration add.
TABLE: Values = {"lr": 3e-4, "clip": 5.0, "loss_weight": 1.0, "steps": 1_000_000, "batch_size": 256}
DOMAINS: dict[str, Values] = {
    "locomotion": TABLE | {"steps": 2_000_000},
    "antmaze": TABLE | {"rewards": "centred", "expectile": 0.9},
    "adroit": TABLE | {"lr": 3e-5, "loss_weight": 0.1, "rewards": "min-max"},
    "kitchen": TABLE | {"loss_weight": 0.005, "rewards": "min-max"},
    # Nobody knows the scale of anything in data of one's own: rewards and observations are brought to about 1.
    "own": TABLE | {"steps": 100_000, "rewards": "unit", "normalise": "standard", "validation": 0.1},
}
DOMAIN_WITH: dict[tuple[str, str], Values] = {
    **{("locomotion", name): {"rewards": "return-range"} for name in ("iql", "onestep")},
    **{("antmaze", name): {"rewards": "minus-one"} for name in ("iql", "onestep")},
}

# What a policy needs whatever trains it, and what an algorithm needs with a policy. A feed-forward policy has a
# likelihood of its own, so that likelihood-based algorithms need no imitation loss beside it.
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
    """Dataclasses of options in the order in which they were asked for, and where each value came from."""

    parts: list[Any]
    origins: dict[str, Setting]


def choose(given_algorithm: str | None, given_policy: str | None, preset: str | None) -> tuple[str, str]:
    """The names of the algorithm and of the policy."""
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    algorithm = given_algorithm or PRESETS.get(preset or "", {}).get("algo", DEFAULT_ALGORITHM)
    return algorithm, given_policy or OWN_POLICY.get(algorithm, DEFAULT_POLICY)


def layers(algorithm: str, policy: str, domain: str, task: Values, preset: str | None) -> list[tuple[str, Values]]:
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
