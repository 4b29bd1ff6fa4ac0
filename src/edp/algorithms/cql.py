"""Conservative Q-learning (Kumar et al. 2020): a penalty lowers the values of actions that are not in the data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic, critic_loss
from edp.algorithms.base import Loss
from edp.algorithms.td3bc import normalised_mean
from edp.batches import Transitions
from edp.errors import UserError
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy, PolicyConfig


@dataclass(frozen=True)
class CQL(TDActorCritic):
    """Hyper-parameters and losses of CQL."""

    conservatism: float = option(5.0, "weight of the penalty on values of other actions", low=0.0)
    samples: int = option(10, "number of other actions near the policy's, and of random other actions", low=1)
    alpha: float = option(2.0, "weight of Q / mean |Q| in the policy's loss", low=0.0)
    entropy: float = option(0.0, "weight of the policy's entropy in its loss", low=0.0)

    uses: ClassVar[tuple[str, ...]] = ("action",)
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "has_likelihood": {"bc_weight": 0.0},
        "has_density": {"squash": True, "entropy": 0.05},
    }

    def check(self, policy: PolicyConfig) -> None:
        super().check(policy)
        if self.entropy and policy.no_entropy:
            raise UserError(
                f"`entropy` rewards a policy's entropy, and {policy.no_entropy}: "
                "use `policy=gaussian` with `squash` and a learned spread, or `entropy=0`"
            )

    def critic_loss(
        self, critic: Critic, policy: Policy, batch: Transitions, target: Float[Array, " n"], key: PRNGKeyArray
    ) -> Loss:
        """The squared TD error plus the conservative penalty, log mean exp Q(s, ·) - Q(s, a), of each member."""
        fit_key, near_key, random_key = jax.random.split(key, 3)
        near = policy.around(batch.obs, policy.fit(batch.obs, batch.action, fit_key), near_key, self.samples)
        uniform = jax.random.uniform(random_key, near.shape, near.dtype, -1, 1)
        others = jnp.concatenate([jnp.clip(near, -1, 1), uniform])
        loss, metrics = critic_loss(critic, batch, target)
        gap = jnp.sum(conservative_gap(critic, batch, others))
        return loss + self.conservatism * gap, metrics | {"conservative_gap": gap}

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """The imitation loss, minus the smaller Q divided by mean |Q|, minus the weighted entropy of the policy."""
        fit_key, sample_key = jax.random.split(key)
        fit = policy.fit(batch.obs, batch.action, fit_key)
        if self.entropy:
            action, log_prob = policy.sample_with_log_prob(batch.obs, sample_key)
        else:
            action, log_prob = fit.action, jnp.zeros(())
        q, bc = self.low(critic(batch.obs, action)), fit.bc.mean()
        loss = self.bc_weight * bc - self.alpha * self.loss_weight * normalised_mean(q) + self.entropy * log_prob.mean()
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}


def conservative_gap(
    critic: Critic, batch: Transitions, others: Float[Array, "count n act"]
) -> Float[Array, " members"]:
    """log mean exp Q over other actions, minus Q of the data's actions, averaged over the batch (CQL eq. 4)."""
    q = jax.vmap(critic, (None, 0))(batch.obs, others)  # count, members, n
    soft_max = jax.nn.logsumexp(q, axis=0) - math.log(others.shape[0])
    return jnp.mean(soft_max - critic(batch.obs, batch.action), axis=-1)
