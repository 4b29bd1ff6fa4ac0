"""Presets of methods that came after EDP (docs/algorithms.md names their sources and differences)."""

from edp.config.presets import DDPM, LIKE_STEPS, Values

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
    "steps": 2_000_000,
    "batch_size": 256,
    "lr_decay": LIKE_STEPS,
    "clip": 1.0,
    "critics": 10,
    "ensemble": "mean-std",
    "rho": 1.0,
    "eta": 1.0,
    "eta_lr": 1e-3,
    "bc_limit": 1.0,
    "act_with": "online",
    "eas": 10,
    "where": {
        "locomotion": {"rewards": "return-range"},
        "hopper": {"rho": 1.5},
        "hopper-medium-expert": {"bc_limit": 0.05},
        "halfcheetah": {"rho": 0.0},
        "halfcheetah-medium-expert": {"bc_limit": 0.1},
        "antmaze": {"rewards": "return-range", "eta": 0.1, "eta_lr": 0.0, "max_q_backup": 10},
        "antmaze-large-play": {"rho": 1.1, "lr": 1e-3, "policy_lr": 3e-4},
        "antmaze-large-diverse": {"lr": 1e-3, "policy_lr": 3e-4},
        "adroit": {"rewards": "raw"},
    },
}
UNPUBLISHED: Values = {"guidance": "value", "distillation": 1.0}  # where FQL's authors give no weight
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
