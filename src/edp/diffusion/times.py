"""Grids of times at which a sampler calls the network, from pure noise (t = 1) towards clean data (t = 0)."""

from collections.abc import Callable

import numpy as np

from edp.diffusion.schedules import Floats, Schedule

END = 0.001  # the time at which DPM-Solver stops


def uniform_times(schedule: Schedule, calls: int) -> Floats:
    """Equal steps of time: the paper's grid."""
    del schedule
    return np.linspace(1.0, END, calls + 1)


def quadratic_times(schedule: Schedule, calls: int) -> Floats:
    """Equal steps of the square root of time, so that the last steps are short."""
    del schedule
    return np.linspace(1.0, np.sqrt(END), calls + 1) ** 2


def logsnr_times(schedule: Schedule, calls: int) -> Floats:
    """Equal steps of half-log-SNR."""
    fine = np.linspace(END, 1.0, 100_001)
    falling = schedule.half_log_snr(fine)
    wanted = np.linspace(falling[-1], falling[0], calls + 1)
    return np.concatenate([[1.0], np.interp(-wanted[1:-1], -falling, fine), [END]])


GRIDS: dict[str, Callable[[Schedule, int], Floats]] = {
    "uniform": uniform_times,
    "quadratic": quadratic_times,
    "logsnr": logsnr_times,
}


def step_times(schedule: Schedule, calls: int) -> Floats:
    """Times of about equally spaced steps of the schedule, from 1 to 0: the grid of DDPM and DDIM."""
    return np.round(np.linspace(schedule.steps, 0, calls + 1)) / schedule.steps
