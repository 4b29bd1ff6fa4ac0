"""Critic-regularised regression (EDP, appendix A.2)."""

from dataclasses import dataclass
from typing import ClassVar

import jax
from jaxtyping import Array, Float

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Metrics
from edp.algorithms.weighted import Weight, weight_by_name, weighted_loss
from edp.batches import Transitions
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Fit, Policy


@dataclass(frozen=True)
class CRR(TDActorCritic):
    weights: str = option("exp", "how advantages become weights: exp, binary or softmax")
    beta: float = option(1.0, "temperature of exp and softmax weights", low=1e-6)
    max_weight: float = option(20.0, "the largest exp weight", low=0.0)
    samples: int = option(10, "actions of the policy that an action is compared with", low=1)

    uses: ClassVar[tuple[str, ...]] = ("action", "log_prob")

    def __post_init__(self):
        _ = self.weight  # refuses an unknown name

    @property
    def weight(self) -> Weight:
        return weight_by_name(self.weights, 1 / self.beta, self.max_weight)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key) -> tuple[Array, Metrics]:
        def advantage(fit: Fit, key) -> Float[Array, " n"]:
            return compared(critic, batch, policy.around(batch.obs, fit, key, self.samples))

        return weighted_loss(
            policy,
            batch,
            key,
            advantage=advantage,
            weight=self.weight,
            loss_weight=self.loss_weight,
            bc_weight=self.bc_weight,
        )


def compared(critic: Critic, batch: Transitions, others: Float[Array, "count n act"]) -> Float[Array, " n"]:
    """min(Q1, Q2)(s, a) less its mean over other actions in the same state (appendix eq. 8)."""
    baseline = jax.vmap(critic, (None, 0))(batch.obs, others).min(axis=1).mean(axis=0)
    return critic(batch.obs, batch.action).min(axis=0) - baseline
