"""The data structures that everything else passes around. Data on the device knows how to draw a batch of itself."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

PRNGKey = Key[Array, ""]


class Tail(NamedTuple):
    """What followed each transition in its own recorded episode, up to the episode's last row."""

    reward: Float[Array, " n"]  # the discounted sum of rewards from the transition on
    obs: Float[Array, "n obs"]  # the state after the last row
    discount: Float[Array, " n"]  # of that state's value: 0 if it is a true terminal


class Transitions(NamedTuple):
    """Transitions in rows: a whole data set, or a batch of one."""

    obs: Float[Array, "n obs"]
    action: Float[Array, "n act"]
    reward: Float[Array, " n"]
    next_obs: Float[Array, "n obs"]
    not_done: Float[Array, " n"]  # 0 at a true terminal only, never at a timeout
    tail: Tail | None = None  # for algorithms that learn from whole returns

    def draw(self, key, size: int) -> "Transitions":
        """``size`` rows, drawn with replacement."""
        rows = jax.random.randint(key, (size,), 0, self.obs.shape[0])
        return jax.tree.map(lambda column: column[rows], self)


class Windows(NamedTuple):
    """Stretches of ``time`` steps, each of one episode; those that begin before their episode are masked there."""

    obs: Float[Array, "n time obs"]
    action: Float[Array, "n time act"]
    to_go: Float[Array, "n time"]  # the return from this step on, scaled
    step: Int[Array, "n time"]  # within the episode
    mask: Bool[Array, "n time"]


class Sequences(NamedTuple):
    """A whole data set in the order of its episodes, for models that read histories."""

    obs: Float[Array, "n obs"]
    action: Float[Array, "n act"]
    to_go: Float[Array, " n"]
    step: Int[Array, " n"]
    time: Float[Array, " time"]  # its length is that of a window

    def draw(self, key, size: int) -> Windows:
        """Windows of about ``size`` steps in all, each ending in a row drawn at random."""
        length = self.time.shape[0]
        ends = jax.random.randint(key, (max(1, size // length),), 0, self.obs.shape[0])
        back = jnp.arange(length - 1, -1, -1)
        mask = self.step[ends][:, None] >= back[None]
        rows = jnp.where(mask, ends[:, None] - back[None], 0)
        return Windows(self.obs[rows], self.action[rows], self.to_go[rows], self.step[rows], mask)
