"""Recorded stretches of a log, replayed in a model of the process with a policy in charge.

A replay starts in the first state of a stretch. At each step the policy acts in the state that the model has reached,
and what the model failed to predict in the recorded step (weather, noise, hidden states) is added to its prediction.
With the recorded actions a replay is therefore exactly the record, however bad the model is: only the effect of other
actions is predicted. The policy is compared with what was recorded, stretch by stretch.

A model knows nothing about states and actions that are far from all of the log. Such steps are marked, and not counted
by what the model says.
"""

from collections import Counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from edp.acting.model import Model
from edp.acting.nearest import nearest_distance
from edp.acting.selection import Selection, select_action
from edp.algorithms.base import TINY
from edp.data.dataset import Dataset
from edp.data.episodes import episode_spans

NEIGHBOURS = 8000  # rows of the log among which the nearest is looked for
FARTHEST = 0.999  # quantile of the distances of recorded steps, above which a step is outside of the log


class Stretches(NamedTuple):
    """Stretches of a log, padded to the length of the longest one. After the end of a shorter one, ``known`` is 0."""

    obs: Float[Array, "n time obs"]
    action: Float[Array, "n time act"]
    reward: Float[Array, "n time"]
    next_obs: Float[Array, "n time obs"]
    known: Float[Array, "n time"]
    ended: Float[Array, "n time"]  # 1 where the process ended in the recorded step
    counted: Float[Array, "n time"]  # 1 where the record goes on, and after the end of the process
    episode: Float[Array, " n"]


class Support(NamedTuple):
    """States and actions of the log, and how far from them a step may be."""

    points: Float[Array, "rows point"]
    std: Float[Array, " point"]
    distance: Float[Array, ""]

    def distances(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"]) -> Float[Array, " n"]:
        """How far steps are from the nearest one of the log; more than 1 is outside of it."""
        points = jnp.concatenate([obs, action], axis=-1) / self.std[None]
        return nearest_distance(points, self.points) / self.distance


class Replay(NamedTuple):
    """Rewards of the policy in each step of the replays, by each member of the model."""

    reward: Float[Array, "members n time"]
    distance: Float[Array, "members n time"]  # from the log; a step with more than 1 is outside of it

    @property
    def outside(self) -> np.ndarray:
        return np.asarray(self.distance) > 1


def stretch_bounds(dataset: Dataset, horizon: int) -> list[slice]:
    """Cut all episodes into stretches of at most ``horizon`` rows. Short rests of episodes that go on are left out."""
    bounds = [
        slice(start, min(start + horizon, rows.stop))
        for rows in episode_spans(dataset)
        for start in range(rows.start, rows.stop, horizon)
    ]
    longest = max(rows.stop - rows.start for rows in bounds)
    return [rows for rows in bounds if 2 * (rows.stop - rows.start) > longest or not dataset.not_done[rows.stop - 1]]


def choose_stretches(dataset: Dataset, horizon: int, most: int, seed: int = 0) -> list[slice]:
    """Draw at most ``most`` stretches and half of all, from as many episodes as possible."""
    bounds = stretch_bounds(dataset, horizon)
    drawn = [bounds[i] for i in np.random.default_rng(seed).permutation(len(bounds))]
    taken: Counter[int] = Counter()
    turns = []  # the first stretches of all episodes come before the second of any
    for rows in drawn:
        turns.append(taken[int(dataset.episode[rows.start])])
        taken[int(dataset.episode[rows.start])] += 1
    return [drawn[i] for i in np.argsort(turns, kind="stable")[: max(1, min(most, len(bounds) // 2))]]


def read_stretches(dataset: Dataset, chosen: list[slice]) -> Stretches:
    start, last = np.array([(rows.start, rows.stop - 1) for rows in chosen]).T
    at = start[:, None] + np.arange((last - start).max() + 1)[None]
    known = at <= last[:, None]
    ends = (dataset.not_done[last] == 0)[:, None]
    flags = known, ends & (at == last[:, None]), known | ends
    at = np.minimum(at, last[:, None])
    columns = (part[at] for part in (dataset.obs, dataset.action, dataset.reward, dataset.next_obs))
    return Stretches(*(jnp.asarray(part, jnp.float32) for part in (*columns, *flags, dataset.episode[start])))


def find_support(dataset: Dataset, chosen: list[slice], seed: int = 0) -> Support:
    """The rows outside of the chosen stretches; the recorded steps of these say how far from them a step may be."""
    rng, inside = np.random.default_rng(seed), np.zeros(len(dataset.obs), bool)
    for rows in chosen:
        inside[rows] = True
    points = np.concatenate([dataset.obs, dataset.action], axis=1)
    std = points.std(axis=0) + 1e-6
    parts = np.flatnonzero(~inside if not inside.all() else inside), np.flatnonzero(inside)
    among, recorded = (
        jnp.asarray(points[rng.choice(part, min(NEIGHBOURS, len(part)), replace=False)] / std, jnp.float32)
        for part in parts
    )
    distance = jnp.quantile(nearest_distance(recorded, among), FARTHEST) + 1e-6
    return Support(among, jnp.asarray(std, jnp.float32), distance)


@jax.jit
def replay(
    model: Model,
    support: Support,
    stretches: Stretches,
    policy: Any,
    critic: Any,
    selection: Selection,
    key: PRNGKeyArray,
) -> Replay:
    """Replay all stretches with the policy's actions, in each member of the model."""
    count, time = stretches.reward.shape
    every = lambda part: jnp.broadcast_to(part[None], (model.size, *part.shape))  # noqa: E731

    def step(state, inputs):
        (obs, alive), (key, recorded) = state, inputs
        seen, done, earned, after, known, ended = recorded
        expected, reward_expected, end_expected = model.predict(every(seen), every(done))
        missed = (every(after[:, : model.seen]) - expected) * known[None, :, None]
        reward_missed = (every(earned) - reward_expected) * known[None]
        states = obs.reshape(model.size * count, -1)
        actions = select_action(policy, critic, states[:, : model.seen], key, selection)
        distance = support.distances(states, actions).reshape(model.size, count)
        actions = actions.reshape(model.size, count, -1)
        next_obs, reward, end = model.predict(obs, actions)
        reward = jnp.clip(reward + reward_missed, model.low[-1], model.high[-1]) * alive
        next_state = model.next_state(obs, actions, next_obs + missed, every(after[:, : model.seen]))
        goes_on = survival(end, end_expected, known[None], ended[None])
        return (next_state, alive * goes_on), (reward, jnp.where(alive > 0.5, distance, 0.0))

    by_time = tuple(jnp.swapaxes(part, 0, 1) for part in stretches[:6])
    start = every(stretches.obs[:, 0]), jnp.ones((model.size, count))
    _, found = jax.lax.scan(step, start, (jax.random.split(key, time), by_time))
    return Replay(*(jnp.moveaxis(part, 0, 2) for part in found))


def survival(end: Array, end_expected: Array, known: Array, ended: Array) -> Array:
    """The probability that the process goes on, given whether it did in the record.

    ``end`` and ``end_expected`` are its probabilities to end with the policy's and with the recorded action. One random
    number decides both: what was likelier to end than the record ends with it.
    """
    went_on = jnp.minimum(1.0, (1 - end) / jnp.maximum(1 - end_expected, TINY))
    went_out = jnp.maximum(0.0, 1 - end / jnp.maximum(end_expected, TINY))
    return jnp.where(known > 0, jnp.where(ended > 0, went_out, went_on), 1 - end)
