"""Offline RL algorithms, and ``ALGORITHMS``: their registry by name.

Each is a frozen dataclass of hyper-parameters with ``init`` and ``update``.
"""

from edp.algorithms.awac import AWAC
from edp.algorithms.awr import AWR
from edp.algorithms.base import Algorithm, Learner, Metrics
from edp.algorithms.bc import BC
from edp.algorithms.cql import CQL
from edp.algorithms.crr import CRR
from edp.algorithms.dac import DAC
from edp.algorithms.dt import DT
from edp.algorithms.initial import InitialState
from edp.algorithms.inputs import Update
from edp.algorithms.iql import IQL
from edp.algorithms.onestep import OneStep
from edp.algorithms.rebrac import ReBRAC
from edp.algorithms.td3bc import TD3BC

ALGORITHMS: dict[str, type[Algorithm]] = {
    "td3bc": TD3BC,
    "rebrac": ReBRAC,
    "dac": DAC,
    "crr": CRR,
    "iql": IQL,
    "awac": AWAC,
    "awr": AWR,
    "onestep": OneStep,
    "cql": CQL,
    "bc": BC,
    "dt": DT,
}

__all__ = [
    "ALGORITHMS",
    "AWAC",
    "AWR",
    "BC",
    "CQL",
    "CRR",
    "DAC",
    "DT",
    "IQL",
    "TD3BC",
    "Algorithm",
    "InitialState",
    "Learner",
    "Metrics",
    "OneStep",
    "ReBRAC",
    "Update",
]
