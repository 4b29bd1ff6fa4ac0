"""Distances of points to their nearest neighbours, on any device and in blocks."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

BLOCK = 500  # points that are processed at a time


def nearest_distance(points: Float[Array, "n d"], among: Float[Array, "m d"]) -> Float[Array, " n"]:
    """The distance of each point to its nearest neighbour in ``among``."""
    squares = jnp.sum(among**2, axis=1)

    def distance(points: Array) -> Array:
        squared = jnp.sum(points**2, axis=1)[:, None] + squares[None] - 2 * points @ among.T
        return jnp.sqrt(jnp.maximum(squared.min(axis=1), 0))

    blocks = -(-len(points) // BLOCK)
    at = jnp.arange(blocks * BLOCK).reshape(blocks, BLOCK) % len(points)
    return jax.lax.map(distance, points[at]).reshape(-1)[: len(points)]
