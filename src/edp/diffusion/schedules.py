"""Noise schedules: the levels of signal and noise after each of K steps.

Step ``k`` of ``0 … K-1`` is the paper's ``k + 1``. In continuous time that step is ``t = (k + 1) / K``. Between steps,
and down to clean data at ``t = 0``, ``log alpha`` is linear in ``t``. Schedules are computed in float64 NumPy, outside
compiled programs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from edp.errors import unknown

VP_BETA_MIN, VP_BETA_MAX = 0.1, 10.0

Floats = Float64[np.ndarray, "..."]
Times = Floats | float


def linear_betas(steps: int) -> Floats:
    """beta from 1e-4 to 2e-2 for 1,000 steps, scaled so that any number of steps ends at about the same noise level."""
    scale = 1000 / steps
    return np.minimum(np.linspace(scale * 1e-4, scale * 2e-2, steps), 0.999)


def cosine_betas(steps: int) -> Floats:
    """alpha_bar = cos²((t + 0.008) / 1.008 · pi/2) (Nichol and Dhariwal 2021, eq. 17)."""
    t = np.arange(steps + 1) / steps
    alpha_bar = np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2
    return np.clip(1 - alpha_bar[1:] / alpha_bar[:-1], 0, 0.999)


def vp_betas(steps: int) -> Floats:
    """The variance-preserving schedule of Diffusion-QL (Xiao et al. 2022), designed for few steps."""
    k = np.arange(1, steps + 1)
    spread = VP_BETA_MAX - VP_BETA_MIN
    return 1 - np.exp(-VP_BETA_MIN / steps - spread * (2 * k - 1) / (2 * steps**2))


SCHEDULES: dict[str, Callable[[int], Floats]] = {"linear": linear_betas, "cosine": cosine_betas, "vp": vp_betas}


@dataclass(frozen=True)
class Schedule:
    """A schedule of ``SCHEDULES`` with K = ``steps`` noise levels."""

    name: str = "linear"
    steps: int = 1000

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise unknown("schedule", self.name, SCHEDULES)

    @cached_property
    def betas(self) -> Floats:
        return SCHEDULES[self.name](self.steps)

    @cached_property
    def alpha_bars(self) -> Floats:
        """The product of 1 - beta up to each step: the share of the data's variance that is left."""
        return np.cumprod(1 - self.betas)

    @cached_property
    def elbo_weights(self) -> Floats:
        """beta / (2 · alpha · (1 - alpha_bar)) for each step, scaled to a mean of 1."""
        weights = self.betas / (2 * (1 - self.betas) * (1 - self.alpha_bars))
        return weights / weights.mean()

    def log_alpha(self, t: Times) -> Floats:
        """log sqrt(alpha_bar), linear between steps."""
        knots = np.arange(self.steps + 1) / self.steps
        return np.asarray(np.interp(t, knots, np.concatenate([[0.0], 0.5 * np.log(self.alpha_bars)])))

    def alpha(self, t: Times) -> Floats:
        """The factor of the data at time t: sqrt(alpha_bar)."""
        return np.asarray(np.exp(self.log_alpha(t)))

    def sigma(self, t: Times) -> Floats:
        """The factor of the noise at time t: sqrt(1 - alpha_bar)."""
        return np.asarray(np.sqrt(-np.expm1(2 * self.log_alpha(t))))

    def half_log_snr(self, t: Times) -> Floats:
        """lambda = log(alpha / sigma)."""
        return np.asarray(self.log_alpha(t) - np.log(self.sigma(t)))

    def step(self, t: Times) -> Floats:
        """The (fractional) step k that the network receives for time t; at least 0, the lowest step of training."""
        return np.asarray(np.maximum(self.steps * np.asarray(t, np.float64) - 1, 0))
