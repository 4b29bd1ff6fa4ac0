"""Batches of logged data, and the data sets on the device that random batches are drawn from."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


class Tail(NamedTuple):
    """The rest of each transition's recorded episode, up to the episode's last row."""

    reward: Float[Array, " n"]  # the discounted sum of rewards, from the transition's own reward to the last
    obs: Float[Array, "n obs"]  # the state after the last row
    discount: Float[Array, " n"]  # the factor of that state's value; 0 if the state is a true terminal


class Following(NamedTuple):
    """The data's action in the state ``next_obs`` of each transition."""

    action: Float[Array, "n act"]
    known: Float[Array, " n"]  # 0 where the recorded episode ends before; ``action`` is 0 there


class Transitions(NamedTuple):
    """Transitions, one per row: a batch of a data set, or the whole data set."""

    obs: Float[Array, "n obs"]
    action: Float[Array, "n act"]
    reward: Float[Array, " n"]
    next_obs: Float[Array, "n obs"]
    not_done: Float[Array, " n"]  # 0 at a true terminal only, never at a timeout
    tail: Tail | None = None  # for algorithms that learn from returns
    following: Following | None = None  # for algorithms that learn from next actions


class Layout(NamedTuple):
    """The columns of packed rows."""

    structure: Any  # the tree that the columns are the leaves of
    widths: tuple[int, ...]  # 0: a column of shape (n,) instead of (n, width)

    def unpack(self, rows: Float[Array | np.ndarray, "n width"]) -> Any:
        """The tree of columns."""
        columns: list[Array | np.ndarray] = []
        start = 0
        for width in self.widths:
            columns.append(rows[:, start : start + width] if width else rows[:, start])
            start += width or 1
        return jax.tree.unflatten(self.structure, columns)


class Packed(eqx.Module):
    """Transitions with their columns side by side in one array, so that drawing a batch is one gather."""

    rows: Float[Array | np.ndarray, "n width"]  # of NumPy (maybe in a file) until it is moved to the device
    layout: Layout = eqx.field(static=True)

    def draw(self, key: PRNGKeyArray, size: int) -> Transitions:
        """``size`` random rows, drawn with replacement."""
        chosen = jax.random.randint(key, (size,), 0, self.rows.shape[0])
        return self.layout.unpack(jnp.asarray(self.rows).at[chosen].get(mode="promise_in_bounds"))


class Windows(NamedTuple):
    """``n`` stretches of ``time`` consecutive steps of one episode. Steps before the episode's start are masked out."""

    obs: Float[Array, "n time obs"]
    action: Float[Array, "n time act"]
    to_go: Float[Array, "n time"]  # the scaled return from this step on
    step: Int[Array, "n time"]  # its number within the episode
    mask: Bool[Array, "n time"]


class Sequences(NamedTuple):
    """A whole data set in the order of its episodes, for policies that read histories."""

    obs: Float[Array, "n obs"]
    action: Float[Array, "n act"]
    to_go: Float[Array, " n"]
    step: Int[Array, " n"]
    time: Float[Array, " time"]  # as long as a window; the values are not used

    def draw(self, key: PRNGKeyArray, size: int) -> Windows:
        """Windows of about ``size`` steps in total. Each ends at a random row."""
        length = self.time.shape[0]
        ends = jax.random.randint(key, (max(1, size // length),), 0, self.obs.shape[0])
        back = jnp.arange(length - 1, -1, -1)
        mask = self.step[ends][:, None] >= back[None]
        rows = jnp.where(mask, ends[:, None] - back[None], 0)
        return Windows(self.obs[rows], self.action[rows], self.to_go[rows], self.step[rows], mask)
