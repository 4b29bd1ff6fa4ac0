"""The data structures that everything else passes around. Data on the device knows how to draw a batch of itself."""

from typing import Any, NamedTuple

import equinox as eqx
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
    """Transitions in rows: a batch of a data set, or all of it."""

    obs: Float[Array, "n obs"]
    action: Float[Array, "n act"]
    reward: Float[Array, " n"]
    next_obs: Float[Array, "n obs"]
    not_done: Float[Array, " n"]  # 0 at a true terminal only, never at a timeout
    tail: Tail | None = None  # for algorithms that learn from whole returns


class Layout(NamedTuple):
    """What the columns of packed rows are."""

    structure: Any
    widths: tuple[int, ...]  # 0: a number, and not a row of one

    def unpack(self, rows: Float[Array, "n width"]) -> Any:
        columns, start = [], 0
        for width in self.widths:
            columns.append(rows[:, start : start + width] if width else rows[:, start])
            start += width or 1
        return jax.tree.unflatten(self.structure, columns)


class Packed(eqx.Module):
    """Transitions side by side in one array, so that a batch is one gather."""

    rows: Float[Array, "n width"]
    layout: Layout = eqx.field(static=True)

    def draw(self, key, size: int) -> Transitions:
        """``size`` rows, drawn with replacement."""
        chosen = jax.random.randint(key, (size,), 0, self.rows.shape[0])
        return self.layout.unpack(self.rows.at[chosen].get(mode="promise_in_bounds"))


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
