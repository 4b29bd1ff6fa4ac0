"""The efficient diffusion policy (EDP, section 4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from edp.diffusion import GRIDS, SAMPLERS, SCHEDULES, Sampler, Schedule, integrate
from edp.diffusion.samplers import WITH_GRID
from edp.errors import unknown
from edp.networks import NoiseNet
from edp.options import option
from edp.policies.base import PLAIN, Control, Corrupted, Fit, Policy, PolicyConfig, unit_gaussian_log_prob


class Denoised(NamedTuple):
    """The result of one call of the network on corrupted actions of the data."""

    action: Float[Array, "n act"]  # actions of the data
    approximate: Float[Array, "n act"]  # the action approximation, eq. 9
    error: Float[Array, "n act"]  # the noise minus its prediction
    bc: Float[Array, " n"]  # the diffusion loss
    elbo_weight: Float[Array, " n"]


def gaussian_likelihood(denoised: Denoised) -> Float[Array, " n"]:
    """The surrogate of eq. 13: log N(a; â⁰, I)."""
    return unit_gaussian_log_prob(denoised.action, denoised.approximate)


def elbo_likelihood(denoised: Denoised) -> Float[Array, " n"]:
    """The lower bound of eq. 12, up to a constant: -w_k · |noise - predicted noise|²."""
    return -denoised.elbo_weight * jnp.sum(denoised.error**2, axis=-1)


def weighted_likelihood(denoised: Denoised) -> Float[Array, " n"]:
    """Minus the diffusion loss, so that advantages weight the imitation itself."""
    return -denoised.bc


LIKELIHOODS: dict[str, Callable[[Denoised], Array]] = {
    "gaussian": gaussian_likelihood,
    "elbo": elbo_likelihood,
    "weighted": weighted_likelihood,
}
PREDICTIONS = ("noise", "v")
TRAIN_ACTIONS = ("approximate", "chain")


class Diffusion(Policy):
    """A noise prediction network, with the sampler that turns it into actions."""

    net: NoiseNet
    act_dim: int = eqx.field(static=True)
    schedule: Schedule = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    likelihood: Callable[[Denoised], Array] = eqx.field(static=True, default=gaussian_likelihood)
    through_chain: bool = eqx.field(
        static=True, default=False
    )  # ``Fit.action`` is a sample, instead of the approximation
    predicts_v: bool = eqx.field(static=True, default=False)  # the network predicts v = alpha · noise - sigma · action

    def sample(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        """Run the sampler from pure noise (EDP eq. 3), and clip: its last step may slightly leave [-1, 1]."""
        start_key, chain_key = jax.random.split(key)
        table = self.sampler.table(self.schedule)
        predict = self.net.at_states(obs, jnp.asarray(self.schedule.step(table.t), obs.dtype))
        alphas, sigmas = (jnp.asarray(f(table.t), obs.dtype) for f in (self.schedule.alpha, self.schedule.sigma))

        def data_at(y: Array, i: Array) -> Array:
            output = predict(y, i)
            noise = control.scale * (alphas[i] * output + sigmas[i] * y if self.predicts_v else output)
            return (y - sigmas[i] * noise) / alphas[i]

        start = control.noise * jax.random.normal(start_key, (obs.shape[0], self.act_dim), obs.dtype)
        clip = 1.0 if self.sampler.threshold else None
        sample = integrate(table, self.schedule, data_at, start, chain_key, clip, control.noise)
        return jnp.clip(sample, -1, 1)

    def with_sampler(self, sampler: Sampler) -> "Diffusion":
        """The same policy with another sampler."""
        return replace(self, sampler=sampler)

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key: PRNGKeyArray) -> Fit:
        """Corrupt the data's actions and predict the noise. All results come from this one network call."""
        step_key, noise_key, chain_key = jax.random.split(key, 3)
        k = jax.random.randint(step_key, action.shape[:1], 0, self.schedule.steps)
        noise = jax.random.normal(noise_key, action.shape, action.dtype)
        levels = np.sqrt(self.schedule.alpha_bars), np.sqrt(1 - self.schedule.alpha_bars)
        alpha, sigma = (jnp.asarray(level, action.dtype)[k][:, None] for level in levels)
        corrupted = alpha * action + sigma * noise  # eq. 8
        output = self.net(obs, corrupted, k.astype(action.dtype))
        if self.predicts_v:  # Salimans and Ho (2022), appendix D
            estimate, error = alpha * corrupted - sigma * output, alpha * noise - sigma * action - output
            noise_error = alpha * error
        else:
            estimate, error = (corrupted - sigma * output) / alpha, noise - output  # eq. 9
            noise_error = error
        approximate = jnp.clip(estimate, -1, 1)
        elbo_weight = jnp.asarray(self.schedule.elbo_weights, action.dtype)[k]
        bc = jnp.mean(error**2, axis=-1)  # the diffusion loss, eq. 5
        return Fit(
            bc=bc,
            action=self.sample(obs, chain_key) if self.through_chain else approximate,
            log_prob=self.likelihood(Denoised(action, approximate, noise_error, bc, elbo_weight)),
            precision=1 / sigma**2 if self.predicts_v else alpha**2 / sigma**2,
            snr=alpha**2 / sigma**2,
            corrupted=None if self.predicts_v else Corrupted(corrupted, output, sigma),
        )


@dataclass(frozen=True)
class DiffusionConfig(PolicyConfig):
    """Options of the diffusion policy."""

    schedule: str = option("linear", f"noise schedule: {', '.join(SCHEDULES)}")
    diffusion_steps: int = option(1000, "number of noise levels K", low=1)
    sampler: str = option("dpm", f"sampler: {', '.join(SAMPLERS)}")
    grid: str = option("uniform", f"times at which {' and '.join(WITH_GRID)} call the network: {', '.join(GRIDS)}")
    calls: int = option(15, "network calls of the sampler (0: one for each noise level)", low=0)
    order: int = option(3, "order of the dpm sampler: 1, 2 or 3", low=1, high=3)
    prediction: str = option("noise", "what the network predicts: noise, or v (alpha · noise - sigma · action)")
    likelihood: str = option("gaussian", f"surrogate of the likelihood: {', '.join(LIKELIHOODS)}")
    train_action: str = option(
        "approximate", "actions in the policy's loss: approximate (one network call), or chain (sampled)"
    )
    hidden: tuple[int, ...] = option((256, 256, 256), "widths of the policy's hidden layers", low=1, high=65_536)

    has_likelihood: ClassVar[bool] = False
    recipe: ClassVar[Mapping[str, Any]] = {"prediction": "v", "sampler": "dpm++", "grid": "quadratic", "calls": 6}

    def __post_init__(self) -> None:
        if self.likelihood not in LIKELIHOODS:
            raise unknown("choice of `likelihood`", self.likelihood, LIKELIHOODS)
        if self.prediction not in PREDICTIONS:
            raise unknown("choice of `prediction`", self.prediction, PREDICTIONS)
        if self.train_action not in TRAIN_ACTIONS:
            raise unknown("choice of `train_action`", self.train_action, TRAIN_ACTIONS)

    @property
    def no_entropy(self) -> str:
        return "that of a diffusion policy is intractable"

    @property
    def predicts_noise(self) -> bool:
        return self.prediction == "noise"

    @property
    def asks_for(self) -> dict[str, str]:
        action = {"action": "`train_action=chain`"} if self.train_action == "chain" else {}
        log_prob = {"log_prob": f"`likelihood={self.likelihood}`"} if self.likelihood != "gaussian" else {}
        return action | log_prob

    @property
    def noise_schedule(self) -> Schedule:
        return Schedule(self.schedule, self.diffusion_steps)

    def sampler_for(self, name: str = "", calls: int = 0) -> Sampler:
        """The sampler of these options, or a sampler with another name or number of calls.

        Raises a ``UserError`` if the sampler does not fit the schedule.
        """
        own = self.calls or self.diffusion_steps
        if name in ("", self.sampler):
            sampler = Sampler(self.sampler, calls or (15 if name else own), self.order, self.grid)
        else:
            sampler = Sampler(name, calls or 15, self.order)
        sampler.table(self.noise_schedule)
        return sampler

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Diffusion:
        sampler = self.sampler_for()
        return Diffusion(
            NoiseNet(obs_dim, act_dim, self.hidden, key),
            act_dim,
            self.noise_schedule,
            sampler,
            LIKELIHOODS[self.likelihood],
            self.train_action == "chain",
            self.prediction == "v",
        )
