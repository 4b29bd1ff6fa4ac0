"""TD3+BC (EDP, appendix A.1): imitate, and move the policy's action to where Q is higher."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from edp.algorithms.actor_critic import ActorCritic, critic_loss
from edp.algorithms.base import Learner, Metrics, descend
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy
from edp.types import Transitions


class TD3BCState(NamedTuple):
    policy: Learner
    critic: Learner
    step: Int[Array, ""]


@dataclass(frozen=True)
class TD3BC(ActorCritic):
    alpha: float = option(2.0, "weight of Q against imitation, before |Q| is divided out", low=0.0)
    max_q_backup: int = option(0, "back up the best of so many next actions (0: one action)", low=0)

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key) -> TD3BCState:
        return TD3BCState(self.init_policy(policy), self.init_critic(obs_dim, act_dim, key), jnp.zeros((), jnp.int32))

    def update(self, state: TD3BCState, batch: Transitions, key) -> tuple[TD3BCState, Metrics]:
        """Algorithm 1 of the paper."""
        critic_key, policy_key = jax.random.split(key)
        step = state.step + 1

        target = self.td_target(state.policy.target, state.critic.target, batch, critic_key)
        critic, critic_metrics = descend(
            state.critic, lambda q: critic_loss(q, batch, target), self.critic_optimiser, self.tau
        )
        policy, policy_metrics = descend(
            state.policy,
            lambda pi: self.policy_loss(pi, critic.model, batch, policy_key),
            self.optimiser,
            self.policy_tau(step),
        )
        return TD3BCState(policy, critic, step), critic_metrics | policy_metrics

    def td_target(self, policy: Policy, critic: Critic, batch: Transitions, key) -> Float[Array, " n"]:
        """r + discount · min(Q1, Q2)(s', a') with a' from the policy (appendix eq. 1)."""
        if self.max_q_backup:
            keys = jax.random.split(key, self.max_q_backup)
            actions = jax.vmap(policy.sample, (None, 0))(batch.next_obs, keys)
            q = jax.vmap(critic, (None, 0))(batch.next_obs, actions).max(axis=0)
        else:
            q = critic(batch.next_obs, policy.sample(batch.next_obs, key))
        return batch.reward + self.discount * batch.not_done * q.min(axis=0)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key) -> tuple[Array, Metrics]:
        """L_diff + lambda · L_pi, lambda normalised by the size of Q; Q is Q1 or Q2 by the toss of a coin."""
        fit_key, coin_key = jax.random.split(key)
        fit = policy.fit(batch.obs, batch.action, fit_key)
        q = critic.one_of(batch.obs, fit.action, coin_key)
        weight = self.alpha * self.loss_weight / jax.lax.stop_gradient(jnp.abs(q).mean())
        bc = fit.bc.mean()
        loss = bc - weight * q.mean()
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}
