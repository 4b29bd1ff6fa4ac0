"""The flow policy: flow matching (Lipman et al. 2023; Liu et al. 2023, rectified flow)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from edp.diffusion import FLOW_SAMPLERS, STRAIGHT, FlowSampler, integrate
from edp.errors import unknown
from edp.networks import NoiseNet
from edp.options import option
from edp.policies.base import PLAIN, Control, Fit, Policy, PolicyConfig, unit_gaussian_log_prob

TIME_SCALE = 1000.0  # times are given to the network as if they were steps of 0 … 1000
SMALLEST_SIGNAL = 1e-3  # in place of t = 0, where ``Control.scale`` divides by t


def gaussian_likelihood(action: Array, approximate: Array, bc: Array) -> Float[Array, " n"]:
    """The surrogate of EDP's eq. 13: log N(a; â, I)."""
    del bc
    return unit_gaussian_log_prob(action, approximate)


def weighted_likelihood(action: Array, approximate: Array, bc: Array) -> Float[Array, " n"]:
    """Minus the imitation loss, so that advantages weight the imitation itself."""
    del action, approximate
    return -bc


LIKELIHOODS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "gaussian": gaussian_likelihood,
    "weighted": weighted_likelihood,
}


class Flow(Policy):
    """A network of velocities v(x_t, t; s), with the sampler that follows them from noise to actions."""

    net: NoiseNet
    act_dim: int = eqx.field(static=True)
    sampler: FlowSampler = eqx.field(static=True)
    likelihood: Callable[[Array, Array, Array], Array] = eqx.field(static=True, default=gaussian_likelihood)

    def sample(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        return self.follow(obs, initial_noise(obs, self.act_dim, key, control), control.scale)

    def follow(
        self, obs: Float[Array, "n obs"], start: Float[Array, "n act"], scale: float | Array = 1.0
    ) -> Float[Array, "n act"]:
        """The actions that the flow leads to from ``start``.

        ``scale`` is a factor of the predicted noise, y - t · v: the velocity becomes scale · v + (1 - scale) · y / t.
        """
        table = self.sampler.table()
        velocity = self.net.at_states(obs, jnp.asarray(TIME_SCALE * table.t, obs.dtype))
        signal, rest = (jnp.asarray(part, obs.dtype) for part in (np.maximum(table.t, SMALLEST_SIGNAL), 1 - table.t))

        def data_at(y: Array, i: Array) -> Array:
            return y + rest[i] * (scale * velocity(y, i) + (1 - scale) * y / signal[i])

        unused = jax.random.key(0)  # the chain is deterministic
        return jnp.clip(integrate(table, STRAIGHT, data_at, start, unused), -1, 1)

    def with_sampler(self, sampler: FlowSampler) -> "Flow":
        """The same policy with another sampler."""
        return replace(self, sampler=sampler)

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key: PRNGKeyArray) -> Fit:
        """|v(x_t, t) - (a - noise)|² at x_t = (1 - t) · noise + t · a, and the action x_t + (1 - t) · v."""
        time_key, noise_key = jax.random.split(key)
        t = jax.random.uniform(time_key, (action.shape[0], 1), action.dtype)
        noise = jax.random.normal(noise_key, action.shape, action.dtype)
        point = (1 - t) * noise + t * action
        velocity = self.net(obs, point, TIME_SCALE * t[:, 0])
        approximate = jnp.clip(point + (1 - t) * velocity, -1, 1)
        bc = jnp.mean((velocity - (action - noise)) ** 2, axis=-1)
        return Fit(
            bc=bc,
            action=approximate,
            log_prob=self.likelihood(action, approximate, bc),
            precision=1 / (1 - t) ** 2,
            snr=(t / (1 - t)) ** 2,
        )


def initial_noise(
    obs: Float[Array, "n obs"], act_dim: int, key: PRNGKeyArray, control: Control
) -> Float[Array, "n act"]:
    """The noise that a sample starts from. As in a diffusion policy, the key's other half is for noise on the way."""
    start_key, _ = jax.random.split(key)
    return control.noise * jax.random.normal(start_key, (obs.shape[0], act_dim), obs.dtype)


@dataclass(frozen=True)
class FlowConfig(PolicyConfig):
    """Options of the flow policy."""

    sampler: str = option("euler", f"sampler: {', '.join(FLOW_SAMPLERS)} (of second order)")
    calls: int = option(10, "network calls of the sampler", low=1)
    likelihood: str = option("gaussian", f"surrogate of the likelihood: {', '.join(LIKELIHOODS)}")
    hidden: tuple[int, ...] = option((256, 256, 256), "widths of the policy's hidden layers", low=1, high=65_536)

    has_likelihood: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.likelihood not in LIKELIHOODS:
            raise unknown("choice of `likelihood`", self.likelihood, LIKELIHOODS)

    @property
    def no_entropy(self) -> str:
        return "that of a flow policy is intractable"

    @property
    def asks_for(self) -> dict[str, str]:
        return {"log_prob": f"`likelihood={self.likelihood}`"} if self.likelihood != "gaussian" else {}

    def sampler_for(self, name: str = "", calls: int = 0) -> FlowSampler:
        return FlowSampler(name or self.sampler, calls or self.calls)

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Flow:
        net = NoiseNet(obs_dim, act_dim, self.hidden, key)
        return Flow(net, act_dim, self.sampler_for(), LIKELIHOODS[self.likelihood])
