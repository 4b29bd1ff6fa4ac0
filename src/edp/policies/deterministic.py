"""The feed-forward policy of TD3: one action for each state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.networks import ACTIVATIONS, MLP
from edp.options import option
from edp.policies.base import PLAIN, Control, Fit, Policy, PolicyConfig, check_activation, unit_gaussian_log_prob


class Deterministic(Policy):
    """tanh of a network's output."""

    net: MLP

    deterministic: ClassVar[bool] = True

    def sample(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        del key, control
        return jnp.tanh(self.net(obs))

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key: PRNGKeyArray) -> Fit:
        mean = self.sample(obs, key)
        return Fit(jnp.mean((action - mean) ** 2, axis=-1), mean, unit_gaussian_log_prob(action, mean))


@dataclass(frozen=True)
class DeterministicConfig(PolicyConfig):
    """Options of the deterministic policy."""

    hidden: tuple[int, ...] = option((256, 256, 256), "widths of the policy's hidden layers", low=1, high=65_536)
    activation: str = option("mish", f"activation function of the policy's network: {', '.join(ACTIVATIONS)}")

    has_likelihood: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {"eas": 1}

    def __post_init__(self) -> None:
        check_activation(self.activation)

    @property
    def no_entropy(self) -> str:
        return "a deterministic policy has none"

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Deterministic:
        return Deterministic(MLP(obs_dim, self.hidden, act_dim, key, activation=self.activation))
