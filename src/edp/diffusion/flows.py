"""Flow matching without networks or RL: the straight path from noise to data, and samplers along it.

At time t, a point is x_t = (1 - t) · noise + t · data, and its velocity is v = data - noise. Time runs from noise at
t = 0 to data at t = 1. From a velocity at a point y, the estimate of the data is y + (1 - t) · v. Samplers are tables
for these estimates (see ``edp.diffusion.tables``), so that ``integrate`` clips them as it does for diffusion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from edp.diffusion.samplers import MOST_CALLS
from edp.diffusion.schedules import Floats, Times
from edp.diffusion.tables import Row, Table, table_of_rows
from edp.errors import UserError, unknown


class StraightPath:
    """The levels of signal and noise of flow matching."""

    def alpha(self, t: Times) -> Floats:
        return np.asarray(t, np.float64)

    def sigma(self, t: Times) -> Floats:
        return 1 - np.asarray(t, np.float64)


STRAIGHT = StraightPath()


def euler_step(t: float, h: float) -> list[Row]:
    """y + h · v, where v = (x̂ - y) / (1 - t)."""
    share = h / (1 - t)
    return [Row(t, 1 - share, share)]


def midpoint_step(t: float, h: float) -> list[Row]:
    """y + h · v(y + h/2 · v): the inner point is a combination of y and the first estimate, which is kept."""
    inner, whole = 0.5 * h / (1 - t), h / (1 - t - 0.5 * h)
    return [
        Row(t, 1 - inner, inner, advance=False),
        Row(t + 0.5 * h, 1 - whole * (1 - inner), whole, -whole * inner, keep=False),
    ]


def euler_table(calls: int) -> Table:
    """Steps of equal length, of first order."""
    return table_of_rows([row for i in range(calls) for row in euler_step(i / calls, 1 / calls)], predicts_data=True)


def midpoint_table(calls: int) -> Table:
    """Steps of two calls, of second order. With an odd number of calls, the last step is one of Euler's."""
    rows = [row for i in range(calls // 2) for row in midpoint_step(2 * i / calls, 2 / calls)]
    last = euler_step((calls - 1) / calls, 1 / calls) if calls % 2 else []
    return table_of_rows([*rows, *last], predicts_data=True)


FLOW_SAMPLERS: dict[str, Callable[[int], Table]] = {"euler": euler_table, "midpoint": midpoint_table}


@dataclass(frozen=True)
class FlowSampler:
    """A sampler of ``FLOW_SAMPLERS`` with its number of network calls."""

    name: str = "euler"
    calls: int = 10

    def __post_init__(self) -> None:
        if self.name not in FLOW_SAMPLERS:
            raise unknown("sampler of a flow", self.name, FLOW_SAMPLERS)
        if not 1 <= self.calls <= MOST_CALLS:
            raise UserError(f"a sampler makes from 1 to {MOST_CALLS:,} network calls, not {self.calls:,} (see `calls`)")

    def table(self) -> Table:
        return _cached_table(self)


@lru_cache(maxsize=64)
def _cached_table(sampler: FlowSampler) -> Table:
    return FLOW_SAMPLERS[sampler.name](sampler.calls)
