"""Behaviour cloning: the policy's imitation loss alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from edp.algorithms.actor_critic import Actor
from edp.algorithms.base import Learner, Loss, Metrics, descend
from edp.batches import Transitions, Windows
from edp.policies.base import Policy


class BCState(NamedTuple):
    """The training state of behaviour cloning, which has no critic."""

    policy: Learner
    step: Int[Array, ""]
    critic: None = None


@dataclass(frozen=True)
class BC(Actor):
    """Hyper-parameters and update of behaviour cloning."""

    defaults: ClassVar[Mapping[str, Any]] = {"eas": 1}

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> BCState:
        del obs_dim, act_dim, key
        return BCState(self.init_policy(policy), jnp.zeros((), jnp.int32))

    def update(self, state: BCState, batch: Transitions | Windows, key: PRNGKeyArray) -> tuple[BCState, Metrics]:
        step = state.step + 1
        policy, metrics = descend(
            state.policy, lambda pi: self.policy_loss(pi, batch, key), self.optimiser, self.policy_tau(step)
        )
        return BCState(policy, step), metrics

    def policy_loss(self, policy: Policy, batch: Transitions | Windows, key: PRNGKeyArray) -> Loss:
        bc = policy.fit(batch.obs, batch.action, key).bc.mean()
        return bc, {"bc_loss": bc}
