"""TD3+BC (EDP, appendix A.1): imitate, and move the policy's action to where Q is higher."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Metrics
from edp.batches import Transitions
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy


@dataclass(frozen=True)
class TD3BC(TDActorCritic):
    alpha: float = option(2.0, "weight of Q against imitation, before |Q| is divided out", low=0.0)

    uses: ClassVar[tuple[str, ...]] = ("action",)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key) -> tuple[Array, Metrics]:
        """L_diff + lambda · L_pi (eq. 10); Q is Q1 or Q2 by the toss of a coin."""
        fit_key, coin_key = jax.random.split(key)
        fit = policy.fit(batch.obs, batch.action, fit_key)
        q = critic.one_of(batch.obs, fit.action, coin_key)
        bc = fit.bc.mean()
        loss = self.bc_weight * bc - self.alpha * self.loss_weight * relative(q)
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}


def relative(q: Float[Array, " n"]) -> Float[Array, ""]:
    """The mean of Q in units of its own size, mean |Q|, which has no gradient."""
    return q.mean() / jax.lax.stop_gradient(jnp.abs(q).mean())
