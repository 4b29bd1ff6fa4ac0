"""Error values of sensors are found, and states of a machine are none."""

import numpy as np
import pytest

from edp.data import health
from edp.data.arrays import from_arrays

ROWS = np.arange(6000)
RNG = np.random.default_rng(0)
TEMP = np.round(60 + np.cumsum(RNG.normal(size=6000)) * 0.01 + RNG.normal(size=6000), 2)


def told(column):
    log = from_arrays(
        observations=np.stack([column, RNG.normal(size=6000)], axis=1),
        actions=RNG.uniform(-1, 1, (6000, 1)),
        rewards=RNG.normal(size=6000),
        terminals=np.zeros(6000, bool),
        timeouts=ROWS % 100 == 99,
    )
    return [each.what for each in health.examine_log(log).findings if each.level != "note"]


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (np.where(ROWS % 500 == 7, -9999, TEMP), "observation '0' is -9999 in 12 rows, first in row 7, and at 5"),
        (np.where(ROWS % 500 == 7, 0, TEMP), "observation '0' is 0 in 12 rows, first in row 7, and at 5"),
        (np.where(ROWS % 60 == 7, 32767, TEMP), "observation '0' is 32767 in 100 rows, first in row 7, and at 5"),
        (np.where(ROWS == 700, -9999, TEMP), "standard deviations from its mean (-9999 to 6"),
        (np.where(ROWS % 500 == 7, np.nan, np.where(ROWS % 500 == 8, -1, TEMP)), "is -1 in 12 rows, first in row 8"),
    ],
)
def test_error_values(column, what):
    assert [each for each in told(column) if what in each], told(column)


@pytest.mark.parametrize(
    "column",
    [
        TEMP,
        np.clip(TEMP, 57, 62),  # a sensor at its limits
        np.where(ROWS % 100 < 10, 0, TEMP),  # a pump that is off
        (ROWS % 300 == 7).astype(float),  # a flag
        np.where(ROWS % 300 < 3, 60.0, 20.0 + ROWS // 1000),  # a set point
        np.where(ROWS % 100 < 5, np.round(RNG.exponential(size=6000), 1), 0),  # rain
        np.round(RNG.lognormal(sigma=1.5, size=6000), 1),
        RNG.normal(size=6000),
    ],
)
def test_what_is_no_error_value(column):
    assert told(column) == []
