"""Diffusion actor-critic (DAC, Fang et al. 2025): the slope of Q is a soft guide of the noise prediction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic
from edp.algorithms.base import TINY, Loss
from edp.algorithms.td3bc import slopes
from edp.batches import Transitions
from edp.errors import UserError
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy, PolicyConfig


@dataclass(frozen=True)
class DAC(TDActorCritic):
    """Hyper-parameters and losses of DAC."""

    eta: float = option(1.0, "weight of the imitation loss against the guide", low=0.0)

    uses: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = {"critics": 10, "ensemble": "mean-std", "loss_weight": 1.0}
    recipe: ClassVar[Mapping[str, Any]] = {**TDActorCritic.recipe, "prediction": "noise"}

    def check(self, policy: PolicyConfig) -> None:
        super().check(policy)
        if not policy.predicts_noise:
            raise UserError("dac guides a prediction of noise: use `policy=diffusion` with `prediction=noise`")

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """eta · |noise - prediction|² + sigma · <dQ/dx(s, x) / mean |Q|, prediction> at the corrupted action x."""
        fit = policy.fit(batch.obs, batch.action, key)
        corrupted = fit.corrupted
        assert corrupted is not None
        q, slope = slopes(lambda action: self.low(critic(batch.obs, action)), corrupted.action)
        guide = jnp.mean(corrupted.sigma * slope * corrupted.noise) / (jnp.abs(q).mean() + TINY)
        bc = fit.bc.mean()
        loss = self.eta * self.bc_weight * bc + self.loss_weight * guide
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}
