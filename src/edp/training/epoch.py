"""An epoch as one compiled program: steps are a scan, seeds a map, devices a sharding of the seeds."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from edp.algorithms import InitialState, Update
from edp.devices.seeds import keep_sharded, map_seeds, seed_sharding


@jax.jit
def init_states(init: InitialState, keys: jax.Array) -> Any:
    """``init(key)`` for every seed, stacked."""
    return keep_sharded(jax.vmap(init)(keys))


@partial(jax.jit, static_argnames="batch_size", donate_argnames="states")
def epoch(update: Update, states, data, keys, *, batch_size: int):
    """Call ``update(state, batch, key)`` once per key of every seed.

    ``data`` is anything on the device with a method ``draw(key, size)``. Returns the new states, the metrics as means
    over the steps, and the faults (see ``first_faults``).
    """

    def train_seed(update, data, state, keys):
        def step(state, key):
            batch_key, update_key = jax.random.split(key)
            return update(state, data.draw(batch_key, batch_size), update_key)

        state, metrics = jax.lax.scan(step, state, keys)
        means = jax.tree.map(lambda value: value.mean(axis=0), metrics)
        return state, means, first_faults(state, metrics, len(keys))

    def train_seeds(states, keys, update, data):
        return map_seeds(partial(train_seed, update, data))(states, keys)

    one, all_ = PartitionSpec("seed"), PartitionSpec()
    mesh = seed_sharding(keys.shape[0]).mesh
    return jax.shard_map(train_seeds, mesh=mesh, in_specs=(one, one, all_, all_), out_specs=one, check_vma=False)(
        states, keys, update, data
    )


PROGRAMS: dict[Any, Any] = {}  # compiled epochs of this process, the last ones used
MOST_PROGRAMS = 16


def compile_epoch(*arguments: Any, batch_size: int) -> Any:
    """``epoch`` compiled for such arguments. The runs of a process share programs."""
    leaves, structure = jax.tree.flatten(arguments)
    shapes = tuple((jax.typeof(leaf), getattr(leaf, "sharding", None)) for leaf in leaves)
    key = structure, shapes, batch_size
    PROGRAMS[key] = PROGRAMS.pop(key, None) or epoch.lower(*arguments, batch_size=batch_size).compile()
    while len(PROGRAMS) > MOST_PROGRAMS:
        del PROGRAMS[next(iter(PROGRAMS))]
    return PROGRAMS[key]


def first_faults(state: Any, metrics: dict[str, jax.Array], steps: int) -> dict[str, jax.Array]:
    """For each metric and part of the state, the first step (from 0) with NaN or Inf; ``steps`` if there is none.

    Parts of the state are only looked at after the last step.
    """
    first = lambda value: jnp.where(jnp.isfinite(value).all(), steps, jnp.argmin(jnp.isfinite(value)))  # noqa: E731
    sums: dict[str, jax.Array] = {}  # a sum is finite only if all of its terms are
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        part = jax.tree_util.keystr(path[:2]).strip(".")  # policy.model, critic.opt, …
        sums[part] = sums.get(part, 0.0) + leaf.sum()
    at_end = {part: jnp.where(jnp.isfinite(total), steps, steps - 1) for part, total in sums.items()}
    return {name: first(value) for name, value in metrics.items()} | at_end


@partial(jax.jit, static_argnames=("steps", "count"))
def epoch_keys(keys: jax.Array, epoch: int, steps: int, first: int = 0, count: int | None = None) -> jax.Array:
    """Each seed's random keys for the steps of an epoch, or for ``count`` of them from ``first`` on.

    A key depends on the seed, the epoch and the step alone, so a resumed run draws the same numbers.
    """
    every = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, epoch), steps))(keys)
    return keep_sharded(jax.lax.dynamic_slice_in_dim(every, first, steps if count is None else count, axis=1))


@jax.jit
def initial_keys(keys: jax.Array) -> jax.Array:
    """Each seed's random key for its initial state."""
    return keep_sharded(jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys))
