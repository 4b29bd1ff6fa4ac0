"""What algorithms with critics share: hyper-parameters, optimisers, and the critic's loss."""

from dataclasses import dataclass

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from edp.algorithms.base import Learner, Metrics, adam, for_each_member, learner
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy
from edp.types import Transitions


@dataclass(frozen=True)
class ActorCritic:
    loss_weight: float = option(1.0, "the paper's loss weight: how much values count against imitation", low=0.0)
    discount: float = option(0.99, "discount factor", low=0.0, high=1.0)
    lr: float = option(3e-4, "Adam's learning rate", low=0.0)
    clip: float = option(5.0, "largest norm of a network's gradient", low=0.0)
    tau: float = option(0.005, "how far targets move towards their networks", low=0.0, high=1.0)
    policy_target_every: int = option(5, "steps between moves of the target policy", low=1)
    policy_target_after: int = option(1000, "steps before its first move", low=0)
    critic_hidden: tuple[int, ...] = option((256, 256, 256), "widths of the value networks' hidden layers", low=1)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return adam(self.lr, self.clip)

    @property
    def critic_optimiser(self) -> optax.GradientTransformation:
        return for_each_member(self.optimiser)

    def policy_tau(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """How far the target policy moves at this step: it starts late and moves every few steps."""
        moves = (step % self.policy_target_every == 0) & (step > self.policy_target_after)
        return jnp.where(moves, self.tau, 0.0)

    def init_policy(self, policy: Policy) -> Learner:
        return learner(policy, self.optimiser)

    def init_critic(self, obs_dim: int, act_dim: int, key) -> Learner:
        return learner(Critic(obs_dim, act_dim, self.critic_hidden, key), self.critic_optimiser)


def critic_loss(critic: Critic, batch: Transitions, target: Float[Array, " n"]) -> tuple[Array, Metrics]:
    """The squared TD error (EDP eq. 6), summed over the ensemble."""
    q = critic(batch.obs, batch.action)
    loss = jnp.sum(jnp.mean((q - target[None]) ** 2, axis=-1))
    return loss, {"critic_loss": loss, "q_data": q.mean()}
