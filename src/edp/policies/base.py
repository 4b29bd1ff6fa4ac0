"""What a policy is to the rest of the house."""

import math
from typing import Any, ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Control(NamedTuple):
    """What may be changed about sampling when a policy acts; 1 and 1 change nothing."""

    scale: float = 1.0  # of the network's output (EDP's policy scaling): a sharper policy above 1
    noise: float = 1.0  # of all random numbers: 0 samples without chance


PLAIN = Control()


class Fit(NamedTuple):
    """What one forward pass on data gives: all that an algorithm may ask of a policy while training it."""

    bc: Float[Array, " n"]  # imitation loss
    action: Float[Array, "n act"]  # a differentiable action
    log_prob: Float[Array, " n"]  # (surrogate) log-likelihood of the data's action


class Policy(eqx.Module):
    """A policy is given states; what it knows of the past, if anything, it keeps in a memory (see transformer.py)."""

    deterministic: ClassVar[bool] = False  # the same action for the same state

    def sample(self, obs: Float[Array, "n obs"], key, control: Control = PLAIN) -> Float[Array, "n act"]:
        raise NotImplementedError

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key) -> Fit:
        raise NotImplementedError

    def act(self, obs: Float[Array, "n obs"], key, control: Control = PLAIN) -> Float[Array, "n act"]:
        """The action to take when only one is asked for."""
        return self.sample(obs, key, control)

    def around(self, obs: Float[Array, "n obs"], fit: Fit, key, count: int) -> Float[Array, "count n act"]:
        """Actions of the distribution that ``fit.log_prob`` belongs to: here N(fit.action, I)."""
        del obs
        return fit.action[None] + jax.random.normal(key, (count, *fit.action.shape), fit.action.dtype)

    def sample_with_log_prob(self, obs: Float[Array, "n obs"], key) -> tuple[Array, Array]:
        """A differentiable sample and its log-density, where there is one."""
        raise NotImplementedError

    def memory(self, count: int) -> Any:
        """What to remember of ``count`` episodes at their start; None for policies that see the present alone."""
        del count


class PolicyConfig(Protocol):
    """A frozen dataclass of options that builds its policy."""

    deterministic: ClassVar[bool]
    reads_histories: ClassVar[bool]

    @property
    def no_entropy(self) -> str:
        """Why the policy has no entropy that could be maximised; empty if it has one."""
        ...

    @property
    def asks_for(self) -> dict[str, str]:
        """Parts of ``Fit`` that were asked for in a special way, and the option that did."""
        ...

    def build(self, obs_dim: int, act_dim: int, key) -> Policy: ...


def unit_gaussian_log_prob(action: Float[Array, "n act"], mean: Float[Array, "n act"]) -> Float[Array, " n"]:
    """log N(action; mean, I), summed over the action's dimensions."""
    return -0.5 * jnp.sum((action - mean) ** 2, axis=-1) - 0.5 * math.log(2 * math.pi) * action.shape[-1]
