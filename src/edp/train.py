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


def split(tree: Any) -> Any:
    """Results with a leading axis over seeds stay where their seeds are."""
    return jax.lax.with_sharding_constraint(tree, seed_sharding(jax.tree.leaves(tree)[0].shape[0]))


def on_devices(data: Any, like: NamedSharding) -> Any:
    """The data set, whole, on every device that trains."""
    return jax.device_put(data, NamedSharding(like.mesh, PartitionSpec()))


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

    def one_seed(state, keys):
        def step(state, key):
            batch_key, update_key = jax.random.split(key)
            return update(state, data.draw(batch_key, batch_size), update_key)

        state, metrics = jax.lax.scan(step, state, keys)
        means = jax.tree.map(lambda value: value.mean(axis=0), metrics)
        return state, means, faults(state, metrics, len(keys))

    return split(jax.vmap(one_seed)(states, keys))


def faults(state: Any, metrics: dict[str, jax.Array], steps: int) -> dict[str, jax.Array]:
    first = lambda value: jnp.where(jnp.isfinite(value).all(), steps, jnp.argmin(jnp.isfinite(value)))  # noqa: E731
    found = {name: first(value) for name, value in metrics.items()}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        part = jax.tree_util.keystr(path[:2]).strip(".")  # policy.model, critic.opt, …
        finite = jnp.where(jnp.isfinite(leaf).all(), steps, steps - 1)  # seen at the end only
        found[part] = jnp.minimum(found.get(part, steps), finite)
    return found


def epoch_keys(keys: jax.Array, epoch: int, steps: int) -> jax.Array:
    """Each seed's keys for the steps of one epoch: functions of the seed, the epoch and the step in it alone, so that a
    run that is resumed, or stopped early, draws the same."""
    return jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, epoch), steps))(keys)


def initial_keys(keys: jax.Array) -> jax.Array:
    """Each seed's key for its first state."""
    return jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys)
