"""ReBRAC (Tarasov et al. 2023): TD3+BC with separate penalties on the policy's actions in the actor and the critic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Loss
from edp.algorithms.td3bc import normalised_mean
from edp.batches import Transitions
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy


@dataclass(frozen=True)
class ReBRAC(TDActorCritic):
    """Hyper-parameters and losses of ReBRAC."""

    actor_penalty: float = option(0.05, "weight of the imitation loss, summed over the action's dimensions", low=0.0)
    critic_penalty: float = option(0.05, "weight of the squared distance to the data's next action in targets", low=0.0)

    learns_from: ClassVar[str] = "next actions"
    uses: ClassVar[tuple[str, ...]] = ("action",)
    defaults: ClassVar[Mapping[str, Any]] = {
        "critic_norm": True,
        "loss_weight": 1.0,  # the penalties are weights against Q / mean |Q|, in every domain
        "policy_every": 2,
        "policy_target_every": 2,
        "policy_target_after": 0,
        "target_noise": 0.2,
    }
    # In short runs the published penalties let the policy follow values that are not right yet. These give Q about the
    # weight that it has in the paper's settings.
    recipe: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe, "actor_penalty": 0.3}
    recipe_for_narrow_data: ClassVar[Mapping[str, Any]] = {
        **TDActorCritic.recipe_for_narrow_data,
        "actor_penalty": 10.0,
    }
    domain_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "locomotion": {"actor_penalty": 0.01, "critic_penalty": 0.01},
        "antmaze": {"actor_penalty": 0.003, "critic_penalty": 0.002, "discount": 0.999, "rewards": "hundredfold"},
        "adroit": {"actor_penalty": 0.1, "critic_penalty": 0.5},
        "kitchen": {"actor_penalty": 10.0, "critic_penalty": 0.5},  # unpublished: about EDP's weight of Q there
    }

    def next_values(
        self, critic: Critic, batch: Transitions, action: Float[Array, "n act"]
    ) -> Float[Array, "members n"]:
        """Q(s', ã') - beta_c · |ã' - a'|², without the penalty where the data has no next action a'."""
        following = batch.following
        assert following is not None
        distance = jnp.sum((action - following.action) ** 2, axis=-1)
        return critic(batch.next_obs, action) - (self.critic_penalty * following.known * distance)[None]

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """beta_a · |π - a|² - Q(s, π) / mean |Q|, with the policy's action π in s.

        A policy that is no point has its own imitation loss.
        """
        fit = policy.fit(batch.obs, batch.action, key)
        q, bc = self.low(critic(batch.obs, fit.action)), fit.bc.mean()
        penalty = self.actor_penalty * self.bc_weight * batch.action.shape[-1] * bc
        loss = penalty - self.loss_weight * normalised_mean(q)
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}
