"""Implicit Q-learning (EDP, appendix A.3): values of the data's own actions, and a policy fitted to the better ones."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from edp.algorithms.actor_critic import ActorCritic, critic_loss
from edp.algorithms.base import Learner, Metrics, descend, learner
from edp.algorithms.weighted import exponential, weighted_loss
from edp.networks import MLP
from edp.options import option
from edp.policies.base import Policy
from edp.types import Transitions


class IQLState(NamedTuple):
    policy: Learner
    critic: Learner
    value: Learner
    step: Int[Array, ""]


@dataclass(frozen=True)
class IQL(ActorCritic):
    expectile: float = option(0.7, "of Q that V aims at (the paper: 0.9 on AntMaze)", low=0.0, high=1.0)
    temperature: float = option(3.0, "how strongly advantages are weighted: exp(temperature · advantage)", low=0.0)
    max_weight: float = option(100.0, "the largest such weight", low=0.0)

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key) -> IQLState:
        critic_key, value_key = jax.random.split(key)
        value = MLP(obs_dim, self.critic_hidden, 1, value_key)
        return IQLState(
            self.init_policy(policy),
            self.init_critic(obs_dim, act_dim, critic_key),
            learner(value, self.optimiser),
            jnp.zeros((), jnp.int32),
        )

    def update(self, state: IQLState, batch: Transitions, key) -> tuple[IQLState, Metrics]:
        """V first, then the policy, then Q."""
        step = state.step + 1
        q = state.critic.target(batch.obs, batch.action).min(axis=0)
        value, value_metrics = descend(state.value, lambda v: self.value_loss(v, batch, q), self.optimiser, self.tau)
        advantage = q - value.model(batch.obs)[:, 0]
        loss = partial(
            weighted_loss,
            batch=batch,
            key=key,
            advantage=lambda fit, key: advantage,
            weight=exponential(self.temperature, self.max_weight),
            loss_weight=self.loss_weight,
        )
        policy, policy_metrics = descend(state.policy, loss, self.optimiser, self.policy_tau(step))
        target = batch.reward + self.discount * batch.not_done * value.model(batch.next_obs)[:, 0]
        critic, critic_metrics = descend(
            state.critic, lambda q: critic_loss(q, batch, target), self.critic_optimiser, self.tau
        )
        return IQLState(policy, critic, value, step), value_metrics | policy_metrics | critic_metrics

    def value_loss(self, value: MLP, batch: Transitions, q: Float[Array, " n"]) -> tuple[Array, Metrics]:
        """Expectile regression of V on Q: mean |expectile - 1(u < 0)| u² with u = Q - V."""
        u = q - value(batch.obs)[:, 0]
        loss = jnp.mean(jnp.where(u < 0, 1 - self.expectile, self.expectile) * u**2)
        return loss, {"value_loss": loss}
