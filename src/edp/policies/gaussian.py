"""The Gaussian policy: a mean for each state, and a standard deviation that is learned or fixed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.errors import UserError
from edp.networks import ACTIVATIONS, MLP
from edp.options import option
from edp.policies.base import PLAIN, Control, Fit, Policy, PolicyConfig, check_activation

LOG_STD_LOW = -5.0  # of a learned standard deviation
LARGEST_TANH = 1 - 1e-6  # actions of the data are clipped to this, since arctanh(1) is infinite


class Gaussian(Policy):
    """N(tanh(mean), std²) with samples clipped to [-1, 1], or, squashed, tanh(N(mean, std²))."""

    net: MLP
    std: float = eqx.field(static=True)  # 0: learned
    squash: bool = eqx.field(static=True)
    dropout: float = eqx.field(static=True, default=0.0)  # in training
    max_log_std: float = eqx.field(static=True, default=2.0)
    log_std: Float[Array, " act"] | None = None  # of all states; None: the second half of the network's output

    def moments(self, obs: Float[Array, "n obs"], dropout_key: PRNGKeyArray | None = None) -> tuple[Array, Array]:
        """Mean and logarithm of the standard deviation of the Gaussian (before squashing)."""
        out = self.net(obs) if dropout_key is None else self.net.with_dropout(obs, self.dropout, dropout_key)
        if self.std:
            mean, log_std = out, jnp.full_like(out, math.log(self.std))
        else:
            mean, log_std = jnp.split(out, 2, axis=-1) if self.log_std is None else (out, self.log_std[None])
            log_std = jnp.broadcast_to(jnp.clip(log_std, LOG_STD_LOW, self.max_log_std), mean.shape)
        return mean if self.squash else jnp.tanh(mean), log_std

    def act(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        """The mean, or the median of the squashed distribution."""
        del key, control
        mean, _ = self.moments(obs)
        return jnp.tanh(mean) if self.squash else mean

    def sample(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        """A sample of the density to the power of ``control.scale``, whose variance is divided by ``control.scale``."""
        mean, log_std = self.moments(obs)
        std = jnp.exp(log_std) * (control.noise / control.scale**0.5)
        raw = mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        return jnp.tanh(raw) if self.squash else jnp.clip(raw, -1, 1)

    def sample_with_log_prob(
        self, obs: Float[Array, "n obs"], key: PRNGKeyArray
    ) -> tuple[Float[Array, "n act"], Float[Array, " n"]]:
        mean, log_std = self.moments(obs)
        raw = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape, mean.dtype)
        log_prob = gaussian_log_prob(raw, mean, log_std)
        if self.squash:
            return jnp.tanh(raw), log_prob - log_tanh_slope(raw)
        return jnp.clip(raw, -1, 1), log_prob

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key: PRNGKeyArray) -> Fit:
        mean, log_std = self.moments(obs, key if self.dropout else None)
        if self.squash:
            raw = jnp.arctanh(jnp.clip(action, -LARGEST_TANH, LARGEST_TANH))
            log_prob = gaussian_log_prob(raw, mean, log_std) - log_tanh_slope(raw)
        else:
            log_prob = gaussian_log_prob(action, mean, log_std)
        return Fit(bc=-log_prob, action=self.act(obs, key), log_prob=log_prob)

    def around(
        self, obs: Float[Array, "n obs"], fit: Fit, key: PRNGKeyArray, count: int
    ) -> Float[Array, "count n act"]:
        """Samples of the policy itself, since ``fit.log_prob`` is its own log-likelihood."""
        del fit
        return jax.vmap(self.sample, (None, 0))(obs, jax.random.split(key, count))


def gaussian_log_prob(x: Array, mean: Array, log_std: Array) -> Float[Array, " n"]:
    """log N(x; mean, std²), summed over the action's dimensions."""
    return jnp.sum(-0.5 * ((x - mean) * jnp.exp(-log_std)) ** 2 - log_std - 0.5 * math.log(2 * math.pi), axis=-1)


def log_tanh_slope(raw: Float[Array, "n act"]) -> Float[Array, " n"]:
    """log(1 - tanh²), the logarithm of tanh's derivative, in a form that does not underflow."""
    return jnp.sum(2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw)), axis=-1)


@dataclass(frozen=True)
class GaussianConfig(PolicyConfig):
    """Options of the Gaussian policy."""

    hidden: tuple[int, ...] = option((256, 256, 256), "widths of the policy's hidden layers", low=1, high=65_536)
    activation: str = option("mish", f"activation function of the policy's network: {', '.join(ACTIVATIONS)}")
    dropout: float = option(0.0, "share of hidden units that are dropped in training", low=0.0, high=0.99)
    std: float = option(0.0, "a fixed standard deviation (0: learned, for each state)", low=0.0)
    shared_std: bool = option(False, "learn one standard deviation for all states")
    max_log_std: float = option(2.0, "largest logarithm of a learned standard deviation", low=LOG_STD_LOW)
    squash: bool = option(False, "squash samples with tanh instead of clipping them to the range of actions")

    has_likelihood: ClassVar[bool] = True
    has_density: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {"eas": 1}

    def __post_init__(self) -> None:
        check_activation(self.activation)
        if self.std and self.shared_std:
            raise UserError("`std` fixes the standard deviation, and `shared_std` learns it: leave one of them out")

    @property
    def no_entropy(self) -> str:
        if self.std:
            return "with a fixed `std` it cannot change"
        return "" if self.squash else "that of samples clipped to the range of actions grows without bound"

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Gaussian:
        outputs = act_dim if self.std or self.shared_std else 2 * act_dim
        net = MLP(obs_dim, self.hidden, outputs, key, activation=self.activation)
        log_std = jnp.zeros(act_dim) if self.shared_std else None
        return Gaussian(net, self.std, self.squash, self.dropout, self.max_log_std, log_std)
