"""Implicit Q-learning (EDP, appendix A.3): values of the data's actions, and a policy fitted to the better actions."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from edp.algorithms.base import Metrics
from edp.algorithms.in_sample import InSample, InSampleState
from edp.algorithms.weighted import exponential
from edp.batches import Transitions
from edp.options import option


@dataclass(frozen=True)
class IQL(InSample):
    """Hyper-parameters and update of IQL."""

    expectile: float = option(0.7, "expectile of Q that V learns (the paper: 0.9 on AntMaze)", low=0.0, high=1.0)
    temperature: float = option(3.0, "how strongly advantages are weighted: exp(temperature · advantage)", low=0.0)
    max_weight: float = option(100.0, "largest weight", low=0.0)

    def update(self, state: InSampleState, batch: Transitions, key: PRNGKeyArray) -> tuple[InSampleState, Metrics]:
        """Update V, then the policy, then Q."""
        step = state.step + 1
        value, q, value_metrics = self.update_value(state, batch, self.expectile)
        here, next_value = jnp.split(value.model(jnp.concatenate([batch.obs, batch.next_obs]))[:, 0], 2)
        weight = exponential(self.temperature, self.max_weight)
        policy, policy_metrics = self.update_policy(state.policy, batch, key, step, q - here, weight)
        critic, critic_metrics = self.update_critic(state, next_value, batch)
        return InSampleState(policy, critic, value, step), value_metrics | policy_metrics | critic_metrics
