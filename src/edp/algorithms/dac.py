"""Diffusion actor-critic (DAC, Fang et al. 2025): the slope of Q is a soft guide of the noise prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic, TDState
from edp.algorithms.base import TINY, Learner, Loss, Metrics, is_zero
from edp.algorithms.td3bc import slopes
from edp.batches import Transitions
from edp.errors import UserError
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy, PolicyConfig

SMALLEST_ETA, LARGEST_ETA = 1e-3, 100.0  # between which eta is learned, as in the authors' code


class TunedState(NamedTuple):
    """The training state of DAC with ``eta_lr``."""

    policy: Learner
    critic: Learner
    step: Int[Array, ""]
    eta: Float[Array, ""]


@dataclass(frozen=True)
class DAC(TDActorCritic):
    """Hyper-parameters and losses of DAC."""

    eta: float = option(1.0, "weight of the imitation loss against the guide, or its first value", low=0.0)
    eta_lr: float = option(0.0, "learning rate of `eta` (0: it is fixed)", low=0.0)
    bc_limit: float = option(1.0, "imitation loss above which a learned `eta` rises, and below which it falls", low=0.0)

    uses: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = {"critics": 10, "ensemble": "mean-std", "loss_weight": 1.0}
    recipe: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe, "prediction": "noise"}

    def check(self, policy: PolicyConfig) -> None:
        super().check(policy)
        if not policy.predicts_noise:
            raise UserError("dac guides a prediction of noise: use `policy=diffusion` with `prediction=noise`")

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Any:
        state = super().init(policy, obs_dim, act_dim, key)
        return state if is_zero(self.eta_lr) else TunedState(*state, jnp.asarray(self.eta, float))

    def update(self, state: Any, batch: Transitions, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """The update of ``TDActorCritic``. With ``eta_lr``, eta also makes a step of dual ascent.

        Eta is the multiplier of the constraint that the imitation loss is at most ``bc_limit``.
        """
        if is_zero(self.eta_lr):
            return super().update(state, batch, key)
        weighted = replace(self, eta=state.eta)
        new, metrics = TDActorCritic.update(weighted, TDState(*state[:3]), batch, key)
        excess = jnp.clip(metrics["bc_loss"] - self.bc_limit, -1, 1)
        eta = jnp.clip(state.eta + self.eta_lr * excess, SMALLEST_ETA, LARGEST_ETA)
        return TunedState(*new, eta), metrics | {"eta": state.eta}

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """eta · |noise - prediction|² + sigma · <dQ/dx(s, x) / mean |Q|, prediction> at the corrupted action x.

        Q is the mean of all members, and mean |Q| is that of the data's actions. The smallest loss is at the prediction
        noise - sigma · dQ/dx / (2 · eta · mean |Q|). With fine noise levels, and as far as Q of x is close to Q of the
        actions that x came from, samples follow the data's density times exp(Q / (2 · eta · mean |Q|)).
        """
        fit = policy.fit(batch.obs, batch.action, key)
        corrupted = fit.corrupted
        assert corrupted is not None
        q, slope = slopes(lambda action: critic(batch.obs, action).mean(axis=0), corrupted.action)
        unit = jnp.abs(critic(batch.obs, batch.action)).mean() + TINY
        guide = jnp.mean(corrupted.sigma * slope * corrupted.noise) / unit
        bc = fit.bc.mean()
        loss = self.eta * self.bc_weight * bc + self.loss_weight * guide
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}
