"""ReBRAC (Tarasov et al. 2023): TD3+BC with separate penalties on the policy's actions in the actor and the critic."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.base import Loss
from edp.algorithms.td3bc import TD3BC, UNITS_OF_Q
from edp.batches import Transitions
from edp.errors import UserError
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy, PolicyConfig


@dataclass(frozen=True)
class ReBRAC(TD3BC):
    """Hyper-parameters and losses of ReBRAC."""

    alpha: float = option(1.0, "weight of Q / mean |Q| against the imitation loss", low=0.0)
    improved: str = option("low", "Q-network whose values the policy increases: random, first, mean of all, or low")
    actor_penalty: float = option(
        0.05, "weight of the imitation loss, summed over the action's dimensions, with `guidance` value or raw", low=0.0
    )
    critic_penalty: float = option(0.05, "weight of the squared distance to the data's next action in targets", low=0.0)

    learns_from: ClassVar[str] = "next actions"
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {
        "critic_norm": True,
        "loss_weight": 1.0,  # the penalties are weights against Q / mean |Q|, in every domain
        "policy_every": 2,
        "policy_target_every": 2,
        "policy_target_after": 0,
        "target_noise": 0.2,
    }
    # In short runs the published penalties let the policy follow values that are not right yet, and the delay halves
    # the speed at which values spread. So the recipe guides the policy as that of TD3+BC does, at every step.
    recipe: ClassVar[Mapping[str, Any]] = {
        **TD3BC.recipe,
        "alpha": TD3BC.alpha,
        "actor_penalty": 0.0,
        "policy_every": 1,
    }
    domain_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "locomotion": {"actor_penalty": 0.01, "critic_penalty": 0.01},
        "antmaze": {"actor_penalty": 0.003, "critic_penalty": 0.002, "discount": 0.999, "rewards": "hundredfold"},
        "adroit": {"actor_penalty": 0.1, "critic_penalty": 0.5},
        "kitchen": {"actor_penalty": 10.0, "critic_penalty": 0.5},  # unpublished: about EDP's weight of Q there
    }

    def check(self, policy: PolicyConfig) -> None:
        super().check(policy)
        if self.guidance in UNITS_OF_Q and self.actor_penalty == 0:
            raise UserError(f"rebrac with `guidance={self.guidance}` needs an `actor_penalty` above 0")
        if self.guidance not in UNITS_OF_Q and self.actor_penalty > 0:
            raise UserError(
                f"`guidance={self.guidance}` shifts actions by `loss_weight`, so `actor_penalty` would change nothing: "
                "leave it out, or use `guidance=value`"
            )

    def next_values(
        self, critic: Critic, batch: Transitions, action: Float[Array, "n act"]
    ) -> Float[Array, "members n"]:
        """Q(s', ã') - beta_c · |ã' - a'|², without the penalty where the data has no next action a'."""
        following = batch.following
        assert following is not None
        distance = jnp.sum((action - following.action) ** 2, axis=-1)
        return critic(batch.next_obs, action) - (self.critic_penalty * following.known * distance)[None]

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """beta_a · |π - a|² - Q(s, π) / mean |Q|, with the policy's action π in s, or the loss of TD3+BC.

        A policy that is no point has its own imitation loss.
        """
        if self.guidance not in UNITS_OF_Q:
            return super().policy_loss(policy, critic, batch, key)
        penalty = self.actor_penalty * self.bc_weight * batch.action.shape[-1]
        return TD3BC.policy_loss(replace(self, bc_weight=penalty), policy, critic, batch, key)
