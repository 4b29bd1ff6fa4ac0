"""The mean flow policy: a flow that is sampled by one network call (Geng et al. 2025; OFQL, Nguyen and Yoo 2025)."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.networks import MLP, TIME_WIDTH, sinusoidal
from edp.options import option
from edp.policies.base import PLAIN, Control, Fit, Policy, PolicyConfig
from edp.policies.flow import initial_noise

TIME_SCALE = 3.0  # of times in the network: slow functions of time, since the loss has their derivative
TIME_MEAN, TIME_STD = -0.4, 1.0  # of the normal distribution whose logistic function gives the times
MOST_ENDS = 0.4  # with 0.5 all other pairs have equal times, and nothing connects 0 and 1: cloning fails
EQUAL_TIMES = 0.5  # share of the pairs of times that are equal


class MeanVelocityNet(eqx.Module):
    """u(x_t, r, t; s), the mean of the velocities from time t down to time r."""

    time: MLP
    body: MLP

    def __init__(self, obs_dim: int, act_dim: int, hidden: tuple[int, ...], key: PRNGKeyArray):
        time_key, body_key = jax.random.split(key)
        self.time = MLP(2 * TIME_WIDTH, (2 * TIME_WIDTH,), TIME_WIDTH, time_key)
        self.body = MLP(obs_dim + act_dim + TIME_WIDTH, hidden, act_dim, body_key)

    def __call__(self, obs: Array, point: Array, r: Float[Array, " m"], t: Float[Array, " m"]) -> Array:
        """The times are those of each row, or one for all of them."""
        times = jnp.broadcast_to(self.embed(r, t), (len(obs), TIME_WIDTH))
        return self.body(jnp.concatenate([obs, point, times], axis=-1))

    def embed(self, r: Float[Array, " n"], t: Float[Array, " n"]) -> Float[Array, "n 16"]:
        return self.time(jnp.concatenate([sinusoidal(TIME_SCALE * t), sinusoidal(TIME_SCALE * (t - r))], axis=-1))


class MeanFlow(Policy):
    """noise - u(noise, 0, 1). Here time runs from data at 0 to noise at 1, as in the papers."""

    net: MeanVelocityNet
    act_dim: int = eqx.field(static=True)
    ends: float = eqx.field(static=True)  # the share of the pairs of times that are (0, 1)

    def sample(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        noise = initial_noise(obs, self.act_dim, key, control)
        data, start = jnp.zeros(1, obs.dtype), jnp.ones(1, obs.dtype)
        return jnp.clip(noise - self.net(obs, noise, data, start), -1, 1)

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key: PRNGKeyArray) -> Fit:
        """|u - sg(v - (t - r) · du/dt)|² at x_t = (1 - t) · a + t · noise, where v = noise - a, and a sample.

        du/dt is the total derivative along the path, v · ∂u/∂x + ∂u/∂t, from the same call as u.
        """
        time_key, noise_key, sample_key = jax.random.split(key, 3)
        r, t = draw_times(time_key, action.shape[0], self.ends)
        noise = jax.random.normal(noise_key, action.shape, action.dtype)
        velocity = noise - action
        point = action + t[:, None] * velocity
        net = lambda point, r, t: self.net(obs, point, r, t)  # noqa: E731
        u, slope = jax.jvp(net, (point, r, t), (velocity, jnp.zeros_like(r), jnp.ones_like(t)))
        target = jax.lax.stop_gradient(velocity - (t - r)[:, None] * slope)
        bc = jnp.mean((u - target) ** 2, axis=-1)
        return Fit(bc=bc, action=self.sample(obs, sample_key), log_prob=-bc, variances=2.0)


def draw_times(key: PRNGKeyArray, count: int, ends: float) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Pairs r ≤ t of logit-normal times. Half of them are equal: without those, training collapses.

    A share of ``ends`` is (0, 1). Policies are sampled there, and logit-normal times hardly ever come near: a loss that
    pulls samples towards high values would meet no imitation loss.
    """
    pair_key, kind_key = jax.random.split(key)
    pair = jax.nn.sigmoid(TIME_MEAN + TIME_STD * jax.random.normal(pair_key, (2, count)))
    kind = jax.random.uniform(kind_key, (count,))
    t, at_ends = pair.max(axis=0), kind >= 1 - ends
    r = jnp.where(kind < EQUAL_TIMES, t, pair.min(axis=0))
    return jnp.where(at_ends, 0.0, r), jnp.where(at_ends, 1.0, t)


@dataclass(frozen=True)
class MeanFlowConfig(PolicyConfig):
    """Options of the mean flow policy."""

    ends: float = option(0.25, "share of times 0 and 1, where it is sampled (the paper: 0)", low=0.0, high=MOST_ENDS)
    hidden: tuple[int, ...] = option((256, 256, 256), "widths of the policy's hidden layers", low=1, high=65_536)

    can_scale: ClassVar[bool] = False
    has_likelihood: ClassVar[bool] = False

    @property
    def no_entropy(self) -> str:
        return "that of a flow policy is intractable"

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> MeanFlow:
        return MeanFlow(MeanVelocityNet(obs_dim, act_dim, self.hidden, key), act_dim, self.ends)
