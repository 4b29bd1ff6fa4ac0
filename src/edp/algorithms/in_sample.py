"""Base class of algorithms that learn values of the data's actions only, with a state-value network V."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from edp.algorithms.actor_critic import ActorCritic
from edp.algorithms.base import Learner, Metrics, Number, descend
from edp.algorithms.losses import critic_loss, value_loss
from edp.algorithms.weighted import WEIGHTED_RECIPE
from edp.batches import Transitions
from edp.policies.base import Policy


class InSampleState(NamedTuple):
    """The training state of algorithms with a policy, a critic and a state-value network."""

    policy: Learner
    critic: Learner
    value: Learner
    step: Int[Array, ""]


@dataclass(frozen=True)
class InSample(ActorCritic):
    """Algorithms that learn values of the data's actions only: V regresses on Q, and Q bootstraps from V."""

    uses: ClassVar[tuple[str, ...]] = ("log_prob",)
    values_actions: ClassVar[bool] = True
    recipe: ClassVar[Mapping[str, Any]] = {**ActorCritic.recipe, **WEIGHTED_RECIPE, "temperature": 1.0}
    eas_waits: ClassVar[float] = 6.0  # at 4 and 5, selection harmed one of three seeds (docs/recipe.md)
    eas_least: ClassVar[int] = 10_000
    domain_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "locomotion": {"rewards": "return-range"},
        "antmaze": {"rewards": "minus-one"},
    }
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {"has_likelihood": {"bc_weight": 0.0}}

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> InSampleState:
        critic_key, value_key = jax.random.split(key)
        return InSampleState(
            self.init_policy(policy),
            self.init_critic(obs_dim, act_dim, critic_key),
            self.init_value(obs_dim, value_key),
            jnp.zeros((), jnp.int32),
        )

    def update_value(
        self, state: InSampleState, batch: Transitions, expectile: Number
    ) -> tuple[Learner, Array, Metrics]:
        """The learner of V after one step towards the expectile of Q, and the Q of the batch."""
        q = self.low(state.critic.target(batch.obs, batch.action))
        value, metrics = descend(
            state.value, lambda v: value_loss(v, batch.obs, q, expectile), self.value_optimiser, self.tau
        )
        return value, q, metrics

    def update_critic(
        self, state: InSampleState, next_value: Float[Array, " n"], batch: Transitions
    ) -> tuple[Learner, Metrics]:
        """The learner of Q after one step towards r + discount · V(s')."""
        target = batch.reward + self.discount * batch.not_done * next_value
        return descend(state.critic, lambda q: critic_loss(q, batch, target), self.critic_optimiser, self.tau)
