"""What algorithms share: hyper-parameters, optimisers, targets, and the evaluation of a policy by TD learning."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from edp.algorithms.base import Learner, Metrics, adam, descend, for_each_member, learner
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy
from edp.types import Transitions


@dataclass(frozen=True)
class Actor:
    lr: float = option(3e-4, "Adam's learning rate", low=0.0)
    clip: float = option(5.0, "largest norm of a network's gradient", low=0.0)
    tau: float = option(0.005, "how far targets move towards their networks", low=0.0, high=1.0)
    policy_target_every: int = option(5, "steps between moves of the target policy", low=1)
    policy_target_after: int = option(1000, "steps before its first move", low=0)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return adam(self.lr, self.clip)

    def policy_tau(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """How far the target policy moves at this step: it starts late and moves every few steps."""
        moves = (step % self.policy_target_every == 0) & (step > self.policy_target_after)
        return jnp.where(moves, self.tau, 0.0)

    def init_policy(self, policy: Policy) -> Learner:
        return learner(policy, self.optimiser)


@dataclass(frozen=True)
class ActorCritic(Actor):
    loss_weight: float = option(1.0, "the paper's loss weight: how much values count against imitation", low=0.0)
    discount: float = option(0.99, "discount factor", low=0.0, high=1.0)
    critic_hidden: tuple[int, ...] = option((256, 256, 256), "widths of the value networks' hidden layers", low=1)

    @property
    def critic_optimiser(self) -> optax.GradientTransformation:
        return for_each_member(self.optimiser)

    def init_critic(self, obs_dim: int, act_dim: int, key) -> Learner:
        return learner(Critic(obs_dim, act_dim, self.critic_hidden, key), self.critic_optimiser)


def critic_loss(critic: Critic, batch: Transitions, target: Float[Array, " n"]) -> tuple[Array, Metrics]:
    """The squared TD error (EDP eq. 6), summed over the ensemble."""
    q = critic(batch.obs, batch.action)
    loss = jnp.sum(jnp.mean((q - target[None]) ** 2, axis=-1))
    return loss, {"critic_loss": loss, "q_data": q.mean()}


class TDState(NamedTuple):
    policy: Learner
    critic: Learner
    step: Int[Array, ""]


@dataclass(frozen=True)
class TDActorCritic(ActorCritic):
    """Algorithms that evaluate the policy by TD learning and then improve it: they differ in ``policy_loss``."""

    max_q_backup: int = option(0, "back up the best of so many next actions (0: one action)", low=0)

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key) -> TDState:
        return TDState(self.init_policy(policy), self.init_critic(obs_dim, act_dim, key), jnp.zeros((), jnp.int32))

    def update(self, state: TDState, batch: Transitions, key) -> tuple[TDState, Metrics]:
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
        return TDState(policy, critic, step), critic_metrics | policy_metrics

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
        raise NotImplementedError
