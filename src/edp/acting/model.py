"""A model of the process, fitted on a log: an ensemble that predicts the change of the state, the reward and the end.

Each member is fitted on episodes drawn with replacement, so the members differ by as much as the log leaves open. A
member is a linear model, which is solved for, and a small network for what the linear one misses.

A log rarely shows all of the process: walls store heat, and only the air is measured. The state of the model is
therefore the observation *and* a slow average of the observations and actions before it (``with_memory``). Without it a
policy that never heats would look harmless, because the log has only short times without heating.
"""

import time
from functools import cached_property, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from scipy.signal import lfilter

from edp.acting.driven import part_of_rows
from edp.algorithms.base import Learner, adam, descend, for_each_member, init_learner
from edp.data.dataset import Dataset
from edp.data.episodes import episode_spans
from edp.networks import MLP

MEMBERS, HIDDEN, LR, CLIP, BATCH = 5, (128, 128), 1e-3, 5.0, 256
MOST_ROWS = 100_000  # rows of the log that the model is fitted on
CHUNK = 100  # gradient steps in one program
RIDGE = 1e-6  # of the linear model
MARGIN = 0.25  # observations stay within the range of the log, and this share of it on both sides


class Model(eqx.Module):
    """An ensemble with a leading axis over its members. Numbers are in the units of the data set.

    A state has the observation first, and then its memory.
    """

    members: MLP
    seen: int = eqx.field(static=True)  # the number of observations
    rate: float = eqx.field(static=True)  # of the memory
    can_end: bool = eqx.field(static=True)  # the log has ends of the process
    driven: Bool[Array, " obs"]  # observations that the actions change; the others are as recorded
    linear: Float[Array, "members inputs outputs"]  # of standardised inputs and changes
    missed: Float[Array, " outputs"]  # the std of what the linear model misses
    mean: Float[Array, " inputs"]
    std: Float[Array, " inputs"]
    change_mean: Float[Array, " outputs"]  # of the changes of the observations, and of the reward
    change_std: Float[Array, " outputs"]
    low: Float[Array, " outputs"]  # bounds of the observations, and of the reward
    high: Float[Array, " outputs"]

    @property
    def size(self) -> int:
        return self.members.layers[0].bias.shape[0]

    def scale(self, inputs: Float[Array, "members n inputs"]) -> Array:
        return (inputs - self.mean[None, None]) / self.std[None, None]

    def predict(
        self, state: Float[Array, "members n state"], action: Float[Array, "members n act"]
    ) -> tuple[Float[Array, "members n obs"], Float[Array, "members n"], Float[Array, "members n"]]:
        """The next observations, the rewards, and the probability that the process ends, by each member."""
        inputs = self.scale(jnp.concatenate([state, action], axis=-1))
        outputs = outputs_of(self.members, inputs)
        change = inputs @ self.linear + outputs[..., :-1] * self.missed[None, None]
        change = change * self.change_std[None, None] + self.change_mean[None, None]
        end = jax.nn.sigmoid(outputs[..., -1]) if self.can_end else jnp.zeros(outputs.shape[:-1])
        return state[..., : self.seen] + change[..., :-1], change[..., -1], end

    def next_state(
        self, state: Float[Array, "members n state"], action: Array, next_obs: Array, recorded: Array
    ) -> Float[Array, "members n state"]:
        """The next observation, within the bounds of the model, and the memory of it and of the action."""
        next_obs = jnp.clip(next_obs, self.low[None, None, :-1], self.high[None, None, :-1])
        next_obs = jnp.where(self.driven[None, None], next_obs, recorded)
        memory, new = state[..., self.seen :], jnp.concatenate([next_obs, action], axis=-1)
        return jnp.concatenate([next_obs, memory + self.rate * (new - memory)], axis=-1)


def outputs_of(members: MLP, inputs: Float[Array, "members n inputs"]) -> Float[Array, "members n outputs"]:
    return jax.vmap(lambda member, x: member(x))(members, inputs)


def with_memory(dataset: Dataset, rate: float) -> Dataset:
    """Append to each observation the slow average of the observations up to it and of the actions before it.

    An average moves by ``rate`` of its distance to each new number. In an episode it begins with the first observation
    and with the mean action of the log.
    """
    usual = dataset.action.mean(axis=0)
    memory = np.empty((len(dataset.obs), dataset.obs.shape[1] + len(usual)), np.float32)
    for rows in episode_spans(dataset):
        first = np.concatenate([dataset.obs[rows.start], usual])
        new = np.concatenate([dataset.next_obs[rows], dataset.action[rows]], axis=1)
        averages = lfilter([rate], [1, rate - 1], new, axis=0, zi=(1 - rate) * first[None])[0]
        memory[rows] = np.concatenate([first[None], averages[:-1]])
    after = memory + rate * (np.concatenate([dataset.next_obs, dataset.action], axis=1) - memory)
    obs, next_obs = (np.concatenate(both, axis=1) for both in ((dataset.obs, memory), (dataset.next_obs, after)))
    return dataset._replace(obs=obs, next_obs=next_obs)


class ModelFit:
    """Fits the ensemble by ``steps`` gradient steps. ``dataset`` has a memory of ``rate`` after the observations.

    The steps are made in chunks, when the model is needed; ``seconds`` are known before.
    """

    def __init__(self, dataset: Dataset, driven: np.ndarray, rate: float, steps: int, seed: int = 0):
        seen, self.steps, self.size = len(driven), steps, MEMBERS
        rows = rows_of_members(dataset.episode, min(MOST_ROWS, len(dataset.obs)), seed)
        inputs = np.concatenate([dataset.obs, dataset.action], axis=1)
        change = np.concatenate([(dataset.next_obs - dataset.obs)[:, :seen], dataset.reward[:, None]], axis=1)
        bounded = np.concatenate([dataset.obs[:, :seen], dataset.reward[:, None]], axis=1)
        low, high = bounded.min(axis=0), bounded.max(axis=0)
        margin = np.append(MARGIN * (high - low)[:-1], 0)
        numbers = [each for part in (inputs, change) for each in (part.mean(axis=0), part.std(axis=0) + 1e-6)]
        numbers += [low - margin, high + margin]
        init_key, self.key = jax.random.split(jax.random.key(seed))
        build = eqx.filter_vmap(lambda key: MLP(inputs.shape[1], HIDDEN, change.shape[1] + 1, key))
        scaled, targets = (inputs - numbers[0]) / numbers[1], (change - numbers[2]) / numbers[3]
        linear = np.stack([solve_linear(scaled[own], targets[own]) for own in rows])
        missed = (targets - scaled @ linear.mean(axis=0)).std(axis=0) + 1e-6
        parts = (jnp.asarray(part, jnp.float32) for part in (linear, missed, *numbers))
        about = seen, rate, not dataset.not_done.all(), jnp.asarray(driven)
        self.start = Model(build(jax.random.split(init_key, MEMBERS)), *about, *parts)
        packed = np.concatenate([scaled, targets, 1 - dataset.not_done[:, None]], axis=1)
        self.data = jnp.asarray(packed, jnp.float32), jnp.asarray(rows)

    @cached_property
    def seconds(self) -> float:
        """How long the fit takes, from a chunk that is timed."""
        state = init_learner(self.start.members, optimiser_of(self.steps))
        work = lambda: jax.block_until_ready(fit_chunk(state, self.start, *self.data, self.key, self.steps))  # noqa: E731
        work()  # compiles it
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * self.steps / CHUNK

    @cached_property
    def model(self) -> Model:
        state = init_learner(self.start.members, optimiser_of(self.steps))
        for key in jax.random.split(self.key, -(-self.steps // CHUNK)):
            state = fit_chunk(state, self.start, *self.data, key, self.steps)
        return eqx.tree_at(lambda model: model.members, self.start, state.model)


def solve_linear(inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The weights of a ridge regression of standardised numbers."""
    square = inputs.T.astype(np.float64) @ inputs / len(inputs) + RIDGE * np.eye(inputs.shape[1])
    return np.linalg.solve(square, inputs.T @ targets / len(inputs))


def rows_of_members(episode: np.ndarray, count: int, seed: int) -> Int[np.ndarray, "members n"]:
    """Draw rows for each member, from parts of the log that are drawn with replacement."""
    rng = np.random.default_rng(seed)
    part = part_of_rows(episode, rng)
    parts = part.max() + 1
    weights = rng.multinomial(parts, np.full(parts, 1 / parts), MEMBERS)[:, part]
    rows = [rng.choice(len(episode), count, p=weight / weight.sum()) for weight in weights]
    return np.array(rows, np.int32)


def optimiser_of(steps: int) -> optax.GradientTransformation:
    return for_each_member(adam(optax.cosine_decay_schedule(LR, steps), CLIP))


@partial(jax.jit, static_argnames="steps")
def fit_chunk(
    state: Learner,
    model: Model,
    packed: Float[Array, "rows columns"],
    rows: Int[Array, "members n"],
    key: PRNGKeyArray,
    steps: int,
) -> Learner:
    """Some gradient steps of all members, out of ``steps`` in all.

    ``packed`` has the scaled inputs and changes and the ends of all rows; ``rows`` are those of each member.
    """
    optimiser, width = optimiser_of(steps), len(model.mean)

    def step(state: Learner, key: PRNGKeyArray) -> tuple[Learner, None]:
        at = jax.random.randint(key, (len(rows), BATCH), 0, rows.shape[1])
        batch = packed[jnp.take_along_axis(rows, at, axis=1)]
        inputs, change = batch[..., :width], batch[..., width:-1]
        missed = (change - inputs @ model.linear) / model.missed[None, None]

        def loss(members: MLP):
            outputs = outputs_of(members, inputs)
            error = jnp.mean((outputs[..., :-1] - missed) ** 2, axis=(1, 2))
            ends = optax.sigmoid_binary_cross_entropy(outputs[..., -1], batch[..., -1])
            return jnp.sum(error + ends.mean(axis=1)), {}

        return descend(state, loss, optimiser, 1.0)[0], None

    return jax.lax.scan(step, state, jax.random.split(key, CHUNK))[0]
