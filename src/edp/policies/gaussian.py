"""The Gaussian policy: a mean for each state, and a spread that is learned or fixed."""

import math
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from edp.networks import MLP
from edp.options import option
from edp.policies.base import PLAIN, Control, Fit, Policy

LOG_STD = -5.0, 2.0  # a learned spread stays between these
INSIDE = 1 - 1e-6  # data at the very border of the box has no finite place before squashing


class Gaussian(Policy):
    """N(tanh(mean), std²) cut off at the box, or, squashed, tanh(N(mean, std²)), which never leaves it."""

    net: MLP
    std: float = eqx.field(static=True)  # 0: the network's second half is its logarithm
    squash: bool = eqx.field(static=True)

    def moments(self, obs: Float[Array, "n obs"]) -> tuple[Array, Array]:
        """Mean and logarithm of the standard deviation of the Gaussian (before squashing)."""
        out = self.net(obs)
        if self.std:
            mean, log_std = out, jnp.full_like(out, math.log(self.std))
        else:
            mean, log_std = jnp.split(out, 2, axis=-1)
            log_std = jnp.clip(log_std, *LOG_STD)
        return mean if self.squash else jnp.tanh(mean), log_std

    def act(self, obs: Float[Array, "n obs"], key, control: Control = PLAIN) -> Float[Array, "n act"]:
        """The mean, or the middle (median) of the squashed distribution."""
        del key, control
        mean, _ = self.moments(obs)
        return jnp.tanh(mean) if self.squash else mean

    def sample(self, obs: Float[Array, "n obs"], key, control: Control = PLAIN) -> Float[Array, "n act"]:
        """With a density to the power of ``control.scale``, which divides the variance by it."""
        mean, log_std = self.moments(obs)
        std = jnp.exp(log_std) * (control.noise / control.scale**0.5)
        raw = mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        return jnp.tanh(raw) if self.squash else jnp.clip(raw, -1, 1)

    def sample_with_log_prob(self, obs: Float[Array, "n obs"], key) -> tuple[Array, Array]:
        mean, log_std = self.moments(obs)
        raw = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape, mean.dtype)
        log_prob = gaussian_log_prob(raw, mean, log_std)
        if self.squash:
            return jnp.tanh(raw), log_prob - log_slope(raw)
        return jnp.clip(raw, -1, 1), log_prob

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key) -> Fit:
        mean, log_std = self.moments(obs)
        if self.squash:
            raw = jnp.arctanh(jnp.clip(action, -INSIDE, INSIDE))
            log_prob = gaussian_log_prob(raw, mean, log_std) - log_slope(raw)
        else:
            log_prob = gaussian_log_prob(action, mean, log_std)
        return Fit(bc=-log_prob, action=self.act(obs, key), log_prob=log_prob)

    def around(self, obs: Float[Array, "n obs"], fit: Fit, key, count: int) -> Float[Array, "count n act"]:
        """Samples of the policy itself: its likelihood is no surrogate."""
        del fit
        return jax.vmap(self.sample, (None, 0))(obs, jax.random.split(key, count))


def gaussian_log_prob(x: Array, mean: Array, log_std: Array) -> Float[Array, " n"]:
    return jnp.sum(-0.5 * ((x - mean) * jnp.exp(-log_std)) ** 2 - log_std - 0.5 * math.log(2 * math.pi), axis=-1)


def log_slope(raw: Float[Array, "n act"]) -> Float[Array, " n"]:
    """log of the derivative of tanh, 1 - tanh², in a form that does not underflow."""
    return jnp.sum(2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw)), axis=-1)


@dataclass(frozen=True)
class GaussianConfig:
    hidden: tuple[int, ...] = option((256, 256, 256), "widths of the policy's hidden layers", low=1, high=65_536)
    std: float = option(0.0, "a fixed standard deviation (0: learned, for each state)", low=0.0)
    squash: bool = option(False, "squash samples with tanh instead of cutting them off at the box")

    deterministic: ClassVar[bool] = False
    reads_histories: ClassVar[bool] = False
    asks_for: ClassVar[dict[str, str]] = {}

    @property
    def no_entropy(self) -> str:
        if self.std:
            return "with a fixed --std it cannot change"
        return "" if self.squash else "that of samples cut off at the box grows without bound"

    def build(self, obs_dim: int, act_dim: int, key) -> Gaussian:
        outputs = act_dim if self.std else 2 * act_dim
        return Gaussian(MLP(obs_dim, self.hidden, outputs, key), self.std, self.squash)
