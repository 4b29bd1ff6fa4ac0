"""What a policy is to the rest of the house."""

import math
from typing import ClassVar, NamedTuple, Protocol

import jax.numpy as jnp
from jaxtyping import Array, Float


class Fit(NamedTuple):
    """What one forward pass on data gives: all that an algorithm may ask of a policy while training it."""

    bc: Float[Array, " n"]  # imitation loss
    action: Float[Array, "n act"]  # a differentiable action
    log_prob: Float[Array, " n"]  # (surrogate) log-likelihood of the data's action


class Policy(Protocol):
    deterministic: ClassVar[bool]  # the same action for the same state

    def sample(self, obs: Float[Array, "n obs"], key) -> Float[Array, "n act"]: ...

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key) -> Fit: ...


class PolicyConfig(Protocol):
    """A frozen dataclass of options that builds its policy."""

    def build(self, obs_dim: int, act_dim: int, key) -> Policy: ...


def unit_gaussian_log_prob(action: Float[Array, "n act"], mean: Float[Array, "n act"]) -> Float[Array, " n"]:
    """log N(action; mean, I), summed over the action's dimensions."""
    return -0.5 * jnp.sum((action - mean) ** 2, axis=-1) - 0.5 * math.log(2 * math.pi) * action.shape[-1]
