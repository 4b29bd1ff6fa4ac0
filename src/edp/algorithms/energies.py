"""Energies of energy-based action selection (EDP, section 4.4): how values of several actions become preferences."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

Values = Float[Array, "members candidates n"]
Energies = Float[Array, "candidates n"]
DISAGREEMENT = 1.0  # how much the std over the critics counts against an action


def raw_energy(q: Values) -> Energies:
    """The smallest Q, in the units of returns (EDP algorithm 2)."""
    return q.min(axis=0)


def relative_energy(q: Values) -> Energies:
    """The advantage over the other candidates, minus the critics' disagreement about it, in units of its own spread.

    The spread is the root of the variance over the candidates plus the critics' mean squared disagreement: where the
    critics do not agree, all energies are close to 0, and the choice is close to random.
    """
    advantage = q - q.mean(axis=1, keepdims=True)
    mean, disagreement = advantage.mean(axis=0), advantage.std(axis=0)
    low = mean - DISAGREEMENT * disagreement
    spread = jnp.sqrt(low.var(axis=0) + jnp.mean(disagreement**2, axis=0))
    return (low - low.mean(axis=0)[None]) / (spread + 1e-12)[None]


ENERGIES: dict[str, Callable[[Values], Energies]] = {"relative": relative_energy, "raw": raw_energy}
