"""Implicit Q-learning (EDP, appendix A.3): values of the data's own actions, and a policy fitted to the better ones."""

from dataclasses import dataclass

import jax.numpy as jnp

from edp.algorithms.actor_critic import InSample, InSampleState
from edp.algorithms.base import Metrics
from edp.algorithms.weighted import exponential
from edp.batches import Transitions
from edp.options import option


@dataclass(frozen=True)
class IQL(InSample):
    expectile: float = option(0.7, "of Q that V aims at (the paper: 0.9 on AntMaze)", low=0.0, high=1.0)
    temperature: float = option(3.0, "how strongly advantages are weighted: exp(temperature · advantage)", low=0.0)
    max_weight: float = option(100.0, "the largest such weight", low=0.0)

    def update(self, state: InSampleState, batch: Transitions, key) -> tuple[InSampleState, Metrics]:
        """V first, then the policy, then Q."""
        step = state.step + 1
        value, q, value_metrics = self.update_value(state, batch, self.expectile)
        before, after = jnp.split(value.model(jnp.concatenate([batch.obs, batch.next_obs]))[:, 0], 2)
        weight = exponential(self.temperature, self.max_weight)
        policy, policy_metrics = self.follow_better(state.policy, batch, key, step, q - before, weight)
        critic, critic_metrics = self.update_critic(state, after, batch)
        return InSampleState(policy, critic, value, step), value_metrics | policy_metrics | critic_metrics
