"""The efficient diffusion policy (EDP, section 4)."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from edp.diffusion import Sampler, Schedule, integrate
from edp.networks import NoiseNet
from edp.options import option
from edp.policies.base import Fit, unit_gaussian_log_prob


class Diffusion(eqx.Module):
    net: NoiseNet
    act_dim: int = eqx.field(static=True)
    schedule: Schedule = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)

    deterministic: ClassVar[bool] = False

    def sample(self, obs: Float[Array, "n obs"], key) -> Float[Array, "n act"]:
        """Run the sampler from pure noise (EDP eq. 3). The last step may leave [-1, 1] a little: clip."""
        start_key, chain_key = jax.random.split(key)
        table = self.sampler.table(self.schedule)
        noise_at = self.net.at_states(obs, jnp.asarray(self.schedule.step(table.t), obs.dtype))
        start = jax.random.normal(start_key, (obs.shape[0], self.act_dim), obs.dtype)
        return jnp.clip(integrate(table, self.schedule, noise_at, start, chain_key), -1, 1)

    def with_sampler(self, sampler: Sampler) -> "Diffusion":
        """The same policy, sampled in another way."""
        return Diffusion(self.net, self.act_dim, self.schedule, sampler)

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key) -> Fit:
        """Corrupt the data's actions, predict the noise once, and take everything from that one call."""
        step_key, noise_key = jax.random.split(key)
        k = jax.random.randint(step_key, action.shape[:1], 0, self.schedule.steps)
        noise = jax.random.normal(noise_key, action.shape, action.dtype)
        levels = np.sqrt(self.schedule.alpha_bars), np.sqrt(1 - self.schedule.alpha_bars)
        alpha, sigma = (jnp.asarray(level, action.dtype)[k][:, None] for level in levels)
        corrupted = alpha * action + sigma * noise  # eq. 8
        predicted = self.net(obs, corrupted, k.astype(action.dtype))
        approximate = jnp.clip((corrupted - sigma * predicted) / alpha, -1, 1)  # action approximation, eq. 9
        return Fit(
            bc=jnp.mean((noise - predicted) ** 2, axis=-1),  # the diffusion loss, eq. 5
            action=approximate,
            log_prob=unit_gaussian_log_prob(action, approximate),  # of eq. 13
        )


@dataclass(frozen=True)
class DiffusionConfig:
    schedule: str = option("linear", "noise schedule: linear, cosine or vp")
    diffusion_steps: int = option(1000, "number of noise levels K", low=1)
    sampler: str = option("dpm", "dpm, dpm++ (2M), ddim or ddpm")
    calls: int = option(15, "network calls of the sampler", low=1)
    order: int = option(3, "order of the dpm sampler: 1, 2 or 3", low=1, high=3)
    hidden: tuple[int, ...] = option((256, 256, 256), "widths of the policy's hidden layers", low=1)

    @property
    def noise_schedule(self) -> Schedule:
        return Schedule(self.schedule, self.diffusion_steps)

    def build(self, obs_dim: int, act_dim: int, key) -> Diffusion:
        sampler = Sampler(self.sampler, self.calls, self.order)
        sampler.table(self.noise_schedule)  # refuses what does not go together
        return Diffusion(NoiseNet(obs_dim, act_dim, self.hidden, key), act_dim, self.noise_schedule, sampler)
