"""Offline RL algorithms by name: each is a frozen dataclass of hyper-parameters with ``init`` and ``update``."""

from edp.algorithms.base import Algorithm, Learner, Metrics
from edp.algorithms.bc import BC
from edp.algorithms.crr import CRR
from edp.algorithms.iql import IQL
from edp.algorithms.td3bc import TD3BC

ALGORITHMS = {"td3bc": TD3BC, "crr": CRR, "iql": IQL, "bc": BC}

__all__ = ["ALGORITHMS", "BC", "CRR", "IQL", "TD3BC", "Algorithm", "Learner", "Metrics"]
