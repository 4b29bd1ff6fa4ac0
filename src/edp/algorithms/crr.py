"""Critic-regularised regression (EDP, appendix A.2)."""

from dataclasses import dataclass

import jax
from jaxtyping import Array, Float

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import Metrics
from edp.algorithms.weighted import Weight, binary, exponential, softmax, weighted_loss
from edp.errors import unknown
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Fit, Policy
from edp.types import Transitions

WEIGHTS = ("exp", "binary", "softmax")


@dataclass(frozen=True)
class CRR(TDActorCritic):
    weights: str = option("exp", "how advantages become weights: exp, binary or softmax")
    beta: float = option(1.0, "temperature of exp and softmax weights", low=1e-6)
    max_weight: float = option(20.0, "the largest exp weight", low=0.0)
    samples: int = option(10, "actions around the policy's that an action is compared with", low=1)

    def __post_init__(self):
        if self.weights not in WEIGHTS:
            raise unknown("choice of --weights", self.weights, WEIGHTS)

    @property
    def weight(self) -> Weight:
        exp, soft = exponential(1 / self.beta, self.max_weight), softmax(1 / self.beta)
        return {"exp": exp, "binary": binary, "softmax": soft}[self.weights]

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key) -> tuple[Array, Metrics]:
        def advantage(fit: Fit, key) -> Float[Array, " n"]:
            return crr_advantage(critic, batch, fit.action, key, self.samples)

        return weighted_loss(policy, batch, key, advantage=advantage, weight=self.weight, loss_weight=self.loss_weight)


def crr_advantage(
    critic: Critic, batch: Transitions, mean: Float[Array, "n act"], key, samples: int
) -> Float[Array, " n"]:
    """min(Q1, Q2)(s, a) less its mean over actions drawn from N(mean, I) (appendix eq. 6)."""
    actions = mean[None] + jax.random.normal(key, (samples, *mean.shape), mean.dtype)
    baseline = jax.vmap(critic, (None, 0))(batch.obs, actions).min(axis=1).mean(axis=0)
    return critic(batch.obs, batch.action).min(axis=0) - baseline
