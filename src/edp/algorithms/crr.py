"""Critic-regularised regression (EDP, appendix A.2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Loss
from edp.algorithms.weighted import WEIGHTED_RECIPE, WEIGHTS, Weight, weight_by_name, weighted_loss
from edp.batches import Transitions
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Fit, Policy


@dataclass(frozen=True)
class CRR(TDActorCritic):
    """Hyper-parameters and losses of CRR."""

    weights: str = option("exp", f"how advantages become weights: {', '.join(WEIGHTS)}")
    beta: float = option(1.0, "temperature of exp and softmax weights", low=1e-6)
    max_weight: float = option(20.0, "largest exp weight", low=0.0)
    samples: int = option(10, "number of sampled actions that form the baseline (0: the policy's own action)", low=0)

    uses: ClassVar[tuple[str, ...]] = ("action", "log_prob")
    recipe: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe, **WEIGHTED_RECIPE, "samples": 0}
    # A critic that has seen few actions prefers some of them for no reason, so its weights are close to equal.
    recipe_for_narrow_data: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe_for_narrow_data, "beta": 5.0}
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {"has_likelihood": {"bc_weight": 0.0}}

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.weight  # raises if the name is unknown

    @property
    def weight(self) -> Weight:
        return weight_by_name(self.weights, 1 / self.beta, self.max_weight)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        def advantage(fit: Fit, key: PRNGKeyArray) -> Float[Array, " n"]:
            baseline = policy.around(batch.obs, fit, key, self.samples) if self.samples else fit.action[None]
            return advantage_over(critic, batch, baseline, self.low)

        return weighted_loss(
            policy,
            batch,
            key,
            advantage=advantage,
            weight=self.weight,
            loss_weight=self.loss_weight,
            bc_weight=self.bc_weight,
            standard=self.advantages == "standard",
        )


def advantage_over(
    critic: Critic,
    batch: Transitions,
    others: Float[Array, "count n act"],
    low: Callable[[Float[Array, "members n"]], Float[Array, " n"]],
) -> Float[Array, " n"]:
    """min(Q1, Q2)(s, a) minus its mean over other actions in the same state (appendix eq. 8).

    ``low`` turns the values of the ensemble into one.
    """
    baseline = jax.vmap(lambda action: low(critic(batch.obs, action)))(others).mean(axis=0)
    return low(critic(batch.obs, batch.action)) - baseline
