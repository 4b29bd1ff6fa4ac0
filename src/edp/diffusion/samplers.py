"""Samplers: the registry of samplers by name, and the loop that runs any of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from edp.diffusion import tables
from edp.diffusion.schedules import Floats, Schedule, Times
from edp.diffusion.tables import Table
from edp.diffusion.times import GRIDS, step_times
from edp.errors import UserError, unknown

MOST_CALLS = 100_000


@runtime_checkable
class Path(Protocol):
    """The levels of signal and noise at all times: a noise schedule, or the straight path of flow matching."""

    def alpha(self, t: Times) -> Floats: ...

    def sigma(self, t: Times) -> Floats: ...


class Method(NamedTuple):
    """An entry of ``SAMPLERS``."""

    make_table: Callable[[Schedule, Floats, int], Table]  # from the schedule, the times of the calls and the order
    has_grid: bool  # times come from one of ``GRIDS``; otherwise they are steps of the schedule


SAMPLERS: dict[str, Method] = {
    "dpm": Method(
        lambda schedule, ts, order: tables.dpm_solver_table(schedule, ts, tables.dpm_orders(len(ts) - 1, order)),
        has_grid=True,
    ),
    "dpm++": Method(lambda schedule, ts, order: tables.dpm_solver_pp_table(schedule, ts), has_grid=True),
    "ddim": Method(lambda schedule, ts, order: tables.ddim_table(schedule, ts), has_grid=False),
    "ddpm": Method(lambda schedule, ts, order: tables.ddpm_table(schedule, ts), has_grid=False),
}
WITH_GRID = tuple(name for name, method in SAMPLERS.items() if method.has_grid)


@dataclass(frozen=True)
class Sampler:
    """A sampler of ``SAMPLERS`` with its number of network calls."""

    name: str = "dpm"
    calls: int = 15
    order: int = 3  # for "dpm" only
    grid: str = "uniform"  # for samplers with a grid only
    threshold: bool = True  # clip estimates of the action to [-1, 1]

    def __post_init__(self) -> None:
        if self.name not in SAMPLERS:
            raise unknown("sampler", self.name, SAMPLERS)
        if self.calls < 1:
            raise UserError(f"a sampler needs at least one network call, not {self.calls}")
        if self.calls > MOST_CALLS:
            raise UserError(f"a sampler makes at most {MOST_CALLS:,} network calls, not {self.calls:,} (see `calls`)")
        if self.order not in (1, 2, 3):
            raise UserError(f"DPM-Solver has order 1, 2 or 3, not {self.order}")
        if self.grid not in GRIDS:
            raise unknown("grid", self.grid, GRIDS)
        if self.grid != "uniform" and not SAMPLERS[self.name].has_grid:
            raise UserError(
                f"{self.name} takes steps of the noise schedule: `grid` is for {' and '.join(WITH_GRID)} only"
            )

    def table(self, schedule: Schedule) -> Table:
        """The table of coefficients for this schedule."""
        return _cached_table(self, schedule)


@lru_cache(maxsize=64)
def _cached_table(sampler: Sampler, schedule: Schedule) -> Table:
    method, calls = SAMPLERS[sampler.name], sampler.calls
    if not method.has_grid and calls > schedule.steps:
        raise UserError(f"{sampler.name} has at most one call a step: {calls} calls for {schedule.steps} steps")
    times = GRIDS[sampler.grid] if method.has_grid else step_times
    return method.make_table(schedule, times(schedule, calls), sampler.order)


def integrate(
    table: Table,
    schedule: Path,
    data_at: Callable[[Array, Array], Array],
    x: Float[Array, "..."],
    key: PRNGKeyArray,
    clip: float | None = 1.0,
    noise_scale: float | Array = 1.0,
) -> Float[Array, "..."]:
    """Run a sampler from ``x``, where ``data_at(y, i)`` is the network's estimate x̂₀ of the data for row ``i``.

    For a noise prediction, that is (y - sigma · noise) / alpha. It is clipped to ``±clip`` here and nowhere else.
    Where gradients flow through the chain, the backward pass recomputes each network call: memory holds the points
    between calls, not the layers inside them.
    """
    calls, stochastic = len(table.t), bool(np.any(table.noise_coef))
    levels = schedule.alpha(table.t), schedule.sigma(table.t)
    coefs = table.base_coef, table.now_coef, table.kept_coef, table.noise_coef
    numbers = tuple(jnp.asarray(column, x.dtype) for column in (*levels, *coefs))
    keys = jax.random.split(key, calls) if stochastic else jnp.zeros(calls)

    @partial(jax.checkpoint, prevent_cse=False)  # the loop already keeps the two passes apart
    def call(carry: tuple[Array, Array, Array], row: Any) -> tuple[tuple[Array, Array, Array], None]:
        y, base, kept = carry
        i, key, alpha, sigma, base_coef, now_coef, kept_coef, noise_coef, keep, advance = row
        data = data_at(y, i)
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
