"""Seeds over devices: arrays with a leading axis over seeds, split evenly over the devices of all processes."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from edp.errors import UserError, counted


def seed_keys(seeds: range) -> jax.Array:
    """One random key per seed, sharded over the devices."""
    return make_keys(np.asarray(seeds))


@jax.jit
def make_keys(seeds: jax.Array) -> jax.Array:
    return keep_sharded(jax.vmap(jax.random.key)(seeds))


def seed_sharding(seeds: int) -> NamedSharding:
    """Split the leading axis over the largest number of devices per process that divides the seeds of a process."""
    each = len(local_rows(seeds))
    devices = [jax.local_devices(process) for process in range(jax.process_count())]
    count = max(n for n in range(1, min(map(len, devices)) + 1) if each % n == 0)
    return NamedSharding(Mesh([device for some in devices for device in some[:count]], "seed"), PartitionSpec("seed"))


def local_rows(seeds: int) -> range:
    """The rows of the seed axis that this process holds."""
    count, number = jax.process_count(), jax.process_index()
    if seeds % count:
        near = " or ".join(str(n) for n in (seeds // count * count, seeds // count * count + count) if n)
        raise UserError(f"{count} processes cannot share {counted(seeds, 'seed')} equally: use `seeds={near}`")
    each = seeds // count
    return range(number * each, (number + 1) * each)


def keep_sharded(tree: Any) -> Any:
    """Constrain arrays with a leading seed axis to stay on the devices of their seeds."""
    return jax.lax.with_sharding_constraint(tree, seed_sharding(jax.tree.leaves(tree)[0].shape[0]))


def replicate(data: Any, like: NamedSharding) -> Any:
    """Copy the data set to every device that trains."""
    return place(data, NamedSharding(like.mesh, PartitionSpec()))


def place(tree: Any, sharding: NamedSharding) -> Any:
    """Put arrays that every process holds onto the devices of all processes."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)
    put = lambda leaf: jax.make_array_from_callback(leaf.shape, sharding, np.asarray(leaf).__getitem__)  # noqa: E731
    return jax.tree.map(put, tree)


def map_seeds(function: Callable) -> Callable:
    """Apply a function to every seed on a device: vmapped, or one after the other on a CPU.

    A CPU runs small matrix products faster one by one than as a batch.
    """
    if jax.default_backend() == "cpu":
        return lambda *args: jax.lax.map(lambda one: function(*one), args)
    return jax.vmap(function)
