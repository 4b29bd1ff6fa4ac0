"""The initial training state of an algorithm with a policy."""

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from edp.algorithms.base import Algorithm
from edp.policies.base import PolicyConfig


@dataclass(frozen=True)
class InitialState:
    """Makes the training state of one seed. Equal ones share a compiled program."""

    algorithm: Algorithm
    policy: PolicyConfig
    obs_dim: int
    act_dim: int

    def __call__(self, key: PRNGKeyArray) -> Any:
        policy_key, algorithm_key = jax.random.split(key)
        policy = self.policy.build(self.obs_dim, self.act_dim, policy_key)
        return self.algorithm.init(policy, self.obs_dim, self.act_dim, algorithm_key)
