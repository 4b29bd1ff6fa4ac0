"""Training as one compiled program: steps are a scan, seeds a vmap, devices a sharding of the seeds.

Devices may belong to several processes (``distributed.py``), each of which has as many of the seeds.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from edp.errors import UserError


def seed_keys(seeds: range) -> jax.Array:
    """One key for each seed, on as many devices as divide them evenly."""
    return jax.jit(jax.vmap(jax.random.key), out_shardings=seed_sharding(len(seeds)))(np.asarray(seeds))


def seed_sharding(seeds: int) -> NamedSharding:
    """The leading axis over seeds, split over the largest number of each process's devices that divides its part."""
    each = len(own_rows(seeds))
    devices = [jax.local_devices(process) for process in range(jax.process_count())]
    count = max(n for n in range(1, min(map(len, devices)) + 1) if each % n == 0)
    return NamedSharding(Mesh([device for some in devices for device in some[:count]], "seed"), PartitionSpec("seed"))


def own_rows(seeds: int) -> range:
    """Which of the seeds are this process's."""
    count, number = jax.process_count(), jax.process_index()
    if seeds % count:
        near = " or ".join(str(n) for n in (seeds // count * count, seeds // count * count + count) if n)
        raise UserError(f"{count} processes cannot share {seeds} seeds equally: use --seeds {near}")
    each = seeds // count
    return range(number * each, (number + 1) * each)


def split(tree: Any) -> Any:
    """Results with a leading axis over seeds stay where their seeds are."""
    return jax.lax.with_sharding_constraint(tree, seed_sharding(jax.tree.leaves(tree)[0].shape[0]))


def on_devices(data: Any, like: NamedSharding) -> Any:
    """The data set, whole, on every device that trains."""
    return place(data, NamedSharding(like.mesh, PartitionSpec()))


def place(tree: Any, sharding: NamedSharding) -> Any:
    """Arrays that every process has, on devices of all of them."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)
    put = lambda leaf: jax.make_array_from_callback(leaf.shape, sharding, np.asarray(leaf).__getitem__)  # noqa: E731
    return jax.tree.map(put, tree)


@partial(jax.jit, static_argnames="init")
def init_states(init: Callable[[Any], Any], keys: jax.Array) -> Any:
    """``init(key)`` for every seed, stacked."""
    return split(jax.vmap(init)(keys))


@partial(jax.jit, static_argnames=("update", "batch_size"), donate_argnames="states")
def epoch(update, states, data, keys, *, batch_size: int):
    """A call of ``update(state, batch, key)`` for each key of every seed; the metrics are means over the steps.

    ``data`` is anything on the device with a method ``draw(key, size)``. Gives new states, metrics and faults: for each
    quantity, the step (from 0) at which it was first not finite, or the number of steps.
    """

    def one_seed(data, state, keys):
        def step(state, key):
            batch_key, update_key = jax.random.split(key)
            return update(state, data.draw(batch_key, batch_size), update_key)

        state, metrics = jax.lax.scan(step, state, keys)
        means = jax.tree.map(lambda value: value.mean(axis=0), metrics)
        return state, means, faults(state, metrics, len(keys))

    def seeds(states, keys, data):
        return each(partial(one_seed, data))(states, keys)

    one, all_ = PartitionSpec("seed"), PartitionSpec()
    mesh = seed_sharding(keys.shape[0]).mesh
    return jax.shard_map(seeds, mesh=mesh, in_specs=(one, one, all_), out_specs=one, check_vma=False)(
        states, keys, data
    )


def each(function: Callable) -> Callable:
    """The function of every seed that is on a device: of all at once, or on a CPU in turn, where batches of small
    matrix products are slower than one after the other."""
    if jax.default_backend() == "cpu":
        return lambda *args: jax.lax.map(lambda one: function(*one), args)
    return jax.vmap(function)


def faults(state: Any, metrics: dict[str, jax.Array], steps: int) -> dict[str, jax.Array]:
    first = lambda value: jnp.where(jnp.isfinite(value).all(), steps, jnp.argmin(jnp.isfinite(value)))  # noqa: E731
    sums: dict[str, jax.Array] = {}  # not finite where any number is not
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        part = jax.tree_util.keystr(path[:2]).strip(".")  # policy.model, critic.opt, …
        sums[part] = sums.get(part, 0.0) + leaf.sum()
    at_end = {part: jnp.where(jnp.isfinite(total), steps, steps - 1) for part, total in sums.items()}
    return {name: first(value) for name, value in metrics.items()} | at_end


@partial(jax.jit, static_argnames=("steps", "count"))
def epoch_keys(keys: jax.Array, epoch: int, steps: int, first: int = 0, count: int | None = None) -> jax.Array:
    """Each seed's keys for an epoch's steps, or ``count`` of them: functions of the seed, the epoch and the step in it
    alone, so that a run that is resumed, or stopped early, draws the same."""
    every = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, epoch), steps))(keys)
    return split(jax.lax.dynamic_slice_in_dim(every, first, steps if count is None else count, axis=1))


@jax.jit
def initial_keys(keys: jax.Array) -> jax.Array:
    """Each seed's key for its first state."""
    return split(jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys))
