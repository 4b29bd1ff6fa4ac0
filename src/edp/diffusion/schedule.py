"""Noise schedules: how much of the signal and how much noise is left after k of K steps.

Step ``k`` of ``0 … K-1`` is the paper's ``k + 1``. In continuous time that step is ``t = (k + 1) / K``; between steps,
and down to clean data at ``t = 0``, ``log alpha`` is linear in ``t``. All of it is float64 NumPy: schedules are data,
not part of a compiled program.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edp.errors import unknown

VP_BETA_MIN, VP_BETA_MAX = 0.1, 10.0


def linear(steps: int) -> np.ndarray:
    """beta from 1e-4 to 2e-2 for 1,000 steps, scaled so that the end is as noisy for any number of steps."""
    scale = 1000 / steps
    return np.minimum(np.linspace(scale * 1e-4, scale * 2e-2, steps), 0.999)


def cosine(steps: int) -> np.ndarray:
    """alpha_bar = cos²((t + 0.008) / 1.008 · pi/2) (Nichol and Dhariwal 2021, eq. 17)."""
    t = np.arange(steps + 1) / steps
    alpha_bar = np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2
    return np.clip(1 - alpha_bar[1:] / alpha_bar[:-1], 0, 0.999)


def vp(steps: int) -> np.ndarray:
    """The variance-preserving schedule of Diffusion-QL (Xiao et al. 2022), made for few steps."""
    k = np.arange(1, steps + 1)
    spread = VP_BETA_MAX - VP_BETA_MIN
    return 1 - np.exp(-VP_BETA_MIN / steps - spread * (2 * k - 1) / (2 * steps**2))


BETAS = {"linear": linear, "cosine": cosine, "vp": vp}


@dataclass(frozen=True)
class Schedule:
    """One of the named schedules with its number of steps K."""

    name: str = "linear"
    steps: int = 1000

    def __post_init__(self):
        if self.name not in BETAS:
            raise unknown("schedule", self.name, BETAS)

    @cached_property
    def betas(self) -> np.ndarray:
        return BETAS[self.name](self.steps)

    @cached_property
    def alpha_bars(self) -> np.ndarray:
        return np.cumprod(1 - self.betas)

    @cached_property
    def elbo_weights(self) -> np.ndarray:
        """beta / (2 · alpha · (1 - alpha_bar)) for each step, scaled to a mean of 1."""
        weights = self.betas / (2 * (1 - self.betas) * (1 - self.alpha_bars))
        return weights / weights.mean()

    def log_alpha(self, t):
        """log sqrt(alpha_bar), linear between steps."""
        knots = np.arange(self.steps + 1) / self.steps
        return np.interp(t, knots, np.concatenate([[0.0], 0.5 * np.log(self.alpha_bars)]))

    def alpha(self, t):
        return np.exp(self.log_alpha(t))

    def sigma(self, t):
        return np.sqrt(-np.expm1(2 * self.log_alpha(t)))

    def half_log_snr(self, t):
        """lambda = log(alpha / sigma)."""
        return self.log_alpha(t) - np.log(self.sigma(t))

    def step(self, t):
        """The (fractional) step k that the network is given for time t; it knows none below 0."""
        return np.maximum(self.steps * np.asarray(t, np.float64) - 1, 0)
