"""Advantage-weighted actor-critic (Nair et al. 2020): CRR with the policy's own action as the baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Loss
from edp.algorithms.crr import advantage_over
from edp.algorithms.weighted import WEIGHTED_RECIPE, exponential, weighted_loss
from edp.batches import Transitions
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Fit, Policy


@dataclass(frozen=True)
class AWAC(TDActorCritic):
    """Hyper-parameters and losses of AWAC."""

    beta: float = option(1.0, "temperature of the weights exp(advantage / beta)", low=1e-6)
    max_weight: float = option(100.0, "largest weight", low=0.0)
    samples: int = option(0, "number of sampled actions that form the baseline (0: the policy's own action)", low=0)

    uses: ClassVar[tuple[str, ...]] = ("action", "log_prob")
    recipe: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe, **WEIGHTED_RECIPE}
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {"has_likelihood": {"bc_weight": 0.0}}

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        def advantage(fit: Fit, key: PRNGKeyArray) -> Float[Array, " n"]:
            baseline = policy.around(batch.obs, fit, key, self.samples) if self.samples else fit.action[None]
            return advantage_over(critic, batch, baseline, self.low)

        return weighted_loss(
            policy,
            batch,
            key,
            advantage=advantage,
            weight=exponential(1 / self.beta, self.max_weight),
            loss_weight=self.loss_weight,
            bc_weight=self.bc_weight,
            standard=self.advantages == "standard",
        )
