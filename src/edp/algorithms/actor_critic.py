"""Base classes of algorithms: hyper-parameters, optimisers, targets, and learning values of the policy's actions.

``edp.algorithms.in_sample`` learns values of the data's actions only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from edp.algorithms.base import (
    Learner,
    Loss,
    Metrics,
    adam,
    descend,
    for_each_member,
    init_learner,
    is_zero,
    learning_rate,
)
from edp.algorithms.losses import critic_loss
from edp.algorithms.weighted import Weight, fixed_advantage, weighted_loss
from edp.batches import Transitions
from edp.errors import UserError, unknown
from edp.networks import ACTIVATIONS, MLP, Critic
from edp.options import option
from edp.policies.base import Policy, PolicyConfig

Same = TypeVar("Same", bound="ActorCritic")  # beartype does not know ``Self`` in methods


@dataclass(frozen=True)
class Actor:
    """An algorithm that trains a policy."""

    lr: float = option(3e-4, "Adam's learning rate", low=0.0)
    lr_warmup: int = option(0, "steps over which the learning rate rises from 0", low=0, is_input=True)
    lr_decay: int = option(
        0, "step at which a cosine decay of the learning rate reaches 0 (0: no decay)", low=0, is_input=True
    )
    clip: float = option(5.0, "largest norm of a network's gradient", low=0.0)
    tau: float = option(0.005, "fraction by which targets move towards their networks per update", low=0.0, high=1.0)
    policy_target_every: int = option(5, "steps between moves of the target policy", low=1, is_input=True)
    policy_target_after: int = option(1000, "steps before the first move of the target policy", low=0, is_input=True)

    learns_from: ClassVar[str] = "transitions"
    uses: ClassVar[tuple[str, ...]] = ()
    values_actions: ClassVar[bool] = False
    default_policy: ClassVar[str] = "diffusion"
    defaults: ClassVar[Mapping[str, Any]] = {}
    domain_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    recipe: ClassVar[Mapping[str, Any]] = {}
    eas_waits: ClassVar[float] = 4.0  # time constants of the critic after which the recipe selects actions
    eas_least: ClassVar[int] = 7000  # training steps before which it does not: at 4,000 and 5,000, selection did harm
    recipe_for_narrow_data: ClassVar[Mapping[str, Any]] = {}
    recipe_for_sparse_rewards: ClassVar[Mapping[str, Any]] = {}
    # Demonstrations go on smoothly from step to step, and an action that is drawn anew in every step does not.
    recipe_for_smooth_actions: ClassVar[Mapping[str, Any]] = {"initial_noise": 0.0}

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


ENSEMBLES = ("min", "mean-std")  # choices of `ensemble`
ADVANTAGES = ("raw", "standard")  # choices of `advantages`
NEXT_ACTIONS = ("average", "online")  # choices of `next_actions`


@dataclass(frozen=True)
class ActorCritic(Actor):
    """An algorithm that trains a policy and values."""

    loss_weight: float = option(1.0, "weight of the values in the policy's loss (the paper's loss weight)", low=0.0)
    bc_weight: float = option(1.0, "weight of the imitation loss in the policy's loss (the paper: 1)", low=0.0)
    discount: float = option(0.99, "discount factor", low=0.0, high=1.0)
    critic_hidden: tuple[int, ...] = option(
        (256, 256, 256), "widths of the value networks' hidden layers", low=1, high=65_536
    )
    critic_activation: str = option("mish", f"activation function of the value networks: {', '.join(ACTIVATIONS)}")
    critic_norm: bool = option(False, "layer norm in the value networks")
    critic_schedule: bool = option(True, "use warm-up and decay of the learning rate for the value networks, too")
    policy_lr: float = option(0.0, "learning rate of the policy (0: `lr`)", low=0.0)
    critics: int = option(2, "number of Q-networks", low=1, high=1000)
    ensemble: str = option("min", "how Q-networks are combined: min, or mean-std (mean - rho · std)")
    rho: float = option(1.0, "weight of the std in mean-std", low=0.0)
    ramp: int = option(0, "steps over which `loss_weight` grows from 0 to its value", low=0, is_input=True)
    advantages: str = option("raw", "scale of advantages: raw, or standard (divided by their std, weights of mean 1)")

    recipe: ClassVar[Mapping[str, Any]] = {
        "critic_norm": True,
        "tau": 0.02,
        "policy_target_every": 20,  # which keeps the average of the policy as slow as with the paper's tau
        "n_step": 5,
    }
    # Where a critic has seen each action many times, and few others, it cannot tell which of several samples is best.
    recipe_for_narrow_data: ClassVar[Mapping[str, Any]] = {"eas": 1}
    # Where rewards are sparse, values lead straight to the goal, and the best of several samples leads into walls.
    recipe_for_sparse_rewards: ClassVar[Mapping[str, Any]] = {"eas": 1}

    def __post_init__(self) -> None:
        if self.ensemble not in ENSEMBLES:
            raise unknown("choice of `ensemble`", self.ensemble, ENSEMBLES)
        if self.advantages not in ADVANTAGES:
            raise unknown("choice of `advantages`", self.advantages, ADVANTAGES)
        if self.critic_activation not in ACTIVATIONS:
            raise unknown("choice of `critic_activation`", self.critic_activation, ACTIVATIONS)

    def low(self, q: Float[Array, "members n"]) -> Float[Array, " n"]:
        """One pessimistic value from those of all members."""
        return q.min(axis=0) if self.ensemble == "min" else q.mean(axis=0) - self.rho * q.std(axis=0)

    def at(self: Same, step: Int[Array, ""]) -> Same:
        """These hyper-parameters with the ``loss_weight`` of a step."""
        if is_zero(self.ramp):
            return self
        return replace(self, loss_weight=self.loss_weight * jnp.minimum(1.0, step / self.ramp))

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """The optimiser of the policy."""
        lr = self.lr if is_zero(self.policy_lr) else self.policy_lr
        return adam(learning_rate(lr, self.lr_warmup, self.lr_decay), self.clip)

    @property
    def value_optimiser(self) -> optax.GradientTransformation:
        schedule = (self.lr_warmup, self.lr_decay) if self.critic_schedule else (0, 0)
        return adam(learning_rate(self.lr, *schedule), self.clip)

    @property
    def critic_optimiser(self) -> optax.GradientTransformation:
        return for_each_member(self.value_optimiser)

    def init_critic(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Learner:
        options = self.critic_hidden, key, self.critics, self.critic_norm, self.critic_activation
        critic = Critic(obs_dim, act_dim, *options)
        return init_learner(critic, self.critic_optimiser)

    def init_value(self, obs_dim: int, key: PRNGKeyArray) -> Learner:
        value = MLP(obs_dim, self.critic_hidden, 1, key, self.critic_norm, self.critic_activation)
        return init_learner(value, self.value_optimiser)

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


class TDState(NamedTuple):
    """The training state of algorithms with a policy and a critic."""

    policy: Learner
    critic: Learner
    step: Int[Array, ""]


@dataclass(frozen=True)
class TDActorCritic(ActorCritic):
    """Algorithms that evaluate the policy by TD learning and improve it by ``policy_loss``, which subclasses define."""

    values_actions: ClassVar[bool] = True

    max_q_backup: int = option(0, "number of next actions in a TD target, which uses the best (0: one action)", low=0)
    target_noise: float = option(0.0, "TD3's smoothing: std of the noise on next actions, clipped to ±0.5", low=0.0)
    policy_every: int = option(1, "TD3's delay: steps between updates of the policy and of all targets", low=1)
    next_actions: str = option("average", "parameters that choose next actions in TD targets: average, or online")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.next_actions not in NEXT_ACTIONS:
            raise unknown("choice of `next_actions`", self.next_actions, NEXT_ACTIONS)

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
        evaluated = state.policy.target if self.next_actions == "average" else state.policy.model
        target = self.td_target(evaluated, state.critic.target, batch, target_key)
        critic, critic_metrics = descend(
            state.critic,
            lambda q: self.critic_loss(q, state.policy.model, batch, target, critic_key),
            self.critic_optimiser,
            self.tau if self.policy_every == 1 else jnp.where(self.improves(step), self.tau, 0.0),
        )
        policy, policy_metrics = self.improve(
            state.policy, step, lambda pi: self.at(step).policy_loss(pi, critic.model, batch, policy_key)
        )
        return TDState(policy, critic, step), critic_metrics | policy_metrics

    def improves(self, step: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether the policy and the targets move at this step."""
        return step % self.policy_every == 0

    def improve(self, policy: Learner, step: Int[Array, ""], loss: Callable[[Policy], Loss]) -> tuple[Learner, Metrics]:
        """One step of the policy. On the steps that ``policy_every`` leaves out, only the metrics are computed."""

        def update(policy: Learner) -> tuple[Learner, Metrics]:
            return descend(policy, loss, self.optimiser, self.policy_tau(step))

        if self.policy_every == 1:
            return update(policy)
        return jax.lax.cond(self.improves(step), update, lambda policy: (policy, loss(policy.model)[1]), policy)

    def td_target(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Float[Array, " n"]:
        """r + discount · min(Q1, Q2)(s', a') with a' from the policy (appendix eq. 1)."""

        def value(key: PRNGKeyArray) -> Float[Array, "members n"]:
            sample_key, noise_key = jax.random.split(key)
            action = policy.sample(batch.next_obs, sample_key)
            if not is_zero(self.target_noise):
                noise = self.target_noise * jax.random.normal(noise_key, action.shape, action.dtype)
                action = jnp.clip(action + jnp.clip(noise, -0.5, 0.5), -1, 1)
            return self.next_values(critic, batch, action)

        q = jax.vmap(value)(jax.random.split(key, count)).max(axis=0) if (count := self.max_q_backup) else value(key)
        return batch.reward + self.discount * batch.not_done * self.low(q)

    def next_values(
        self, critic: Critic, batch: Transitions, action: Float[Array, "n act"]
    ) -> Float[Array, "members n"]:
        """The values of next actions in TD targets, of each member."""
        return critic(batch.next_obs, action)

    def critic_loss(
        self, critic: Critic, policy: Policy, batch: Transitions, target: Float[Array, " n"], key: PRNGKeyArray
    ) -> Loss:
        del policy, key
        return critic_loss(critic, batch, target)

    def policy_loss(self, policy: Policy, critic: Critic, batch: Transitions, key: PRNGKeyArray) -> Loss:
        raise NotImplementedError
