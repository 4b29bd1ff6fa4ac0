"""Sets of values: the paper's hyper-parameters for each domain of tasks, its variants, and the recipe of this project.

A preset overrides the values of the domain. ``quick`` is used where the user names no preset. These keys of a preset
are no options: ``algo`` and ``policy`` are names, and ``where`` holds values by domain, by the first word of a
task's name, or by that name without its version.
"""

from typing import Any, NamedTuple

Values = dict[str, Any]

# The paper's table of hyper-parameters, and what its appendix and the authors' configuration add.
TABLE: Values = {"lr": 3e-4, "clip": 5.0, "loss_weight": 1.0, "steps": 1_000_000, "batch_size": 256}
DOMAINS: dict[str, Values] = {
    "locomotion": TABLE | {"steps": 2_000_000},
    "antmaze": TABLE | {"rewards": "centred", "expectile": 0.9},
    "adroit": TABLE | {"lr": 3e-5, "loss_weight": 0.1, "rewards": "min-max"},
    "kitchen": TABLE | {"loss_weight": 0.005, "rewards": "min-max"},
    # The scales of a user's own data are unknown: rewards and observations are scaled to about 1.
    "own": TABLE | {"steps": 100_000, "rewards": "unit", "normalise": "standard", "validation": 0.1},
}

LIKE_STEPS = "steps"  # in place of a number: the value of `steps`


class ShareOfSteps(NamedTuple):
    """In place of a number: this share of `steps`."""

    share: float


class CriticTimes(NamedTuple):
    """In place of a number of steps: this many time constants of the critic, 1 / (tau · (1 - discount^n_step)).

    A target moves by ``tau`` per step towards values that bootstrap from it, so its distance from their fixed point
    falls by a factor e in one time constant. A network also needs steps to fit its targets, so there is a ``least``.
    """

    times: float
    least: int  # steps


LONGEST_DISCOUNT = 0.999  # with larger discounts, episodes end before the horizon
QUICK = "quick"

# The recipe: the same values for every task (see docs/recipe.md for what each of them does). Algorithms and policies
# declare the values of their own options as ``recipe``. An option that the chosen algorithm and policy lack is ignored.
RECIPE: Values = {
    "steps": 100_000,
    "lr": 1e-3,
    "lr_warmup": 1000,
    "lr_decay": LIKE_STEPS,
    "normalise": "signal",
    "eas_energy": "relative",
    "eas_temperature": 0.2,
    "fresh_starts": True,
}

# An algorithm's ``recipe_for_narrow_data`` holds where the critic can know little but the data's own actions: for data
# with fewer rows than this, or with less noise in its actions (see ``noise_share``), as in demonstrations.
FEW_ROWS = 20_000
LITTLE_NOISE = 0.2

# An algorithm's ``recipe_for_sparse_rewards`` holds where the reward differs from the one before it in fewer of the
# steps than this, as in mazes: values then differ between places, and hardly between the actions in one place.
FEW_CHANGES = 0.1

# The paper's variants. Where every noise level is a network call, K is 100 as in the paper's timing, or Diffusion-QL's
# usual 5.
DDPM: Values = {"sampler": "ddpm", "calls": 0}
PRESETS: dict[str, Values] = {
    QUICK: RECIPE,
    "edp": {},  # the defaults, and the values of the domain
    "edp-without-dpm": DDPM | {"diffusion_steps": 100, "train_action": "approximate"},
    "fast": {"sampler": "dpm++", "grid": "quadratic", "calls": 6, "train_action": "approximate"},
    "edp-without-ap": {"sampler": "dpm", "train_action": "chain"},
    "dql": DDPM | {"diffusion_steps": 5, "schedule": "vp", "train_action": "chain", "eas": 50, "act_with": "online"},
    "bc-10": {"algo": "bc", "best": 0.1},
}
