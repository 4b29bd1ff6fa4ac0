"""Base classes of algorithms: hyper-parameters, optimisers, targets, and two ways of learning values.

``TDActorCritic`` learns values of the policy's actions. ``InSample`` learns values of the data's actions only, with a
state-value network V.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from edp.algorithms.base import Learner, Loss, Metrics, adam, descend, for_each_member, init_learner
from edp.algorithms.weighted import Weight, fixed_advantage, weighted_loss
from edp.batches import Transitions
from edp.errors import UserError, unknown
from edp.networks import MLP, Critic
from edp.options import option
from edp.policies.base import Policy, PolicyConfig


@dataclass(frozen=True)
class Actor:
    """An algorithm that trains a policy."""

    lr: float = option(3e-4, "Adam's learning rate", low=0.0)
    lr_warmup: int = option(0, "steps over which the learning rate rises from 0", low=0)
    lr_decay: int = option(0, "steps after which a cosine has brought the learning rate to 0 (0: no decay)", low=0)
    clip: float = option(5.0, "largest norm of a network's gradient", low=0.0)
    tau: float = option(0.005, "fraction of the way that targets move towards their networks", low=0.0, high=1.0)
    policy_target_every: int = option(5, "steps between moves of the target policy", low=1)
    policy_target_after: int = option(1000, "steps before the first move of the target policy", low=0)

    learns_from: ClassVar[str] = "transitions"
    uses: ClassVar[tuple[str, ...]] = ()
    values_actions: ClassVar[bool] = False
    default_policy: ClassVar[str] = "diffusion"
    defaults: ClassVar[Mapping[str, Any]] = {}
    domain_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    recipe: ClassVar[Mapping[str, Any]] = {}

    def check(self, policy: PolicyConfig) -> None:
        if policy.reads_histories:
            raise UserError("a transformer reads whole histories, which only `algo=dt` trains: use another `policy`")
        for part, asked_by in policy.asks_for.items():
            if part not in self.uses:
                what = {"action": "actions", "log_prob": "likelihoods"}[part]
                raise UserError(
                    f"{asked_by} would change nothing: this algorithm does not learn from the policy's {what}"
                )

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return adam(learning_rate(self.lr, self.lr_warmup, self.lr_decay), self.clip)

    def policy_tau(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """The target policy's tau at this step, which is 0 unless the target moves."""
        moves = (step % self.policy_target_every == 0) & (step > self.policy_target_after)
        return jnp.where(moves, self.tau, 0.0)

    def init_policy(self, policy: Policy) -> Learner:
        return init_learner(policy, self.optimiser)


def learning_rate(lr: float, warmup: int, decay: int) -> optax.ScalarOrSchedule:
    """A constant rate, or one that rises linearly for ``warmup`` steps and falls along a cosine to 0 at ``decay``."""
    if not decay:
        return optax.linear_schedule(0.0, lr, warmup) if warmup else lr
    return optax.warmup_cosine_decay_schedule(0.0 if warmup else lr, lr, min(warmup, decay - 1), decay)


ENSEMBLES = ("min", "mean-std")  # choices of `ensemble`
ADVANTAGES = ("raw", "standard")  # choices of `advantages`


@dataclass(frozen=True)
class ActorCritic(Actor):
    """An algorithm that trains a policy and values."""

    loss_weight: float = option(1.0, "weight of the values in the policy's loss (the paper's loss weight)", low=0.0)
    bc_weight: float = option(1.0, "weight of the imitation loss in the policy's loss (the paper: 1)", low=0.0)
    discount: float = option(0.99, "discount factor", low=0.0, high=1.0)
    critic_hidden: tuple[int, ...] = option(
        (256, 256, 256), "widths of the value networks' hidden layers", low=1, high=65_536
    )
    critic_norm: bool = option(False, "layer norm in the value networks")
    critics: int = option(2, "number of Q-networks", low=1, high=1000)
    ensemble: str = option("min", "value of the Q-networks together: their min, or mean-std (mean - rho · std)")
    rho: float = option(1.0, "pessimism of mean-std", low=0.0)
    ramp: int = option(0, "steps over which `loss_weight` grows from 0 to its value", low=0)
    advantages: str = option("raw", "scale of advantages: raw, or standard (divided by their std, weights of mean 1)")

    def __post_init__(self) -> None:
        if self.ensemble not in ENSEMBLES:
            raise unknown("choice of `ensemble`", self.ensemble, ENSEMBLES)
        if self.advantages not in ADVANTAGES:
            raise unknown("choice of `advantages`", self.advantages, ADVANTAGES)

    def low(self, q: Float[Array, "members n"]) -> Float[Array, " n"]:
        """A pessimistic value of the ensemble."""
        return q.min(axis=0) if self.ensemble == "min" else q.mean(axis=0) - self.rho * q.std(axis=0)

    def at(self, step: Int[Array, ""]) -> Self:
        """These hyper-parameters with the ``loss_weight`` of a step."""
        if not self.ramp:
            return self
        return replace(self, loss_weight=self.loss_weight * jnp.minimum(1.0, step / self.ramp))

    @property
    def critic_optimiser(self) -> optax.GradientTransformation:
        return for_each_member(self.optimiser)

    def init_critic(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Learner:
        critic = Critic(obs_dim, act_dim, self.critic_hidden, key, self.critics, self.critic_norm)
        return init_learner(critic, self.critic_optimiser)

    def init_value(self, obs_dim: int, key: PRNGKeyArray) -> Learner:
        return init_learner(MLP(obs_dim, self.critic_hidden, 1, key, self.critic_norm), self.optimiser)

    def update_policy(
        self,
        policy: Learner,
        batch: Transitions,
        key: PRNGKeyArray,
        step: Int[Array, ""],
        advantage: Float[Array, " n"],
        weight: Weight,
        *,
        imitate: bool | Bool[Array, ""] = False,
    ) -> tuple[Learner, Metrics]:
        """One step of the policy on the weighted likelihood, or on the imitation loss alone if ``imitate`` is true."""
        loss = partial(
            weighted_loss,
            batch=batch,
            key=key,
            advantage=fixed_advantage(advantage),
            weight=weight,
            loss_weight=jnp.where(imitate, 0.0, self.at(step).loss_weight),
            bc_weight=jnp.where(imitate, 1.0, self.bc_weight),
            standard=self.advantages == "standard",
        )
        return descend(policy, loss, self.optimiser, self.policy_tau(step))


def critic_loss(critic: Critic, batch: Transitions, target: Float[Array, " n"]) -> Loss:
    """The squared TD error (EDP eq. 6), summed over the ensemble."""
    q = critic(batch.obs, batch.action)
    loss = jnp.sum(jnp.mean((q - target[None]) ** 2, axis=-1))
    return loss, {"critic_loss": loss, "q_data": q.mean()}


def value_loss(value: MLP, obs: Float[Array, "n obs"], target: Float[Array, " n"], expectile: float) -> Loss:
    """Expectile regression of V: mean |expectile - 1(u < 0)| u² with u = target - V. With 0.5, V learns the mean."""
    u = target - value(obs)[:, 0]
    loss = jnp.mean(jnp.where(u < 0, 1 - expectile, expectile) * u**2)
    return loss, {"value_loss": loss}


class TDState(NamedTuple):
    """The training state of algorithms with a policy and a critic."""

    policy: Learner
    critic: Learner
    step: Int[Array, ""]


@dataclass(frozen=True)
class TDActorCritic(ActorCritic):
    """Algorithms that evaluate the policy by TD learning and improve it by ``policy_loss``, which subclasses define."""

    values_actions: ClassVar[bool] = True

    max_q_backup: int = option(0, "number of next actions, of which the best is backed up (0: one action)", low=0)
    target_noise: float = option(0.0, "TD3's smoothing: std of the noise on next actions, clipped to ±0.5", low=0.0)

    def check(self, policy: PolicyConfig) -> None:
        super().check(policy)
        if self.max_q_backup and policy.deterministic:
            raise UserError(
                "`max_q_backup` takes the best of several next actions, and a deterministic policy has one: "
                "use `policy=diffusion` or gaussian"
            )

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> TDState:
        return TDState(self.init_policy(policy), self.init_critic(obs_dim, act_dim, key), jnp.zeros((), jnp.int32))

    def update(self, state: TDState, batch: Transitions, key: PRNGKeyArray) -> tuple[TDState, Metrics]:
        """Algorithm 1 of the paper."""
        target_key, critic_key, policy_key = jax.random.split(key, 3)
        step = state.step + 1
        target = self.td_target(state.policy.target, state.critic.target, batch, target_key)
        critic, critic_metrics = descend(
            state.critic,
            lambda q: self.critic_loss(q, state.policy.model, batch, target, critic_key),
            self.critic_optimiser,
            self.tau,
        )
        policy, policy_metrics = descend(
            state.policy,
            lambda pi: self.at(step).policy_loss(pi, critic.model, batch, policy_key),
            self.optimiser,
            self.policy_tau(step),
        )
        return TDState(policy, critic, step), critic_metrics | policy_metrics

    def td_target(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Float[Array, " n"]:
        """r + discount · min(Q1, Q2)(s', a') with a' from the policy (appendix eq. 1)."""

        def value(key: PRNGKeyArray) -> Float[Array, "members n"]:
            sample_key, noise_key = jax.random.split(key)
            action = policy.sample(batch.next_obs, sample_key)
            if self.target_noise:
                noise = self.target_noise * jax.random.normal(noise_key, action.shape, action.dtype)
                action = jnp.clip(action + jnp.clip(noise, -0.5, 0.5), -1, 1)
            return critic(batch.next_obs, action)

        q = jax.vmap(value)(jax.random.split(key, count)).max(axis=0) if (count := self.max_q_backup) else value(key)
        return batch.reward + self.discount * batch.not_done * self.low(q)

    def critic_loss(
        self, critic: Critic, policy: Policy, batch: Transitions, target: Float[Array, " n"], key: PRNGKeyArray
    ) -> Loss:
        del policy, key
        return critic_loss(critic, batch, target)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        raise NotImplementedError


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
        self, state: InSampleState, batch: Transitions, expectile: float
    ) -> tuple[Learner, Array, Metrics]:
        """The learner of V after one step towards the expectile of Q, and the Q of the batch."""
        q = self.low(state.critic.target(batch.obs, batch.action))
        value, metrics = descend(
            state.value, lambda v: value_loss(v, batch.obs, q, expectile), self.optimiser, self.tau
        )
        return value, q, metrics

    def update_critic(
        self, state: InSampleState, next_value: Float[Array, " n"], batch: Transitions
    ) -> tuple[Learner, Metrics]:
        """The learner of Q after one step towards r + discount · V(s')."""
        target = batch.reward + self.discount * batch.not_done * next_value
        return descend(state.critic, lambda q: critic_loss(q, batch, target), self.critic_optimiser, self.tau)
