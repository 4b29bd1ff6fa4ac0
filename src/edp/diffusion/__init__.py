"""Diffusion and flow models without networks or RL: noise schedules, and samplers as tables of coefficients."""

from edp.diffusion.flows import FLOW_SAMPLERS, STRAIGHT, FlowSampler
from edp.diffusion.samplers import SAMPLERS, Sampler, integrate
from edp.diffusion.schedules import SCHEDULES, Schedule
from edp.diffusion.times import GRIDS

__all__ = [
    "FLOW_SAMPLERS",
    "GRIDS",
    "SAMPLERS",
    "SCHEDULES",
    "STRAIGHT",
    "FlowSampler",
    "Sampler",
    "Schedule",
    "integrate",
]
