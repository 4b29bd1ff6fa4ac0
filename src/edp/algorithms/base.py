"""The interface of algorithms (``Algorithm``), and the gradient step that all of them share (``descend``)."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from edp.policies.base import Policy, PolicyConfig

TINY = 1e-30  # the smallest norm that is divided by
Metrics = dict[str, Float[Array, ""]]
Number = float | int | Array  # a hyper-parameter: a number, or an input of a compiled program
Loss = tuple[Float[Array, ""], Metrics]


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass of hyper-parameters with these declarations and methods.

    A training state has the learners ``policy`` and ``critic``. The critic is None if ``values_actions`` is false.
    """

    learns_from: ClassVar[str]  # the kind of a batch: "transitions", "tails", … (see training/batch_source)
    uses: ClassVar[tuple[str, ...]]  # the fields of a policy's ``Fit`` that it uses, beside the imitation loss
    values_actions: ClassVar[bool]  # it has a critic
    default_policy: ClassVar[str]  # the policy of a run that names none
    defaults: ClassVar[Mapping[str, Any]]  # values of any option of a run that suit this algorithm
    domain_defaults: ClassVar[Mapping[str, Mapping[str, Any]]]  # the same for tasks of a domain, by the domain's name
    policy_defaults: ClassVar[Mapping[str, Mapping[str, Any]]]  # the same for policies that declare this: for example
    # {"has_likelihood": {"bc_weight": 0.0}}; see PolicyConfig for the declarations
    recipe: ClassVar[Mapping[str, Any]]  # values of the preset ``quick`` for this algorithm
    eas_waits: ClassVar[float]  # time constants of the critic after which the recipe selects actions
    eas_least: ClassVar[int]  # training steps before which it does not
    recipe_for_narrow_data: ClassVar[Mapping[str, Any]]  # the same, for data with few rows or smooth actions
    recipe_for_sparse_rewards: ClassVar[Mapping[str, Any]]  # the same, for data with sparse rewards
    recipe_for_smooth_actions: ClassVar[Mapping[str, Any]]  # the same, for data with smooth actions alone

    def check(self, policy: PolicyConfig) -> None:
        """Raise a ``UserError`` that says why the algorithm cannot train this policy, and which it can."""
        ...

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Any:
        """The training state at the start."""
        ...

    def update(self, state: Any, batch: Any, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """The training state after one step on a batch, and the metrics of that step."""
        ...


class Learner(NamedTuple):
    """A model, its target (a slow average of the model), and the optimiser's state."""

    model: Any
    target: Any
    opt: optax.OptState


def init_learner(model: Any, optimiser: optax.GradientTransformation) -> Learner:
    """A learner whose target is a copy of the model."""
    return Learner(model, jax.tree.map(lambda leaf: leaf.copy(), model), optimiser.init(model))


def descend(
    learner: Learner,
    loss: Callable[[Any], Loss],
    optimiser: optax.GradientTransformation,
    tau: Number,
) -> tuple[Learner, Metrics]:
    """One gradient step on ``loss(model)``, then one step of the target towards the model."""
    grads, metrics = jax.grad(loss, has_aux=True)(learner.model)
    updates, opt = optimiser.update(grads, learner.opt, learner.model)
    model = optax.apply_updates(learner.model, updates)
    return Learner(model, optax.incremental_update(model, learner.target, tau), opt), metrics


def adam(lr: optax.ScalarOrSchedule, clip: Number) -> optax.GradientTransformation:
    """Adam on gradients whose global norm is at most ``clip``."""
    return optax.chain(optax.stateless(lambda grads, _: clip_by_norm(grads, clip)), optax.adam(lr))


def learning_rate(lr: Number, warmup: Number, decay: Number) -> optax.ScalarOrSchedule:
    """A constant rate, or one that rises linearly for ``warmup`` steps and falls along a cosine to 0 at ``decay``."""
    if is_zero(warmup) and is_zero(decay):
        return lr

    def rate(step: Any) -> Any:
        rising = jnp.asarray(warmup if is_zero(decay) else jnp.minimum(warmup, decay - 1))
        rise = jnp.where(step < rising, step / jnp.maximum(rising, 1), 1.0)
        if is_zero(decay):
            return lr * rise
        share = jnp.clip((step - rising) / (decay - rising), 0.0, 1.0)
        return lr * rise * 0.5 * (1 + jnp.cos(jnp.pi * share))

    return rate


def is_zero(number: Number) -> bool:
    """Whether a hyper-parameter is 0. If it is not, it may be an input of the program that is being compiled."""
    return isinstance(number, int | float) and number == 0


def clip_by_norm(grads: Any, max_norm: Number) -> Any:
    """The gradients, scaled to a global norm of at most ``max_norm``.

    This multiplies by one factor, which the compiler fuses with Adam. Optax's own clipping divides every array.
    """
    factor = jnp.minimum(1.0, max_norm / jnp.maximum(optax.tree.norm(grads), TINY))
    return jax.tree.map(lambda leaf: leaf * factor, grads)


def for_each_member(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """The optimiser for an ensemble with a leading axis over its members, whose gradients are clipped separately."""
    return optax.GradientTransformation(jax.vmap(optimiser.init), jax.vmap(optimiser.update))
