"""Behaviour cloning: the policy's own imitation loss and nothing else."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from edp.algorithms.actor_critic import Actor
from edp.algorithms.base import Learner, Metrics, descend
from edp.batches import Transitions
from edp.policies.base import Policy


class BCState(NamedTuple):
    policy: Learner
    step: Int[Array, ""]
    critic: None = None


@dataclass(frozen=True)
class BC(Actor):
    def init(self, policy: Policy, obs_dim: int, act_dim: int, key) -> BCState:
        del obs_dim, act_dim, key
        return BCState(self.init_policy(policy), jnp.zeros((), jnp.int32))

    def update(self, state: BCState, batch: Transitions, key) -> tuple[BCState, Metrics]:
        step = state.step + 1
        policy, metrics = descend(
            state.policy, lambda pi: self.policy_loss(pi, batch, key), self.optimiser, self.policy_tau(step)
        )
        return BCState(policy, step), metrics

    def policy_loss(self, policy: Policy, batch: Transitions, key) -> tuple[Array, Metrics]:
        bc = policy.fit(batch.obs, batch.action, key).bc.mean()
        return bc, {"bc_loss": bc}
