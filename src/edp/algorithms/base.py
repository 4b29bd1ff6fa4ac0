"""What an algorithm is to the rest of the house, and the one way in which anything here learns."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from edp.policies.base import Policy, PolicyConfig

TINY = 1e-30  # what a norm is not divided by
Metrics = dict[str, Float[Array, ""]]


class Algorithm(Protocol):
    """A frozen dataclass of hyper-parameters with these methods.

    A state has the learners ``policy`` and ``critic``; the critic is None if no action is valued.
    """

    learns_from: ClassVar[str]  # what a batch is: "transitions", those with their "tails", or "windows" of episodes
    uses: ClassVar[tuple[str, ...]]  # of a policy's Fit, beside the imitation loss
    values_actions: ClassVar[bool]  # there is a critic

    def check(self, policy: PolicyConfig) -> None:
        """Refuse a policy that makes no sense here, with a sentence that says why and what to use."""
        ...

    def init(self, policy: Policy, obs_dim: int, act_dim: int, key) -> Any: ...

    def update(self, state: Any, batch: Any, key) -> tuple[Any, Metrics]: ...


class Learner(NamedTuple):
    """A model, its slowly following target, and the optimiser's memory."""

    model: Any
    target: Any
    opt: optax.OptState


def learner(model: Any, optimiser: optax.GradientTransformation) -> Learner:
    return Learner(model, jax.tree.map(lambda leaf: leaf.copy(), model), optimiser.init(model))


def descend(
    learner: Learner,
    loss: Callable[[Any], tuple[Array, Metrics]],
    optimiser: optax.GradientTransformation,
    tau: float | Array,
) -> tuple[Learner, Metrics]:
    """One gradient step on ``loss(model)``, then one step of the target towards the model."""
    grads, metrics = jax.grad(loss, has_aux=True)(learner.model)
    updates, opt = optimiser.update(grads, learner.opt, learner.model)
    model = optax.apply_updates(learner.model, updates)
    return Learner(model, optax.incremental_update(model, learner.target, tau), opt), metrics


def adam(lr: float, clip: float) -> optax.GradientTransformation:
    """Adam on gradients whose global norm is at most ``clip``."""
    return optax.chain(optax.stateless(lambda grads, _: shortened(grads, clip)), optax.adam(lr))


def shortened(grads: Any, longest: float) -> Any:
    """The gradients times one number, a product that vanishes in what comes next; Optax's own divides every array."""
    factor = jnp.minimum(1.0, longest / jnp.maximum(optax.tree.norm(grads), TINY))
    return jax.tree.map(lambda leaf: leaf * factor, grads)


def for_each_member(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """The optimiser for an ensemble with a leading axis over its members: each has its own norm to clip."""
    return optax.GradientTransformation(jax.vmap(optimiser.init), jax.vmap(optimiser.update))
