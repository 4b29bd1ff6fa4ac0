"""Fitted Q evaluation (Le et al. 2019): the value of a policy from the data alone.

A Q-function is fitted by temporal differences with the actions that the policy takes in the next states. The policy is
fixed, so these actions are drawn once, before the fit; diffusion policies are as cheap as others. The first half of the
fit regresses on the returns in the data, the second half bootstraps.

Two terms limit extrapolation. Transitions whose action is near the policy's action have a larger weight in the fit.
And each step whose action is far from all actions in the data costs a penalty that grows with the distance.

The result is meant for ranking policies: the discounted return from the data's first states, minus the penalties.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from edp.acting.actors import Actors
from edp.acting.selection import Selection, select_action
from edp.algorithms.base import Learner, adam, descend, for_each_member, init_learner
from edp.data import episodes
from edp.data.dataset import Dataset
from edp.networks import Critic
from edp.options import option

BLOCK = 500  # states that are processed at a time
WIDTH = 0.5  # width of the kernel that weights transitions, in standard deviations of an action
FREE_QUANTILE = 0.9  # actions up to this quantile of the data's nearest-neighbour distances have no penalty
TAU = 0.05  # rate of the target network: values converge in 1 / (tau (1 - discount)) steps
LR, CLIP, HIDDEN = 1e-3, 5.0, (256, 256)


@dataclass(frozen=True)
class FQEOptions:
    fqe_steps: int = option(2000, "steps of the fit: half on returns of the data, half by temporal differences", low=2)
    fqe_rows: int = option(10_000, "transitions of the data that are used, drawn at random", low=100)
    fqe_batch: int = option(256, "transitions in a batch", low=1)
    fqe_discount: float = option(0.997, "discount of the values", low=0.0, high=0.9999)
    fqe_penalty: float = option(1.0, "penalty of actions far from the data, in units of the mean |reward|", low=0.0)


class Problem(NamedTuple):
    """Data prepared once for all policies. Values are scaled to about 1."""

    obs: Float[Array, "rows obs"]  # all states here have mean 0 and std 1
    action: Float[Array, "rows act"]
    reward: Float[Array, " rows"]
    next_obs: Float[Array, "rows obs"]
    not_done: Float[Array, " rows"]
    data_return: Float[Array, " rows"]  # the discounted return in the data
    first_obs: Float[Array, "episodes obs"]
    mean: Float[Array, " obs"]
    std: Float[Array, " obs"]
    action_std: Float[Array, " act"]
    scale: Float[Array, ""]
    free_distance: Float[Array, ""]  # actions up to this distance from the data have no penalty

    @property
    def points(self) -> Float[Array, "rows point"]:
        return self.point(self.obs, self.action)

    def point(self, obs: Array, action: Array) -> Array:
        """State and action as one point; every coordinate has a standard deviation of 1."""
        return jnp.concatenate([obs, action / self.action_std[None]], axis=-1)


def prepare_problem(dataset: Dataset, options: FQEOptions, seed: int = 0) -> Problem:
    count = min(options.fqe_rows, len(dataset.obs))
    rows = np.sort(np.random.default_rng(seed).choice(len(dataset.obs), count, replace=False))
    mean, std = dataset.obs[rows].mean(axis=0), dataset.obs[rows].std(axis=0) + 1e-6
    scale = float(np.abs(dataset.reward).max()) / (1 - options.fqe_discount) or 1.0
    tail = episodes.episode_tails(dataset, options.fqe_discount)
    # An episode that was cut off is continued at its mean reward.
    data_return = np.asarray(tail.reward) / (1 - np.asarray(tail.discount))
    firsts = np.flatnonzero(np.diff(dataset.episode, prepend=-1))
    columns: Any = (
        (dataset.obs[rows] - mean) / std,
        dataset.action[rows],
        dataset.reward[rows] / scale,
        (dataset.next_obs[rows] - mean) / std,
        dataset.not_done[rows],
        data_return[rows] / scale,
        (dataset.obs[firsts] - mean) / std,
        mean,
        std,
        dataset.action[rows].std(axis=0) + 1e-6,
        scale,
        1.0,
    )
    problem = Problem(*(jnp.asarray(column, jnp.float32) for column in columns))
    distances = nearest_distance(
        problem.points[:: max(1, count // 2000)], problem.points, 1
    )  # rank 0: the point itself
    return problem._replace(free_distance=jnp.quantile(distances, FREE_QUANTILE) + 1e-6)


def nearest_distance(points: Float[Array, "n d"], among: Float[Array, "m d"], rank: int = 0) -> Float[Array, " n"]:
    """The distance of each point to its nearest neighbour in ``among`` (``rank`` 1: the second nearest)."""
    squares = jnp.sum(among**2, axis=1)

    def block(points: Array) -> Array:
        squared = jnp.sum(points**2, axis=1)[:, None] + squares[None] - 2 * points @ among.T
        return -jax.lax.top_k(-squared, rank + 1)[0][:, rank]

    return jnp.sqrt(jnp.maximum(in_blocks(block, points), 0))


def in_blocks(function, *columns: Array) -> Array:
    """``function`` of the rows of some arrays, computed in blocks."""
    rows = len(columns[0])
    blocks = -(-rows // BLOCK)
    at = jnp.arange(blocks * BLOCK).reshape(blocks, BLOCK) % rows
    padded = [column[at] for column in columns]
    found = jax.lax.map(lambda parts: function(*parts), tuple(padded))
    return found.reshape(-1, *found.shape[2:])[:rows]


def value_policies(actors: Actors, problem: Problem, options: FQEOptions, seed: int = 0) -> np.ndarray:
    """The value of each seed's policy, with its selection of actions."""
    stacked = actors.policies, actors.critics
    seeds = len(jax.tree.leaves(stacked)[0])
    keys = jax.random.split(jax.random.key(seed), seeds)
    models = [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(seeds)]
    pairs = zip(models, keys, strict=True)
    return np.array([float(value_policy(*pair, problem, options, actors.selection, key)) for pair, key in pairs])


@partial(jax.jit, static_argnames="options")
def value_policy(
    policy: Any, critic: Any, problem: Problem, options: FQEOptions, selection: Selection, key
) -> Float[Array, ""]:
    next_key, obs_key, first_key, fit_key = jax.random.split(key, 4)

    def act(states: Array, key) -> Array:
        """The policy's action in each (scaled) state."""
        keys = jax.random.split(key, len(states))
        choose = jax.vmap(lambda obs, key: select_action(policy, critic, obs[None], key, selection)[0])
        return in_blocks(choose, states * problem.std[None] + problem.mean[None], keys)

    next_action = act(problem.next_obs, next_key)
    distance = nearest_distance(problem.point(problem.next_obs, next_action), problem.points)
    penalty = (
        options.fqe_penalty * jnp.abs(problem.reward).mean() * jnp.maximum(distance / problem.free_distance - 1, 0)
    )
    differs = jnp.mean(((act(problem.obs, obs_key) - problem.action) / problem.action_std[None]) ** 2, axis=1)
    weight = jnp.exp(-differs / (2 * WIDTH**2)) + 1e-3
    q = fit_q(problem, next_action, penalty, weight / weight.mean(), fit_key, options)
    return q(problem.first_obs, act(problem.first_obs, first_key)).min(axis=0).mean() * problem.scale


def fit_q(problem: Problem, next_action: Array, penalty: Array, weight: Array, key, options: FQEOptions) -> Critic:
    """The Q-function of the policy that takes ``next_action`` in the next states."""
    optimiser = for_each_member(adam(LR, CLIP))
    low, high = problem.data_return.min(), problem.data_return.max()
    init_key, steps_key = jax.random.split(key)

    def step(state: Learner, inputs) -> tuple[Learner, None]:
        number, key = inputs
        at = jax.random.randint(key, (options.fqe_batch,), 0, len(problem.reward))
        ahead = state.target(problem.next_obs[at], next_action[at]).min(axis=0) - penalty[at]
        target = problem.reward[at] + options.fqe_discount * problem.not_done[at] * ahead
        target = jnp.clip(target, low - (high - low), high)  # no value above the best return in the data
        target = jnp.where(number < options.fqe_steps // 2, problem.data_return[at], target)

        def loss(q: Critic):
            error = q(problem.obs[at], problem.action[at]) - target[None]
            return jnp.sum(jnp.mean(weight[at][None] * error**2, axis=1)), {}

        return descend(state, loss, optimiser, TAU)[0], None

    start = init_learner(Critic(problem.obs.shape[1], problem.action.shape[1], HIDDEN, init_key), optimiser)
    steps = jnp.arange(options.fqe_steps), jax.random.split(steps_key, options.fqe_steps)
    return jax.lax.scan(step, start, steps)[0].target
