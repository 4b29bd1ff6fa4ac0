"""Presets of methods that came after EDP (docs/algorithms.md names their sources and differences)."""

from edp.config.presets import DDPM, Values

# Five noise levels, all of them sampled, as Diffusion-QL. Gradients are not clipped.
FIVE_LEVELS: Values = DDPM | {"policy": "diffusion", "diffusion_steps": 5, "schedule": "vp", "clip": 1e9, "lr": 3e-4}
BEST_OF_MANY: Values = {"eas_energy": "raw", "eas_temperature": 0.0}

IDQL: Values = {
    **FIVE_LEVELS,
    **BEST_OF_MANY,
    "algo": "iql",
    "loss_weight": 0.0,  # the policy is cloned
    "bc_weight": 1.0,
    "expectile": 0.7,
    "batch_size": 512,
    "critic_norm": True,
    "eas": 64,
    "where": {"antmaze": {"expectile": 0.9, "rewards": "minus-one"}, "adroit": {"rewards": "raw"}},
}
DAC: Values = {
    **FIVE_LEVELS,
    **BEST_OF_MANY,
    "algo": "dac",
    "critics": 10,
    "ensemble": "mean-std",
    "rho": 1.0,
    "eta": 1.0,
    "eas": 10,
    "where": {"antmaze": {"eta": 0.1, "max_q_backup": 10}, "adroit": {"rewards": "raw"}},
}
UNPUBLISHED: Values = {"guidance": "value", "distillation": 1.0}  # where FQL's weights are not known
FQL: Values = {
    "algo": "td3bc",
    "policy": "distilled",
    "steps": 500_000,
    "batch_size": 256,
    "lr": 3e-4,
    "clip": 1e9,
    "tau": 0.005,
    "hidden": (512,) * 4,
    "critic_hidden": (512,) * 4,
    "critic_norm": True,
    "ensemble": "mean-std",
    "rho": 0.0,  # the mean
    "improved": "mean",
    "guidance": "raw",
    "alpha": 1.0,
    "loss_weight": 1.0,
    "bc_weight": 1.0,
    "distillation": 10.0,
    "next_actions": "online",
    "act_with": "online",
    "eas": 1,
    "where": {
        "locomotion": UNPUBLISHED,
        "kitchen": UNPUBLISHED,
        "own": UNPUBLISHED,
        "antmaze": {"rewards": "minus-one"},
        "adroit": {"rewards": "raw", "ensemble": "min"},
        "pen": {"distillation": 10_000.0},
        "antmaze-large-play": {"distillation": 3.0},
        "antmaze-large-diverse": {"distillation": 3.0},
    },
}

SUCCESSORS: dict[str, Values] = {"idql": IDQL, "dac": DAC, "fql": FQL}
