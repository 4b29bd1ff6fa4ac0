"""The interface of policies (``Policy``) and of the options that build them (``PolicyConfig``)."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.diffusion import FlowSampler, Sampler
from edp.errors import UserError, unknown
from edp.networks import ACTIVATIONS


class Control(NamedTuple):
    """How sampling is changed when a policy acts. The defaults change nothing."""

    scale: float = 1.0  # factor of the network's output (EDP's policy scaling): above 1, samples are sharper
    noise: float = 1.0  # factor of all random numbers: with 0, sampling is deterministic


PLAIN = Control()


class Corrupted(NamedTuple):
    """Actions of the data with noise, and the prediction of that noise."""

    action: Float[Array, "n act"]  # alpha · action + sigma · noise
    noise: Float[Array, "n act"]  # its prediction
    sigma: Float[Array, "n 1"]


class Fit(NamedTuple):
    """The result of one forward pass on data: everything that an algorithm needs to train a policy."""

    bc: Float[Array, " n"]  # imitation loss
    action: Float[Array, "n act"]  # a differentiable action of the policy
    log_prob: Float[Array, " n"]  # (surrogate) log-likelihood of the data's action
    precision: Float[Array, "n 1"] | float = 1.0  # weight of the squared error of ``action`` in ``bc``
    snr: Float[Array, "n 1"] | float = 0.0  # signal-to-noise ratio of the corrupted action that ``action`` came from
    variances: float = 1.0  # of the data's actions in (action - data's action)²: 2 if ``action`` is a random sample
    corrupted: Corrupted | None = None  # of policies with ``predicts_noise``


class Policy(eqx.Module):
    """A trainable policy: a pytree of arrays with these methods.

    Policies see the current state. A policy that reads histories keeps the past in a memory (see transformer.py).
    """

    deterministic: ClassVar[bool] = False  # one state always gives the same action

    def sample(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        """One action in [-1, 1] for each state."""
        raise NotImplementedError

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key: PRNGKeyArray) -> Fit:
        """Losses and actions on states and actions of the data."""
        raise NotImplementedError

    def act(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        """The action to take in each state, when no choice is made among several samples."""
        return self.sample(obs, key, control)

    def around(
        self, obs: Float[Array, "n obs"], fit: Fit, key: PRNGKeyArray, count: int
    ) -> Float[Array, "count n act"]:
        """Samples of the distribution whose log-likelihood is ``fit.log_prob``: by default N(fit.action, I)."""
        del obs
        return fit.action[None] + jax.random.normal(key, (count, *fit.action.shape), fit.action.dtype)

    def sample_with_log_prob(
        self, obs: Float[Array, "n obs"], key: PRNGKeyArray
    ) -> tuple[Float[Array, "n act"], Float[Array, " n"]]:
        """A differentiable sample and its log-density, for policies with ``has_density``."""
        raise NotImplementedError

    def memory(self, count: int) -> Any:
        """The memory of ``count`` episodes at their start; None for policies that see only the current state."""
        del count
        return None


class PolicyConfig:
    """Base class of frozen dataclasses of options that build a policy, and declare what kind of policy it is.

    Algorithms check these declarations and adapt to them. They do not know the class or the name of a policy.
    """

    # Whether ``bc`` and ``log_prob`` of ``Fit`` are the same loss: a log-likelihood, or a squared error. A diffusion
    # policy has none: its ``bc`` is the diffusion loss, and its ``log_prob`` is a surrogate.
    has_likelihood: ClassVar[bool]
    has_density: ClassVar[bool] = False  # ``Policy.sample_with_log_prob`` exists
    deterministic: ClassVar[bool] = False  # one state always gives the same action
    can_scale: ClassVar[bool] = True  # ``Control.scale`` makes samples sharper
    reads_histories: ClassVar[bool] = False  # the policy needs the episode so far, not only the current state
    defaults: ClassVar[Mapping[str, Any]] = {}  # values of any option of a run that suit this policy
    recipe: ClassVar[Mapping[str, Any]] = {}  # values of the preset ``quick`` for this policy

    @property
    def no_entropy(self) -> str:
        """The reason why the policy's entropy cannot be maximised; empty if it can."""
        raise NotImplementedError

    @property
    def predicts_noise(self) -> bool:
        """The network predicts noise, and ``Fit`` has its prediction."""
        return False

    @property
    def asks_for(self) -> dict[str, str]:
        """The fields of ``Fit`` that an option changes, with that option."""
        return {}

    def sampler_for(self, name: str = "", calls: int = 0) -> Sampler | FlowSampler:
        """The sampler to act with, by its name and its number of network calls."""
        raise UserError("`act_sampler` and `act_calls` are for diffusion and flow policies only")

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Policy:
        """The policy with random parameters."""
        raise NotImplementedError


def check_activation(name: str) -> None:
    if name not in ACTIVATIONS:
        raise unknown("choice of `activation`", name, ACTIVATIONS)


def unit_gaussian_log_prob(action: Float[Array, "n act"], mean: Float[Array, "n act"]) -> Float[Array, " n"]:
    """log N(action; mean, I), summed over the action's dimensions."""
    return -0.5 * jnp.sum((action - mean) ** 2, axis=-1) - 0.5 * math.log(2 * math.pi) * action.shape[-1]
