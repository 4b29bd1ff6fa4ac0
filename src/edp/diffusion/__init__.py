"""Diffusion models without networks or RL: schedules, and samplers as tables of coefficients."""

from edp.diffusion.samplers import Sampler, integrate
from edp.diffusion.schedule import Schedule

__all__ = ["Sampler", "Schedule", "integrate"]
