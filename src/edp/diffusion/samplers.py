"""Samplers: each is a short function that turns a schedule and a grid of times into a table of coefficients.

Every sampler here is the same linear recursion; only its coefficients differ, and they depend on the schedule alone.
At row ``i`` the model is called at time ``t`` with the point ``y``, which gives ``m`` (noise, or data for ++), and

    y = base_coef · base + kept_coef · kept + now_coef · m + noise_coef · z,      z ~ N(0, I)

where ``base`` is the point at the start of the current step, and ``kept`` a model output remembered from an earlier
row: that of the step's start for the singlestep solvers, that of the step before for the multistep one.
Tables are float64 NumPy, made once; one loop (``integrate``) runs them all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp.diffusion.schedule import Schedule
from edp.errors import UserError, unknown


class Row(NamedTuple):
    """One network call."""

    t: float
    base_coef: float
    now_coef: float
    kept_coef: float = 0.0
    noise_coef: float = 0.0
    keep: bool = True  # m is remembered for later rows
    advance: bool = True  # y becomes the base of the next row


class Table(NamedTuple):
    """The rows of a sampler, column by column."""

    t: np.ndarray
    base_coef: np.ndarray
    now_coef: np.ndarray
    kept_coef: np.ndarray
    noise_coef: np.ndarray
    keep: np.ndarray
    advance: np.ndarray
    predicts_data: bool = False  # m is x̂₀ rather than the noise


def table(rows: list[Row], predicts_data: bool = False) -> Table:
    return Table(*(np.array(column) for column in zip(*rows, strict=True)), predicts_data=predicts_data)


END = 0.001  # the time at which DPM-Solver stops


def uniform(schedule: Schedule, calls: int) -> np.ndarray:
    """Equal steps of time: the paper's grid."""
    del schedule
    return np.linspace(1.0, END, calls + 1)


def quadratic(schedule: Schedule, calls: int) -> np.ndarray:
    """Equal steps of the root of time: short ones at the end."""
    del schedule
    return np.linspace(1.0, np.sqrt(END), calls + 1) ** 2


def logsnr(schedule: Schedule, calls: int) -> np.ndarray:
    """Equal steps of half-log-SNR."""
    fine = np.linspace(END, 1.0, 100_001)
    falling = schedule.half_log_snr(fine)
    wanted = np.linspace(falling[-1], falling[0], calls + 1)
    return np.concatenate([[1.0], np.interp(-wanted[1:-1], -falling, fine), [END]])


GRIDS = {"uniform": uniform, "quadratic": quadratic, "logsnr": logsnr}


def steps(schedule: Schedule, calls: int) -> np.ndarray:
    """About equally spaced times of the schedule's own steps, from 1 to 0: the grid of DDPM and DDIM."""
    return np.round(np.linspace(schedule.steps, 0, calls + 1)) / schedule.steps


def ddpm(schedule: Schedule, ts: np.ndarray) -> Table:
    """Ancestral sampling (EDP eq. 4) on any sub-grid of steps, the last of them to t = 0.

    With a = alpha_t / alpha_s and b = 1 - a², x_s = (x - b / sigma_t · noise) / a + sqrt(v) · z. The variance v is that
    of q(x_s | x_t, x_0), b · sigma_s² / sigma_t², so that five steps are as right as a thousand; the paper prints b,
    which is the same to the first order in the step.
    """
    rows = []
    for t, s in pairwise(ts):
        (alpha_t, sigma_t), (alpha_s, sigma_s) = levels(schedule, t), levels(schedule, s)
        ratio = alpha_t / alpha_s
        b = 1 - ratio**2
        rows.append(Row(t, 1 / ratio, -b / (sigma_t * ratio), noise_coef=np.sqrt(b) * sigma_s / sigma_t))
    return table(rows)


def ddim(schedule: Schedule, ts: np.ndarray) -> Table:
    """Deterministic DDIM (Song et al. 2021, eq. 12): x_s = alpha_s · x̂₀ + sigma_s · noise."""
    rows = []
    for t, s in pairwise(ts):
        (alpha_t, sigma_t), (alpha_s, sigma_s) = levels(schedule, t), levels(schedule, s)
        rows.append(Row(t, alpha_s / alpha_t, sigma_s - alpha_s / alpha_t * sigma_t))
    return table(rows)


def dpm_solver(schedule: Schedule, ts: np.ndarray, orders: tuple[int, ...]) -> Table:
    """Singlestep DPM-Solver-1, -2 and -3 (Lu et al. 2022, eq. 4.1 and algorithms 1 and 2), for noise prediction.

    A step of order n uses n calls, at the n points of the grid where it starts; ``sum(orders)`` calls in all.
    """
    alpha, sigma, lam = schedule.alpha(ts), schedule.sigma(ts), schedule.half_log_snr(ts)
    rows, start = [], 0
    for order in orders:
        for stage in range(order):
            to = start + stage + 1  # the point this row leads to: an inner one, or the step's end
            h, done = lam[to] - lam[start], stage == order - 1
            first = -sigma[to] * np.expm1(h)  # of the noise at the step's start
            if stage == 0:
                now, kept = first, 0.0
            else:
                r = (lam[start + stage] - lam[start]) / h  # where m was evaluated, as a share of this row's way
                slope = 0.5 * np.expm1(h) / r if order == 2 else (np.expm1(h) / h - 1) / r
                now, kept = -sigma[to] * slope, first + sigma[to] * slope
            rows.append(Row(ts[start + stage], alpha[to] / alpha[start], now, kept, 0.0, stage == 0, done))
        start += order
    return table(rows)


def dpm_solver_pp(schedule: Schedule, ts: np.ndarray) -> Table:
    """Multistep DPM-Solver++(2M) (Lu et al. 2022b, algorithm 2), for data prediction; one call a step.

    The last step is of first order, as in ``dpm_orders``.
    """
    alpha, sigma, lam = schedule.alpha(ts), schedule.sigma(ts), schedule.half_log_snr(ts)
    rows = []
    for i, t in enumerate(ts[:-1]):
        h = lam[i + 1] - lam[i]
        gain = -alpha[i + 1] * np.expm1(-h)
        inner = 0 < i < len(ts) - 2
        back = 0.5 * h / (lam[i] - lam[i - 1]) if inner else 0.0  # 1 / (2 r), r the ratio of the steps
        rows.append(Row(t, sigma[i + 1] / sigma[i], gain * (1 + back), -gain * back))
    return table(rows, predicts_data=True)


def dpm_orders(calls: int, order: int) -> tuple[int, ...]:
    """Steps of the full order, then what is left, then one of the first order: 15 calls are 3, 3, 3, 3, 2, 1.

    The last step, much the longest in half-log-SNR, is where a higher order does harm (benchmarks/solvers.py).
    """
    full, rest = divmod(calls - 1, order)
    return (order,) * full + ((rest,) if rest else ()) + (1,)


def levels(schedule: Schedule, t: float) -> tuple[float, float]:
    """alpha and sigma at t, where t = 0 is clean data."""
    return (1.0, 0.0) if t == 0 else (float(schedule.alpha(t)), float(schedule.sigma(t)))


@dataclass(frozen=True)
class Sampler:
    """A named sampler with its number of network calls."""

    name: str = "dpm"
    calls: int = 15
    order: int = 3  # of dpm only
    grid: str = "uniform"  # of dpm and dpm++ only
    threshold: bool = True  # cut estimates of the action off at ±1

    def __post_init__(self):
        if self.name not in NAMES:
            raise unknown("sampler", self.name, NAMES)
        if self.calls < 1:
            raise UserError(f"a sampler needs at least one network call, not {self.calls}")
        if self.order not in (1, 2, 3):
            raise UserError(f"DPM-Solver has order 1, 2 or 3, not {self.order}")
        if self.grid not in GRIDS:
            raise unknown("grid", self.grid, GRIDS)
        if self.grid != "uniform" and not self.name.startswith("dpm"):
            raise UserError(f"{self.name} takes steps of the noise schedule: --grid is for dpm and dpm++ only")

    def table(self, schedule: Schedule) -> Table:
        return _table(self, schedule)


@lru_cache(maxsize=64)
def _table(sampler: Sampler, schedule: Schedule) -> Table:
    calls = sampler.calls
    if sampler.name in ("ddpm", "ddim"):
        if calls > schedule.steps:
            raise UserError(f"{sampler.name} has at most one call a step: {calls} calls for {schedule.steps} steps")
        return {"ddpm": ddpm, "ddim": ddim}[sampler.name](schedule, steps(schedule, calls))
    ts = GRIDS[sampler.grid](schedule, calls)
    return (
        dpm_solver_pp(schedule, ts)
        if sampler.name == "dpm++"
        else dpm_solver(schedule, ts, dpm_orders(calls, sampler.order))
    )


NAMES = ("dpm", "dpm++", "ddim", "ddpm")


def integrate(
    table: Table,
    schedule: Schedule,
    noise_at: Callable,
    x: jax.Array,
    key,
    clip: float | None = 1.0,
    noise_scale: float = 1.0,
) -> jax.Array:
    """Run a sampler from ``x``; ``noise_at(y, i)`` is the network's noise prediction for row ``i``.

    The estimate x̂₀ = (y - sigma · noise) / alpha is clipped to ``±clip`` here and nowhere else.
    Where gradients go through the chain, each call is computed again on the way back: memory holds the points between
    calls, not the layers inside them.
    """
    calls, stochastic = len(table.t), bool(np.any(table.noise_coef))
    levels = schedule.alpha(table.t), schedule.sigma(table.t)
    coefs = table.base_coef, table.now_coef, table.kept_coef, table.noise_coef
    numbers = tuple(jnp.asarray(column, x.dtype) for column in (*levels, *coefs))
    keys = jax.random.split(key, calls) if stochastic else jnp.zeros(calls)

    @partial(jax.checkpoint, prevent_cse=False)  # the loop itself keeps the two passes apart
    def call(carry, row):
        y, base, kept = carry
        i, key, alpha, sigma, base_coef, now_coef, kept_coef, noise_coef, keep, advance = row
        noise = noise_at(y, i)
        data = (y - sigma * noise) / alpha
        if clip is not None:
            data = jnp.clip(data, -clip, clip)
        now = data if table.predicts_data else (y - alpha * data) / sigma
        y = base_coef * base + kept_coef * kept + now_coef * now
        if stochastic:
            y = y + noise_scale * noise_coef * jax.random.normal(key, y.shape, y.dtype)
        return (y, jnp.where(advance, y, base), jnp.where(keep, now, kept)), None

    rows = (jnp.arange(calls), keys, *numbers, jnp.asarray(table.keep), jnp.asarray(table.advance))
    (y, _, _), _ = jax.lax.scan(call, (x, x, jnp.zeros_like(x)), rows)
    return y
