"""Policies with small networks and random parameters, as ``edp.load_policy`` would load them."""

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.actors import Actors
from edp.acting.policy import LoadedPolicy
from edp.algorithms import InitialState
from edp.config.choice import choose
from edp.config.spec import Spec
from edp.data import tasks
from edp.data.units import Units

OBS, ACT = 5, 3
UNITS = Units((20.0, -3.0, 0.0, 100.0, 0.5), (5.0, 2.0, 1.0, 30.0, 0.1), (-1.0, 0.0, 18.0), (1.0, 100.0, 75.0))


def tiny_policy(algo="td3bc", policy="diffusion", units=UNITS, **options) -> LoadedPolicy:
    """Parameters are drawn anew, also those that start at 0, such as biases."""
    sizes = {"hidden": (16, 16), "critic_hidden": (16, 16)}
    task, classes = tasks.get_task("hopper-medium-v2"), choose(algo, policy).groups.values()
    known = {name for cls in classes for name in cls.__dataclass_fields__}
    given = {name: value for name, value in sizes.items() if name in known} | {"act_with": "online"} | options
    spec = Spec(task, *choose(algo, policy, "edp", given).resolve(task).parts, units=units).check()
    states = jax.vmap(InitialState(spec.algorithm, spec.policy, *units.dims))(jax.random.split(jax.random.key(0), 1))
    actors = Actors.from_states(spec, spec.evaluation, states)
    policies, critics = with_noise(actors.policies), with_noise(actors.critics)
    return LoadedPolicy(spec, Actors(policies, critics, actors.selection), spec.evaluation, draws=0)


def with_noise(tree):
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(0.1 * rng.standard_normal(leaf.shape), leaf.dtype), tree)


def observations(count: int, units=UNITS) -> np.ndarray:
    normal = np.random.default_rng(1).standard_normal((count, units.dims[0]))
    return units.observations_from_network(normal.astype(np.float32)).astype(np.float32)
