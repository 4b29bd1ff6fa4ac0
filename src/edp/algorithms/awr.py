"""Advantage-weighted regression (Peng et al. 2019): advantages from the returns in the data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from edp.algorithms.actor_critic import ActorCritic
from edp.algorithms.base import Learner, Metrics, descend
from edp.algorithms.losses import value_loss
from edp.algorithms.weighted import WEIGHTED_RECIPE, exponential
from edp.batches import Transitions
from edp.options import option
from edp.policies.base import Policy


class AWRState(NamedTuple):
    """The training state of AWR, which has no critic."""

    policy: Learner
    value: Learner
    step: Int[Array, ""]
    critic: None = None


@dataclass(frozen=True)
class AWR(ActorCritic):
    """Hyper-parameters and update of AWR."""

    beta: float = option(1.0, "temperature of the weights exp(advantage / beta)", low=1e-6)
    max_weight: float = option(20.0, "largest weight", low=0.0)

    learns_from: ClassVar[str] = "tails"
    uses: ClassVar[tuple[str, ...]] = ("log_prob",)
    recipe: ClassVar[Mapping[str, Any]] = {**ActorCritic.recipe, **WEIGHTED_RECIPE, "n_step": 1}
    defaults: ClassVar[Mapping[str, Any]] = {"eas": 1}
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {"has_likelihood": {"bc_weight": 0.0}}

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> AWRState:
        del act_dim
        return AWRState(self.init_policy(policy), self.init_value(obs_dim, key), jnp.zeros((), jnp.int32))

    def update(self, state: AWRState, batch: Transitions, key: PRNGKeyArray) -> tuple[AWRState, Metrics]:
        """V regresses on returns. Advantages are returns minus V, standardised over the batch."""
        step, tail = state.step + 1, batch.tail
        assert tail is not None
        returns = tail.reward + tail.discount * state.value.target(tail.obs)[:, 0]
        value, value_metrics = descend(
            state.value, lambda v: value_loss(v, batch.obs, returns, expectile=0.5), self.value_optimiser, self.tau
        )
        advantage = standardise(returns - value.model(batch.obs)[:, 0])
        weight = exponential(1 / self.beta, self.max_weight)
        policy, policy_metrics = self.update_policy(state.policy, batch, key, step, advantage, weight)
        return AWRState(policy, value, step), value_metrics | policy_metrics


def standardise(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x with mean 0 and standard deviation 1."""
    return (x - x.mean()) / (x.std() + 1e-5)
