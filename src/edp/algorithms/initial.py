"""The initial training state of an algorithm with a policy."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from edp.algorithms.base import Algorithm
from edp.algorithms.inputs import Inputs
from edp.policies.base import PolicyConfig


class InitialState(eqx.Module):
    """Makes the training state of one seed."""

    inputs: Inputs
    policy: PolicyConfig = eqx.field(static=True)
    obs_dim: int = eqx.field(static=True)
    act_dim: int = eqx.field(static=True)

    def __init__(self, algorithm: Algorithm, policy: PolicyConfig, obs_dim: int, act_dim: int):
        self.inputs, self.policy, self.obs_dim, self.act_dim = Inputs(algorithm), policy, obs_dim, act_dim

    def __call__(self, key: PRNGKeyArray) -> Any:
        policy_key, algorithm_key = jax.random.split(key)
        policy = self.policy.build(self.obs_dim, self.act_dim, policy_key)
        return self.inputs.algorithm.init(policy, self.obs_dim, self.act_dim, algorithm_key)
