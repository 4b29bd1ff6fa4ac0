"""TD3+BC (EDP, appendix A.1): the imitation loss, and the Q of the policy's action."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Loss
from edp.batches import Transitions
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy


@dataclass(frozen=True)
class TD3BC(TDActorCritic):
    """Hyper-parameters and losses of TD3+BC."""

    alpha: float = option(2.0, "weight of Q / mean |Q| against the imitation loss", low=0.0)

    uses: ClassVar[tuple[str, ...]] = ("action",)
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {"deterministic": {"target_noise": 0.2}}

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """L_diff + lambda · L_pi (eq. 10), where Q is Q1 or Q2 at random."""
        fit_key, coin_key = jax.random.split(key)
        fit = policy.fit(batch.obs, batch.action, fit_key)
        q = critic.one_of(batch.obs, fit.action, coin_key)
        bc = fit.bc.mean()
        loss = self.bc_weight * bc - self.alpha * self.loss_weight * normalised_mean(q)
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}


def normalised_mean(q: Float[Array, " n"]) -> Float[Array, ""]:
    """mean Q / mean |Q|, with no gradient through the denominator."""
    return q.mean() / jax.lax.stop_gradient(jnp.abs(q).mean())
