"""Presets of the baselines with their own published settings (docs/algorithms.md names the sources and differences)."""

from edp.config.presets import LIKE_STEPS, ShareOfSteps, Values

NO_CLIP = 1e9  # a norm that gradients do not reach
RAW: Values = {"rewards": "raw"}

# All of them act with the online parameters. A target policy moves at every update of the policy.
COMMON: Values = {
    "steps": 1_000_000,
    "batch_size": 256,
    "lr": 3e-4,
    "clip": NO_CLIP,
    "policy_target_every": 1,
    "policy_target_after": 0,
    "act_with": "online",
    "activation": "relu",
}
TWO, THREE = (256, 256), (256, 256, 256)  # widths of hidden layers


def networks(*hidden: int) -> Values:
    """Equal networks for the policy and for values."""
    return COMMON | {"hidden": hidden, "critic_hidden": hidden, "critic_activation": "relu"}


TD3BC: Values = {
    **networks(*TWO),
    "algo": "td3bc",
    "policy": "deterministic",
    "normalise": "standard",
    "alpha": 2.5,
    "improved": "first",
    "policy_every": 2,
    "target_noise": 0.2,
    "where": {"antmaze": {"rewards": "minus-one"}, "adroit": RAW, "kitchen": RAW},
}
IQL: Values = {
    **networks(*TWO),
    "algo": "iql",
    "policy": "gaussian",
    "normalise": "none",
    "shared_std": True,
    "lr_decay": LIKE_STEPS,
    "critic_schedule": False,
    "expectile": 0.7,
    "temperature": 3.0,
    "max_weight": 100.0,
    "where": {
        "antmaze": {"expectile": 0.9, "temperature": 10.0, "rewards": "minus-one"},
        "adroit": RAW | {"temperature": 0.5, "dropout": 0.1},
        "kitchen": RAW | {"temperature": 0.5, "dropout": 0.1},
    },
}
AWAC: Values = {
    **networks(*THREE),
    "algo": "awac",
    "policy": "gaussian",
    "normalise": "standard",
    "shared_std": True,
    "beta": 1 / 3,
    "samples": 1,
    "next_actions": "online",
    "where": {
        "antmaze": {"beta": 0.1, "rewards": "minus-one"},
        "adroit": RAW | {"beta": 0.1},
        "kitchen": RAW,
    },
}
CQL: Values = {
    **networks(*THREE),
    "algo": "cql",
    "policy": "gaussian",
    "normalise": "standard",
    "squash": True,
    "policy_lr": 3e-5,
    "next_actions": "online",
    "conservatism": 10.0,
    "samples": 10,
    "importance": True,
    "alpha": 1.0,
    "scale_q": False,
    "entropy": 1.0,
    "tune_entropy": True,
    "where": {
        "locomotion": {"rewards": "return-range"},
        "antmaze": {"conservatism": 5.0, "policy_lr": 1e-4, "max_q_backup": 10, "normalise": "none"},
        "adroit": RAW | {"conservatism": 1.0, "policy_lr": 1e-4},
        "kitchen": RAW,
    },
}
AWR: Values = {
    **networks(128, 64),
    "algo": "awr",
    "policy": "gaussian",
    "normalise": "standard",
    "std": 0.2,
    "beta": 1.0,
    "max_weight": 20.0,
    "where": {"locomotion": {"std": 0.4}, "antmaze": RAW, "adroit": RAW, "kitchen": RAW},
}
ONE_STEP: Values = {
    **networks(1024, 1024),
    "algo": "onestep",
    "policy": "gaussian",
    "normalise": "none",
    "steps": 2_100_000,
    "evaluation_steps": ShareOfSteps(20 / 21),
    "batch_size": 512,
    "lr": 1e-4,
    "max_log_std": 0.0,
    "critics": 1,
    "temperature": 0.01,
    "max_weight": 100.0,
    "where": {"locomotion": RAW, "antmaze": RAW, "adroit": RAW, "kitchen": RAW},
}
PENALTIES: dict[str, tuple[float, float]] = {  # of the actor and of the critic
    "halfcheetah-medium": (0.001, 0.01),
    "halfcheetah-medium-replay": (0.01, 0.001),
    "halfcheetah-medium-expert": (0.01, 0.1),
    "hopper-medium": (0.01, 0.01),
    "hopper-medium-replay": (0.05, 0.5),
    "hopper-medium-expert": (0.1, 0.01),
    "walker2d-medium": (0.05, 0.1),
    "walker2d-medium-replay": (0.05, 0.01),
    "walker2d-medium-expert": (0.01, 0.01),
    "antmaze-umaze": (0.003, 0.002),
    "antmaze-umaze-diverse": (0.003, 0.001),
    "antmaze-medium-play": (0.001, 0.0005),
    "antmaze-medium-diverse": (0.001, 0.0),
    "antmaze-large-play": (0.002, 0.001),
    "antmaze-large-diverse": (0.002, 0.002),
    "pen-human": (0.1, 0.5),
    "pen-cloned": (0.05, 0.5),
}
REBRAC: Values = {
    **networks(*THREE),
    "algo": "rebrac",
    "policy": "deterministic",
    "normalise": "none",
    "critic_norm": True,
    "policy_every": 2,
    "target_noise": 0.2,
    "where": {
        "locomotion": RAW | {"lr": 1e-3, "batch_size": 1024},
        "antmaze": {"lr": 5e-5, "policy_lr": 3e-4, "discount": 0.999, "rewards": "hundredfold"},
        "adroit": RAW,
        "kitchen": RAW,
        **{task: {"actor_penalty": actor, "critic_penalty": critic} for task, (actor, critic) in PENALTIES.items()},
    },
}
DT: Values = {
    **COMMON,
    "algo": "dt",
    "policy": "transformer",
    "normalise": "standard",
    "steps": 100_000,
    "batch_size": 64 * 20,  # 64 windows of 20 steps
    "context": 20,
    "width": 128,
    "layers": 3,
    "heads": 1,
    "dropout": 0.1,
    "lr": 1e-4,
    "lr_warmup": 10_000,
    "weight_decay": 1e-4,
    "clip": 0.25,
    "where": {
        "locomotion": {"return_scale": 1000.0},
        "hopper": {"target_return": 3600.0},
        "halfcheetah": {"target_return": 12_000.0},
        "walker2d": {"target_return": 5000.0},
    },
}
BC: Values = {**COMMON, "algo": "bc", "policy": "deterministic", "normalise": "standard", "hidden": TWO}

ORIGINALS: dict[str, Values] = {
    "td3bc-original": TD3BC,
    "iql-original": IQL,
    "awac-original": AWAC,
    "cql-original": CQL,
    "awr-original": AWR,
    "onestep-original": ONE_STEP,
    "rebrac-original": REBRAC,
    "dt-original": DT,
    "bc-original": BC,
    "bc-10-original": BC | {"best": 0.1, "best_of": "transitions"},
}
