"""TD3+BC (EDP, appendix A.1): the imitation loss, and the Q of the policy's action."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import TINY, Loss
from edp.batches import Transitions
from edp.errors import unknown
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy


@dataclass(frozen=True)
class TD3BC(TDActorCritic):
    """Hyper-parameters and losses of TD3+BC."""

    alpha: float = option(2.0, "weight of Q / mean |Q| against the imitation loss", low=0.0)
    improved: str = option("random", "Q-network whose values the policy increases: random, or first")
    guidance: str = option("value", "unit of Q in the policy's loss: value (mean |Q|), or slope (RMS of dQ/da)")

    uses: ClassVar[tuple[str, ...]] = ("action",)
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {"deterministic": {"target_noise": 0.2}}
    recipe: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe, "guidance": "slope", "loss_weight": 0.05}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guidance not in GUIDANCES:
            raise unknown("choice of `guidance`", self.guidance, GUIDANCES)
        if self.improved not in IMPROVED:
            raise unknown("choice of `improved`", self.improved, IMPROVED)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """L_diff + lambda · L_pi (eq. 10), where Q is Q1 or Q2 at random (or always Q1)."""
        fit_key, coin_key = jax.random.split(key)
        fit = policy.fit(batch.obs, batch.action, fit_key)

        def values(action: Float[Array, "n act"]) -> Float[Array, " n"]:
            if self.improved == "first":
                return critic.member(0, batch.obs, action)
            return critic.one_of(batch.obs, action, coin_key)

        q, gain = GUIDANCES[self.guidance](values, fit.action)
        bc = fit.bc.mean()
        loss = self.bc_weight * bc - self.alpha * self.loss_weight * gain
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}


IMPROVED = ("random", "first")  # choices of `improved`
Values = Callable[[Float[Array, "n act"]], Float[Array, " n"]]


def gain_in_values(values: Values, action: Float[Array, "n act"]) -> tuple[Array, Array]:
    """Q of the actions, and mean Q / mean |Q|."""
    q = values(action)
    return q, normalised_mean(q)


def gain_in_slopes(values: Values, action: Float[Array, "n act"]) -> tuple[Array, Array]:
    """Q of the actions, and the mean of their product with dQ/da, in units of the RMS of dQ/da.

    Its gradient with respect to the actions is that of mean Q, scaled to the same size on every task.
    """
    q, pull = jax.vjp(values, jax.lax.stop_gradient(action))
    (slope,) = pull(jnp.ones_like(q))
    slope = jax.lax.stop_gradient(slope / (jnp.sqrt(jnp.mean(slope**2)) + TINY))
    return q, jnp.mean(slope * action)


GUIDANCES = {"value": gain_in_values, "slope": gain_in_slopes}


def normalised_mean(q: Float[Array, " n"]) -> Float[Array, ""]:
    """mean Q / mean |Q|, with no gradient through the denominator."""
    return q.mean() / jax.lax.stop_gradient(jnp.abs(q).mean())
