"""TD3+BC (EDP, appendix A.1): imitate, and move the policy's action to where Q is higher."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from edp.algorithms.base import Learner, Metrics, adam, descend, for_each_member, learner
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy
from edp.types import Transitions


class TD3BCState(NamedTuple):
    policy: Learner
    critic: Learner
    step: Int[Array, ""]


@dataclass(frozen=True)
class TD3BC:
    alpha: float = option(2.0, "weight of Q against imitation, before |Q| is divided out", low=0.0)
    loss_weight: float = option(1.0, "the paper's loss weight: another factor on Q", low=0.0)
    discount: float = option(0.99, "discount factor", low=0.0, high=1.0)
    lr: float = option(3e-4, "Adam's learning rate", low=0.0)
    clip: float = option(5.0, "largest norm of a network's gradient", low=0.0)
    tau: float = option(0.005, "how far targets move towards their networks", low=0.0, high=1.0)
    policy_target_every: int = option(5, "steps between moves of the target policy", low=1)
    policy_target_after: int = option(1000, "steps before its first move", low=0)
    max_q_backup: int = option(0, "back up the best of so many next actions (0: one action)", low=0)
    critic_hidden: tuple[int, ...] = option((256, 256, 256), "widths of Q's hidden layers", low=1)

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key) -> TD3BCState:
        optimiser = adam(self.lr, self.clip)
        critic = Critic(obs_dim, act_dim, self.critic_hidden, key)
        return TD3BCState(
            learner(policy, optimiser), learner(critic, for_each_member(optimiser)), jnp.zeros((), jnp.int32)
        )

    def update(self, state: TD3BCState, batch: Transitions, key) -> tuple[TD3BCState, Metrics]:
        """Algorithm 1 of the paper."""
        critic_key, policy_key = jax.random.split(key)
        optimiser = adam(self.lr, self.clip)
        step = state.step + 1

        target = self.td_target(state.policy.target, state.critic.target, batch, critic_key)
        critic, critic_metrics = descend(
            state.critic, lambda q: critic_loss(q, batch, target), for_each_member(optimiser), self.tau
        )

        follows = (step % self.policy_target_every == 0) & (step > self.policy_target_after)
        policy, policy_metrics = descend(
            state.policy,
            lambda pi: self.policy_loss(pi, critic.model, batch, policy_key),
            optimiser,
            jnp.where(follows, self.tau, 0.0),
        )
        return TD3BCState(policy, critic, step), critic_metrics | policy_metrics

    def td_target(self, policy: Policy, critic: Critic, batch: Transitions, key) -> Array:
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


def critic_loss(critic: Critic, batch: Transitions, target: Array) -> tuple[Array, Metrics]:
    """The squared TD error (EDP eq. 6), summed over the ensemble."""
    q = critic(batch.obs, batch.action)
    loss = jnp.sum(jnp.mean((q - target[None]) ** 2, axis=-1))
    return loss, {"critic_loss": loss, "q_data": q.mean()}
