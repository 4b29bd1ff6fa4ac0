"""Presets of the baselines with their own published settings (docs/algorithms.md names the sources and differences)."""

from edp.config.presets import LIKE_STEPS, ShareOfSteps, Values

NO_CLIP = 1e9  # a norm that gradients do not reach
D4RL = ("locomotion", "antmaze", "adroit", "kitchen")


def two_layers(*widths: int) -> Values:
    """Relu networks of these widths, for the policy."""
    return {"hidden": widths, "activation": "relu"}


def same_critic(policy: Values) -> Values:
    """The value networks have the policy's widths and activation."""
    return policy | {"critic_hidden": policy["hidden"], "critic_activation": policy["activation"]}


def rewards(**by_domain: str) -> dict[str, Values]:
    """The rewards of D4RL's domains: raw, unless another choice is given."""
    return {domain: {"rewards": by_domain.get(domain, "raw")} for domain in D4RL}


def merged(*tables: dict[str, Values]) -> dict[str, Values]:
    """Tables by domain as one."""
    keys = {key: None for table in tables for key in table}
    return {key: {name: value for table in tables for name, value in table.get(key, {}).items()} for key in keys}


# All of them act with the online parameters. Where a method has a target policy, it moves at every update.
COMMON: Values = {
    "steps": 1_000_000,
    "batch_size": 256,
    "lr": 3e-4,
    "clip": NO_CLIP,
    "policy_target_every": 1,
    "policy_target_after": 0,
    "act_with": "online",
}
