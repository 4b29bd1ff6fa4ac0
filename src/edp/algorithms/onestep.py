"""OneStep RL (Brandfonbrener et al. 2021): evaluate the behaviour policy, then make one step of policy improvement."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from edp.algorithms.base import Metrics
from edp.algorithms.in_sample import InSample, InSampleState
from edp.algorithms.weighted import exponential
from edp.batches import Transitions
from edp.options import option


@dataclass(frozen=True)
class OneStep(InSample):
    """Hyper-parameters and update of OneStep RL."""

    evaluation_steps: int = option(
        50_000, "steps of policy evaluation and cloning, before policy improvement", low=1, is_input=True
    )
    temperature: float = option(3.0, "how strongly advantages are weighted: exp(temperature · advantage)", low=0.0)
    max_weight: float = option(100.0, "largest weight", low=0.0)

    def update(self, state: InSampleState, batch: Transitions, key: PRNGKeyArray) -> tuple[InSampleState, Metrics]:
        """For ``evaluation_steps`` steps, learn Q and V (a mean, expectile 0.5) of the behaviour and clone it.

        After that, Q and V are frozen, and the policy learns from them.
        """
        step = state.step + 1
        evaluating = step <= self.evaluation_steps
        value, q, value_metrics = self.update_value(state, batch, expectile=0.5)
        critic, critic_metrics = self.update_critic(state, value.model(batch.next_obs)[:, 0], batch)
        value, critic = jax.tree.map(
            lambda new, old: jnp.where(evaluating, new, old), (value, critic), (state.value, state.critic)
        )
        advantage = q - value.model(batch.obs)[:, 0]
        weight = exponential(self.temperature, self.max_weight)
        policy, policy_metrics = self.update_policy(
            state.policy, batch, key, step, advantage, weight, imitate=evaluating
        )
        return InSampleState(policy, critic, value, step), value_metrics | policy_metrics | critic_metrics
