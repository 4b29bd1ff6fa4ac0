"""Policies with small networks, as ``edp.load_policy`` would load them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.actors import Actors
from edp.acting.limits import Limits
from edp.acting.policy import LoadedPolicy
from edp.algorithms import InitialState
from edp.config.choice import choose
from edp.config.spec import Spec
from edp.data import tasks
from edp.data.units import Units
from edp.networks import sinusoidal
from edp.policies import Diffusion, Flow
from edp.policies.flow import TIME_SCALE

OBS, ACT = 5, 3
UNITS = Units((20.0, -3.0, 0.0, 100.0, 0.5), (5.0, 2.0, 1.0, 30.0, 0.1), (-1.0, 0.0, 18.0), (1.0, 100.0, 75.0))
NO_LIMITS = Limits()
ROWS = 2000  # that the last layer of a diffusion policy is fitted to


def tiny_policy(algo="td3bc", policy="diffusion", units=UNITS, limits=NO_LIMITS, **options) -> LoadedPolicy:
    """Parameters are random, also those that start at 0, such as biases.

    The last layer of a diffusion or flow policy is fitted to data. Chains of an untrained network amplify rounding
    errors: its actions in float32 differ from those in float64 by up to 1e-3.
    """
    sizes = {"hidden": (32, 32), "critic_hidden": (16, 16)}
    task, classes = tasks.get_task("hopper-medium-v2"), choose(algo, policy).groups.values()
    known = {name for cls in classes for name in cls.__dataclass_fields__}
    given = {name: value for name, value in sizes.items() if name in known} | {"act_with": "online"} | options
    spec = Spec(task, *choose(algo, policy, "edp", given).resolve(task).parts, units=units).check()
    init = jax.vmap(InitialState(spec.algorithm, spec.policy, *units.dims))
    states = random_parameters(jax.eval_shape(init, jax.random.split(jax.random.key(0), 1)))
    actors = Actors.from_states(spec, spec.evaluation, states)
    if isinstance(actors.policies, Diffusion | Flow):
        actors = actors._replace(policies=fitted(actors.policies, *units.dims))
    return LoadedPolicy(spec, actors, spec.evaluation, draws=0, limits=limits)


def random_parameters(shapes):
    """Arrays of these shapes: weights of which the outputs are as large as the inputs, and small biases."""
    rng = np.random.default_rng(0)

    def draw(leaf):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return np.zeros(leaf.shape, np.int32)
        wide = len(leaf.shape) > 2  # the first axis is that of seeds
        scale = leaf.shape[-2] ** -0.5 if wide else 0.1
        return jnp.asarray(scale * rng.standard_normal(leaf.shape), leaf.dtype)

    return jax.tree.map(draw, shapes)


def fitted(policies: Any, obs_dim: int, act_dim: int) -> Any:
    """The policy whose last layer predicts best (least squares) the noise in actions of two modes, or the velocity."""
    rng, policy = np.random.default_rng(0), jax.tree.map(lambda leaf: leaf[0], policies)
    obs = rng.standard_normal((ROWS, obs_dim))
    action = 0.6 * np.tanh(obs @ rng.standard_normal((obs_dim, act_dim))) + 0.2 * rng.choice([-1, 1], (ROWS, 1))
    noise = rng.standard_normal(action.shape)
    k, alpha, sigma, target = corrupt(policy, action, noise, rng)
    inputs = [obs, alpha * action + sigma * noise, policy.net.time(sinusoidal(jnp.asarray(k, jnp.float32)))]
    x, body = jnp.concatenate([jnp.asarray(part, jnp.float32) for part in inputs], axis=1), policy.net.body
    for layer in body.layers[:-1]:
        x = body.activate(layer(x))
    features = np.concatenate([np.asarray(x, float), np.ones((ROWS, 1))], axis=1)
    squares = features.T @ features + 1e-3 * np.eye(features.shape[1])
    solved = np.linalg.solve(squares, features.T @ target).astype(np.float32)
    last, leaves = body.layers[-1], (jnp.asarray(solved[None, :-1]), jnp.asarray(solved[None, -1]))
    assert last.weight.shape == leaves[0].shape[1:]
    return jax.tree_util.tree_map_with_path(lambda path, leaf: replaced(path, leaf, len(body.layers), leaves), policies)


def corrupt(policy: Diffusion | Flow, action, noise, rng):
    """Random times, their levels of signal and noise, and what the network should predict."""
    if isinstance(policy, Flow):
        t = rng.random((ROWS, 1))
        return TIME_SCALE * t[:, 0], t, 1 - t, action - noise
    k = rng.integers(policy.schedule.steps, size=ROWS)
    alpha, sigma = (np.sqrt(part)[k, None] for part in (policy.schedule.alpha_bars, 1 - policy.schedule.alpha_bars))
    return k, alpha, sigma, alpha * noise - sigma * action if policy.predicts_v else noise


def replaced(path, leaf, layers, leaves):
    """The last layer of the network's body, or the leaf as it is."""
    name = jax.tree_util.keystr(path)
    for kind, new in zip(("weight", "bias"), leaves, strict=True):
        if name == f".net.body.layers[{layers - 1}].{kind}":
            return new
    return leaf


def observations(count: int, units=UNITS) -> np.ndarray:
    normal = np.random.default_rng(1).standard_normal((count, units.dims[0]))
    return units.observations_from_network(normal.astype(np.float32)).astype(np.float32)
