"""Diffusion models without networks or RL: noise schedules, and samplers as tables of coefficients."""

from edp.diffusion.samplers import SAMPLERS, Sampler, integrate
from edp.diffusion.schedules import SCHEDULES, Schedule
from edp.diffusion.times import GRIDS

__all__ = ["GRIDS", "SAMPLERS", "SCHEDULES", "Sampler", "Schedule", "integrate"]
