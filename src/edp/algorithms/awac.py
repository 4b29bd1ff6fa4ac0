"""Advantage-weighted actor-critic (Nair et al. 2020): as CRR, but compared with the policy's own action."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Array, Float

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Metrics
from edp.algorithms.crr import compared
from edp.algorithms.weighted import exponential, weighted_loss
from edp.batches import Transitions
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Fit, Policy


@dataclass(frozen=True)
class AWAC(TDActorCritic):
    beta: float = option(1.0, "temperature of the weights exp(advantage / beta)", low=1e-6)
    max_weight: float = option(100.0, "the largest such weight", low=0.0)

    uses: ClassVar[tuple[str, ...]] = ("action", "log_prob")

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key) -> tuple[Array, Metrics]:
        def advantage(fit: Fit, key) -> Float[Array, " n"]:
            del key
            return compared(critic, batch, fit.action[None])

        return weighted_loss(
            policy,
            batch,
            key,
            advantage=advantage,
            weight=exponential(1 / self.beta, self.max_weight),
            loss_weight=self.loss_weight,
            bc_weight=self.bc_weight,
        )
