"""TD3+BC (EDP, appendix A.1): the imitation loss, and the Q of the policy's action."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import TINY, Loss, Number
from edp.batches import Transitions
from edp.errors import unknown
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Fit, Policy


@dataclass(frozen=True)
class TD3BC(TDActorCritic):
    """Hyper-parameters and losses of TD3+BC."""

    alpha: float = option(2.0, "weight of Q / mean |Q| against the imitation loss", low=0.0)
    improved: str = option("random", "Q-network whose values the policy increases: random, first, mean of all, or low")
    guidance: str = option(
        "value", "unit of Q's pull: value (mean |Q|), slope (RMS of dQ/da), spread (of actions), or raw (of rewards)"
    )

    uses: ClassVar[tuple[str, ...]] = ("action",)
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {"deterministic": {"target_noise": 0.2}}
    recipe: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe, "guidance": "spread", "loss_weight": 0.5}
    recipe_for_narrow_data: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe_for_narrow_data, "loss_weight": 0.1}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guidance not in GUIDANCES:
            raise unknown("choice of `guidance`", self.guidance, GUIDANCES)
        if self.improved not in IMPROVED:
            raise unknown("choice of `improved`", self.improved, IMPROVED)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """L_diff + lambda · L_pi (eq. 10), where Q is Q1 or Q2 at random (or as ``improved`` says)."""
        fit_key, coin_key = jax.random.split(key)
        fit = policy.fit(batch.obs, batch.action, fit_key)

        def values(action: Float[Array, "n act"]) -> Float[Array, " n"]:
            if self.improved == "first":
                return critic.member(0, batch.obs, action)
            if self.improved == "mean":
                return critic(batch.obs, action).mean(axis=0)
            if self.improved == "low":
                return self.low(critic(batch.obs, action))
            return critic.one_of(batch.obs, action, coin_key)

        weight = self.alpha * self.loss_weight
        q, gain = GUIDANCES[self.guidance](values, fit, batch.action, weight)
        bc = fit.bc.mean()
        loss = self.bc_weight * bc - weight * gain
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}


IMPROVED = ("random", "first", "mean", "low")  # choices of `improved`; low is the lowest, or as `ensemble` says
Actions = Float[Array, "n act"]
Values = Callable[[Actions], Float[Array, " n"]]


def gain_in_values(values: Values, fit: Fit, data: Actions, weight: Number) -> tuple[Array, Array]:
    """Q of the actions, and mean Q / mean |Q|."""
    del data, weight
    q = values(fit.action)
    return q, normalised_mean(q)


def gain_in_rewards(values: Values, fit: Fit, data: Actions, weight: Number) -> tuple[Array, Array]:
    """Q of the actions, and mean Q."""
    del data, weight
    q = values(fit.action)
    return q, q.mean()


def gain_in_slopes(values: Values, fit: Fit, data: Actions, weight: Number) -> tuple[Array, Array]:
    """Q of the actions, and the mean of their product with dQ/da, in units of the RMS of dQ/da.

    Its gradient with respect to the actions is that of mean Q, scaled to the same size on every task.
    """
    del data, weight
    q, slope = slopes(values, fit.action)
    return q, jnp.mean(slope / (root_mean_square(slope) + TINY) * fit.action)


def gain_in_spreads(values: Values, fit: Fit, data: Actions, weight: Number) -> tuple[Array, Array]:
    """Q of the actions, and the mean of their product with a pull that shifts samples by standard deviations.

    Let v be the variance of the data's actions around the policy's, for each dimension. Among all shifts with the same
    KL divergence between N(a, v) and N(a + shift, v), v · dQ/da improves Q most. With weight w, samples are shifted by
    w/2 · v · dQ/da in units of the RMS of √v · dQ/da: by w/2 standard deviations.

    At a noise level of a diffusion policy, v is the variance of the actions that lead to the same corrupted action. It
    is taken to be that of a Gaussian.
    """
    noisy = jnp.broadcast_to(fit.snr, (len(data), 1)) < 1  # where a corrupted action tells little about the action
    squares = jnp.where(noisy, (fit.action - data) ** 2 / fit.variances, 0)
    measured = jax.lax.stop_gradient(squares.sum(axis=0) / jnp.maximum(noisy.sum(axis=0), 1))[None]
    q, slope = slopes(values, fit.action)
    variance, unit = without_shift(measured, jnp.mean(slope**2, axis=0, keepdims=True), weight / 2)
    pull = fit.precision * variance / (1 + fit.snr * variance) * slope / (unit + TINY)
    return q, jnp.mean(pull * fit.action)


def without_shift(
    measured: Float[Array, "1 act"], square_slope: Float[Array, "1 act"], weight: Number
) -> tuple[Float[Array, "1 act"], Float[Array, ""]]:
    """The variance v of the data's actions, and the RMS of √v · dQ/da, where the policy is shifted by ``weight`` steps.

    The measured variance is then v + (weight · v · dQ/da / RMS)², which is solved for v, with an RMS that depends on v.
    """
    variance = measured
    for _ in range(4):
        mean_square = jnp.mean(variance * square_slope) + TINY
        variance = 2 * measured / (1 + jnp.sqrt(1 + 4 * weight**2 * measured * square_slope / mean_square))
    return variance, jnp.sqrt(jnp.mean(variance * square_slope))


def slopes(values: Values, action: Actions) -> tuple[Float[Array, " n"], Actions]:
    """Q of the actions, and dQ/da, both without gradients."""
    q, pull = jax.vjp(values, jax.lax.stop_gradient(action))
    (slope,) = pull(jnp.ones_like(q))
    return jax.lax.stop_gradient((q, slope))


def root_mean_square(x: Array) -> Float[Array, ""]:
    return jnp.sqrt(jnp.mean(x**2))


GUIDANCES = {"value": gain_in_values, "slope": gain_in_slopes, "spread": gain_in_spreads, "raw": gain_in_rewards}
UNITS_OF_Q = ("value", "raw")  # guidances that weigh Q itself; the others shift actions by a given amount


def normalised_mean(q: Float[Array, " n"]) -> Float[Array, ""]:
    """mean Q / mean |Q|, with no gradient through the denominator."""
    return q.mean() / jax.lax.stop_gradient(jnp.abs(q).mean())
