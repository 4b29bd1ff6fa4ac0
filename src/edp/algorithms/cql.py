"""Conservative Q-learning (Kumar et al. 2020): a penalty lowers the values of actions that are not in the data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from edp.algorithms.actor_critic import TDActorCritic, TDState
from edp.algorithms.base import Learner, Loss, Metrics, descend, init_learner, is_zero
from edp.algorithms.losses import critic_loss
from edp.algorithms.td3bc import normalised_mean
from edp.batches import Transitions
from edp.errors import UserError
from edp.networks import Critic
from edp.options import option
from edp.policies.base import Policy, PolicyConfig


class TunedState(NamedTuple):
    """The training state of CQL with ``tune_entropy``."""

    policy: Learner
    critic: Learner
    step: Int[Array, ""]
    log_entropy: Learner  # the logarithm of the entropy's weight


@dataclass(frozen=True)
class CQL(TDActorCritic):
    """Hyper-parameters and losses of CQL."""

    conservatism: float = option(5.0, "weight of the penalty on values of other actions", low=0.0)
    samples: int = option(10, "number of other actions near the policy's, and of random other actions", low=1)
    importance: bool = option(
        False, "add the policy's actions in the next state to the penalty, and divide exp Q by the actions' densities"
    )
    alpha: float = option(2.0, "weight of Q / mean |Q| in the policy's loss", low=0.0)
    scale_q: bool = option(True, "divide Q by mean |Q| in the policy's loss")
    entropy: float = option(0.0, "weight of the policy's entropy in its loss", low=0.0)
    tune_entropy: bool = option(
        False, "learn the entropy's weight, starting at `entropy`, with a target entropy of -1 per action dimension"
    )

    uses: ClassVar[tuple[str, ...]] = ("action",)
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "has_likelihood": {"bc_weight": 0.0},
        "has_density": {"squash": True, "entropy": 0.05},
    }

    def check(self, policy: PolicyConfig) -> None:
        super().check(policy)
        if self.tune_entropy and not self.entropy:
            raise UserError("`tune_entropy` starts from `entropy`, which is 0: use `entropy=1`, for example")
        if self.importance and policy.no_entropy:
            raise UserError("`importance` needs the density of actions: use `policy=gaussian` with `squash`")
        if self.entropy and policy.no_entropy:
            raise UserError(
                f"`entropy` rewards a policy's entropy, and {policy.no_entropy}: "
                "use `policy=gaussian` with `squash` and a learned spread, or `entropy=0`"
            )

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Any:
        state = super().init(policy, obs_dim, act_dim, key)
        if not self.tune_entropy:
            return state
        return TunedState(*state, init_learner(jnp.log(jnp.asarray(self.entropy, float)), self.optimiser))

    def update(self, state: Any, batch: Transitions, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """The update of ``TDActorCritic``. With ``tune_entropy``, the entropy's weight also makes a step.

        That step is on -log weight · (log pi - d), where d is the number of action dimensions.
        """
        if not self.tune_entropy:
            return super().update(state, batch, key)
        update_key, sample_key = jax.random.split(key)
        weighted = replace(self, entropy=jnp.exp(state.log_entropy.model))
        new, metrics = TDActorCritic.update(weighted, TDState(*state[:3]), batch, update_key)
        _, log_prob = state.policy.model.sample_with_log_prob(batch.obs, sample_key)
        excess = log_prob.mean() - batch.action.shape[-1]
        loss = lambda log_weight: (-log_weight * excess, {"entropy": -log_prob.mean()})  # noqa: E731
        log_entropy, entropy_metrics = descend(state.log_entropy, loss, self.optimiser, self.tau)
        return TunedState(*new, log_entropy), metrics | entropy_metrics

    def critic_loss(
        self, critic: Critic, policy: Policy, batch: Transitions, target: Float[Array, " n"], key: PRNGKeyArray
    ) -> Loss:
        """The squared TD error plus the conservative penalty, log mean exp Q(s, ·) - Q(s, a), of each member."""
        fit_key, near_key, random_key = jax.random.split(key, 3)
        if self.importance:
            others, log_density = self.samples_with_densities(policy, batch, near_key, random_key)
        else:
            near = policy.around(batch.obs, policy.fit(batch.obs, batch.action, fit_key), near_key, self.samples)
            uniform = jax.random.uniform(random_key, near.shape, near.dtype, -1, 1)
            others, log_density = jnp.concatenate([jnp.clip(near, -1, 1), uniform]), None
        loss, metrics = critic_loss(critic, batch, target)
        gap = jnp.sum(conservative_gap(critic, batch, others, log_density))
        return loss + self.conservatism * gap, metrics | {"conservative_gap": gap}

    def samples_with_densities(
        self, policy: Policy, batch: Transitions, near_key: PRNGKeyArray, random_key: PRNGKeyArray
    ) -> tuple[Float[Array, "count n act"], Float[Array, "count n"]]:
        """The policy's actions in each state and in the next one, uniform actions, and their log-densities."""
        keys = jax.random.split(near_key, (2, self.samples))
        draw = jax.vmap(policy.sample_with_log_prob, (None, 0))
        here, next_ = draw(batch.obs, keys[0]), draw(batch.next_obs, keys[1])
        uniform = jax.random.uniform(random_key, here[0].shape, here[0].dtype, -1, 1)
        spread = jnp.full_like(here[1], -batch.action.shape[-1] * math.log(2))
        return jnp.concatenate([here[0], next_[0], uniform]), jnp.concatenate([here[1], next_[1], spread])

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        """The imitation loss, minus the smaller Q divided by mean |Q|, minus the weighted entropy of the policy."""
        fit_key, sample_key = jax.random.split(key)
        fit = policy.fit(batch.obs, batch.action, fit_key)
        if self.tune_entropy or not is_zero(self.entropy):
            action, log_prob = policy.sample_with_log_prob(batch.obs, sample_key)
        else:
            action, log_prob = fit.action, jnp.zeros(())
        q, bc = self.low(critic(batch.obs, action)), fit.bc.mean()
        gain = normalised_mean(q) if self.scale_q else q.mean()
        loss = self.bc_weight * bc - self.alpha * self.loss_weight * gain + self.entropy * log_prob.mean()
        return loss, {"policy_loss": loss, "bc_loss": bc, "q_policy": q.mean()}


def conservative_gap(
    critic: Critic,
    batch: Transitions,
    others: Float[Array, "count n act"],
    log_density: Float[Array, "count n"] | None = None,
) -> Float[Array, " members"]:
    """log mean exp Q over other actions, minus Q of the data's actions, averaged over the batch (CQL eq. 4).

    With the log-densities of the other actions, exp Q is divided by the densities: the mean estimates an integral.
    """
    q = jax.vmap(critic, (None, 0))(batch.obs, others)  # count, members, n
    q = q if log_density is None else q - log_density[:, None]
    soft_max = jax.nn.logsumexp(q, axis=0) - math.log(others.shape[0])
    return jnp.mean(soft_max - critic(batch.obs, batch.action), axis=-1)
