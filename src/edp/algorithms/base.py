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
    recipe_for_narrow_data: ClassVar[Mapping[str, Any]]  # the same, for data with few rows or smooth actions
    recipe_for_sparse_rewards: ClassVar[Mapping[str, Any]]  # the same, for data with sparse rewards

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
    tau: float | Array,
) -> tuple[Learner, Metrics]:
    """One gradient step on ``loss(model)``, then one step of the target towards the model."""
    grads, metrics = jax.grad(loss, has_aux=True)(learner.model)
    updates, opt = optimiser.update(grads, learner.opt, learner.model)
    model = optax.apply_updates(learner.model, updates)
    return Learner(model, optax.incremental_update(model, learner.target, tau), opt), metrics


def adam(lr: optax.ScalarOrSchedule, clip: float) -> optax.GradientTransformation:
    """Adam on gradients whose global norm is at most ``clip``."""
    return optax.chain(optax.stateless(lambda grads, _: clip_by_norm(grads, clip)), optax.adam(lr))


def learning_rate(lr: float, warmup: int, decay: int) -> optax.ScalarOrSchedule:
    """A constant rate, or one that rises linearly for ``warmup`` steps and falls along a cosine to 0 at ``decay``."""
    if not decay:
        return optax.linear_schedule(0.0, lr, warmup) if warmup else lr
    return optax.warmup_cosine_decay_schedule(0.0 if warmup else lr, lr, min(warmup, decay - 1), decay)


def clip_by_norm(grads: Any, max_norm: float) -> Any:
    """The gradients, scaled to a global norm of at most ``max_norm``.

    This multiplies by one factor, which the compiler fuses with Adam. Optax's own clipping divides every array.
    """
    factor = jnp.minimum(1.0, max_norm / jnp.maximum(optax.tree.norm(grads), TINY))
    return jax.tree.map(lambda leaf: leaf * factor, grads)


def for_each_member(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """The optimiser for an ensemble with a leading axis over its members, whose gradients are clipped separately."""
    return optax.GradientTransformation(jax.vmap(optimiser.init), jax.vmap(optimiser.update))
