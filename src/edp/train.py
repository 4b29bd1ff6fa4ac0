"""Training as one compiled program: steps are a scan, seeds a vmap, devices a sharding of the seeds."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def seed_keys(seeds: range) -> jax.Array:
    """One key for each seed, on as many devices as divide them evenly."""
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds))
    return jax.device_put(keys, seed_sharding(len(seeds)))


def seed_sharding(seeds: int) -> NamedSharding:
    """The leading axis over seeds, split over the largest number of devices that divides it."""
    devices = jax.devices()
    count = max(n for n in range(1, len(devices) + 1) if seeds % n == 0)
    return NamedSharding(Mesh(devices[:count], "seed"), PartitionSpec("seed"))


def on_devices(data: Any, like: NamedSharding) -> Any:
    """The data set, whole, on every device that trains."""
    return jax.device_put(data, NamedSharding(like.mesh, PartitionSpec()))


@partial(jax.jit, static_argnames="init")
def init_states(init: Callable[[Any], Any], keys: jax.Array) -> Any:
    """``init(key)`` for every seed, stacked."""
    return jax.vmap(init)(keys)


@partial(jax.jit, static_argnames=("update", "steps", "batch_size"), donate_argnames="states")
def epoch(update, states, data, keys, *, steps: int, batch_size: int):
    """``steps`` calls of ``update(state, batch, key)`` for every seed; the metrics are means over the steps.

    ``data`` is anything on the device with a method ``draw(key, size)``.
    """

    def one_seed(state, key):
        def step(state, key):
            batch_key, update_key = jax.random.split(key)
            return update(state, data.draw(batch_key, batch_size), update_key)

        state, metrics = jax.lax.scan(step, state, jax.random.split(key, steps))
        return state, jax.tree.map(lambda value: value.mean(axis=0), metrics)

    return jax.vmap(one_seed)(states, keys)


def epoch_keys(keys: jax.Array, epoch: int) -> jax.Array:
    """Each seed's key for one epoch: a function of the seed and the epoch alone, so a resumed run draws the same."""
    return jax.vmap(lambda key: jax.random.fold_in(key, epoch))(keys)
