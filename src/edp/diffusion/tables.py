"""Samplers as tables: short functions that turn a schedule and a grid of times into coefficients.

Every sampler here is the same linear recursion. The samplers differ in the coefficients, which depend on the schedule
alone. Row ``i`` calls the model at time ``t`` with the point ``y``. The model's output ``m`` is a noise prediction, or
a data prediction for DPM-Solver++. The next point is

    y = base_coef · base + kept_coef · kept + now_coef · m + noise_coef · z,      z ~ N(0, I)

Here ``base`` is the point at the start of the current step, and ``kept`` is a model output from an earlier row: that of
the step's start for singlestep solvers, that of the step before for the multistep solver.

Tables are computed once, in float64 NumPy. ``edp.diffusion.samplers.integrate`` runs them.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from edp.diffusion.schedules import Floats, Schedule


class Row(NamedTuple):
    """The coefficients of one network call."""

    t: float
    base_coef: float
    now_coef: float
    kept_coef: float = 0.0
    noise_coef: float = 0.0
    keep: bool = True  # m becomes ``kept`` for the rows that follow
    advance: bool = True  # y becomes ``base`` for the rows that follow


class Table(NamedTuple):
    """The rows of a sampler, as one array for each column."""

    t: Floats
    base_coef: Floats
    now_coef: Floats
    kept_coef: Floats
    noise_coef: Floats
    keep: np.ndarray[Any, np.dtype[np.bool_]]
    advance: np.ndarray[Any, np.dtype[np.bool_]]
    predicts_data: bool = False  # m is the estimate x̂₀ instead of the noise


def table_of_rows(rows: list[Row], predicts_data: bool = False) -> Table:
    return Table(*(np.array(column) for column in zip(*rows, strict=True)), predicts_data=predicts_data)


def ddpm_table(schedule: Schedule, ts: Floats) -> Table:
    """Ancestral sampling (EDP eq. 4) on any sub-grid of steps that ends at t = 0.

    With a = alpha_t / alpha_s and b = 1 - a², x_s = (x - b / sigma_t · noise) / a + sqrt(v) · z. The variance v is that
    of q(x_s | x_t, x_0), b · sigma_s² / sigma_t², which is exact for steps of any length. The paper prints b, which is
    the same to first order in the step.
    """
    rows: list[Row] = []
    for t, s in pairwise(ts):
        (alpha_t, sigma_t), (alpha_s, sigma_s) = signal_and_noise(schedule, t), signal_and_noise(schedule, s)
        ratio = alpha_t / alpha_s
        b = 1 - ratio**2
        rows.append(Row(t, 1 / ratio, -b / (sigma_t * ratio), noise_coef=np.sqrt(b) * sigma_s / sigma_t))
    return table_of_rows(rows)


def ddim_table(schedule: Schedule, ts: Floats) -> Table:
    """Deterministic DDIM (Song et al. 2021, eq. 12): x_s = alpha_s · x̂₀ + sigma_s · noise."""
    rows: list[Row] = []
    for t, s in pairwise(ts):
        (alpha_t, sigma_t), (alpha_s, sigma_s) = signal_and_noise(schedule, t), signal_and_noise(schedule, s)
        rows.append(Row(t, alpha_s / alpha_t, sigma_s - alpha_s / alpha_t * sigma_t))
    return table_of_rows(rows)


def dpm_solver_table(schedule: Schedule, ts: Floats, orders: tuple[int, ...]) -> Table:
    """Singlestep DPM-Solver-1, -2 and -3 (Lu et al. 2022, eq. 4.1 and algorithms 1 and 2), for noise prediction.

    A step of order n makes n calls, at n consecutive times of the grid. All steps make ``sum(orders)`` calls.
    """
    alpha, sigma, lam = schedule.alpha(ts), schedule.sigma(ts), schedule.half_log_snr(ts)
    rows: list[Row] = []
    start = 0
    for order in orders:
        for stage in range(order):
            to = start + stage + 1  # the point that this row computes: an inner point, or the end of the step
            h, is_last = lam[to] - lam[start], stage == order - 1
            first = -sigma[to] * np.expm1(h)  # the coefficient of the noise at the step's start
            if stage == 0:
                now, kept = first, 0.0
            else:
                r = (lam[start + stage] - lam[start]) / h  # where m is evaluated, as a fraction of h
                slope = 0.5 * np.expm1(h) / r if order == 2 else (np.expm1(h) / h - 1) / r
                now, kept = -sigma[to] * slope, first + sigma[to] * slope
            rows.append(Row(ts[start + stage], alpha[to] / alpha[start], now, kept, 0.0, stage == 0, is_last))
        start += order
    return table_of_rows(rows)


def dpm_solver_pp_table(schedule: Schedule, ts: Floats) -> Table:
    """Multistep DPM-Solver++(2M) (Lu et al. 2022b, algorithm 2), for data prediction, with one call per step.

    The last step is of first order, as in ``dpm_orders``.
    """
    alpha, sigma, lam = schedule.alpha(ts), schedule.sigma(ts), schedule.half_log_snr(ts)
    rows: list[Row] = []
    for i, t in enumerate(ts[:-1]):
        h = lam[i + 1] - lam[i]
        gain = -alpha[i + 1] * np.expm1(-h)
        inner = 0 < i < len(ts) - 2
        back = 0.5 * h / (lam[i] - lam[i - 1]) if inner else 0.0  # 1 / (2 r), where r is the ratio of the steps
        rows.append(Row(t, sigma[i + 1] / sigma[i], gain * (1 + back), -gain * back))
    return table_of_rows(rows, predicts_data=True)


def dpm_orders(calls: int, order: int) -> tuple[int, ...]:
    """The orders of singlestep steps that make ``calls`` calls: 15 calls of order 3 give 3, 3, 3, 3, 2, 1.

    The last step is of first order: it is by far the longest in half-log-SNR, and a higher order makes it less accurate
    (see benchmarks/solvers.py).
    """
    full, rest = divmod(calls - 1, order)
    return (order,) * full + ((rest,) if rest else ()) + (1,)


def signal_and_noise(schedule: Schedule, t: float) -> tuple[float, float]:
    """alpha and sigma at t, with exactly 1 and 0 at t = 0 (clean data)."""
    return (1.0, 0.0) if t == 0 else (float(schedule.alpha(t)), float(schedule.sigma(t)))
