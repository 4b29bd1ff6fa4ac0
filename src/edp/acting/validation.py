"""How well training goes without an environment: losses on episodes that were held out, and what the policy does there.

The losses are those of training itself, for every algorithm: an update is made on held-out data and thrown away.
"""

import time
from collections.abc import Container
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from edp.acting import rollout
from edp.acting.evaluator import actors, without_nan
from edp.config.spec import Spec, check_acting
from edp.data.log import Dataset
from edp.runs.directory import Run
from edp.training import epoch, processes
from edp.training.state import learnable

ROWS = 100_000  # of the held-out data, at most
BATCHES = 20
STATES = 1000  # in which the policy is asked for an action
BINS = 24  # of histograms of actions


class Validation(NamedTuple):
    step: int
    metrics: dict[str, list[float]]  # as those of training, one value a seed; NaN of a seed that has failed
    distance: list[float]  # of the policy's actions from the data's, in standard deviations of those (0: the same)
    seconds: float


@partial(jax.jit, static_argnames=("update", "batch_size"))
def losses(update, states, data, key, *, batch_size: int) -> dict[str, jax.Array]:
    """The metrics of an update, without updating: means over some batches, for each seed."""

    def one_seed(state):
        def batch(key):
            batch_key, update_key = jax.random.split(key)
            return update(state, data.draw(batch_key, batch_size), update_key)[1]

        found = jax.lax.map(batch, jax.random.split(key, BATCHES))
        return jax.tree.map(lambda value: value.mean(), found)

    return epoch.each(one_seed)(states)


class Validator:
    def __init__(self, spec: Spec, held: Dataset):
        self.spec, self.sampler = spec, check_acting(spec, spec.evaluation)
        held = held._replace(**{name: getattr(held, name)[:ROWS] for name in held._fields[:6]})
        self.data = jax.tree.map(jax.numpy.asarray, learnable(spec.algorithm, spec.policy, held, spec.data.n_step))
        rows = np.random.default_rng(0).choice(len(held.obs), min(STATES, len(held.obs)), replace=False)
        self.obs, self.action = np.asarray(held.obs[rows]), np.asarray(held.action[rows])

    def __call__(self, states: Any, step: int, folder: Run, failed: Container[int]) -> Validation:
        """Validate all seeds, and write it down."""
        start, training = time.perf_counter(), self.spec.training
        own = processes.own(states)
        update, key = self.spec.algorithm.update, jax.random.key(0)
        found = jax.device_get(losses(update, own, self.data, key, batch_size=training.batch_size))
        heard = processes.exchange(({name: value.tolist() for name, value in found.items()}, self.actions(own)))
        metrics = {name: [value for part, _ in heard for value in part[name]] for name in found}
        acted = [each for _, part in heard for each in part]
        for row in range(training.seeds):
            if training.seed + row in failed:
                for values in metrics.values():
                    values[row] = float("nan")
        distance = [each["distance"] if each else float("nan") for each in acted]
        data = self.summary(self.action)
        folder.log_validation(
            {
                "step": step,
                "seeds": list(range(training.seed, training.seed + training.seeds)),
                "metrics": {name: without_nan(values) for name, values in metrics.items()},
                "actions": {"data": data, "policy": acted},
            }
        )
        seconds = time.perf_counter() - start
        folder.log_time({"step": step, "kind": "training", "validation_seconds": round(seconds, 2)})
        return Validation(step, metrics, distance, seconds)

    def actions(self, states: Any) -> list[dict[str, Any] | None]:
        """What each seed's policy does in the held-out states, in the units of the data."""
        if self.spec.policy.reads_histories:
            return [None] * len(jax.tree.leaves(states)[0])
        return self.described(self.choose(states))

    def choose(self, states: Any) -> np.ndarray:
        """Each seed's actions in the states, as networks know them."""
        options, seeds, count = self.spec.evaluation, len(jax.tree.leaves(states)[0]), len(self.obs)
        policies, critics = actors(states, options.act_with, self.sampler)
        keys = jax.random.split(jax.random.key(0), (seeds, count))
        obs = np.broadcast_to(self.obs, (seeds, *self.obs.shape))
        nothing = np.zeros((seeds, count), np.float32), np.zeros((seeds, count), np.int32)
        return np.asarray(rollout.act(policies, critics, None, obs, *nothing, keys, options.way, options.eas)[1])

    def described(self, chosen: np.ndarray) -> list[dict[str, Any] | None]:
        spread = self.action.std(axis=0) + 1e-6
        distance = np.sqrt((((chosen - self.action[None]) / spread) ** 2).mean(axis=(1, 2)))
        return [self.summary(each) | {"distance": float(far)} for each, far in zip(chosen, distance, strict=True)]

    def summary(self, actions: np.ndarray) -> dict[str, Any]:
        """Of each action in the units of the data, and how often it is where in its range."""
        bins = [np.histogram(column, BINS, (-1, 1))[0] / len(column) for column in actions.T]
        shares = [[round(float(share), 4) for share in shares] for shares in bins]
        return summary(self.spec.scale.act(actions)) | {"histogram": shares}


def summary(actions: np.ndarray) -> dict[str, Any]:
    """Of each column."""
    middle = np.quantile(actions, [0.05, 0.5, 0.95], axis=0)
    found = {"mean": actions.mean(axis=0), "std": actions.std(axis=0), "low": actions.min(axis=0)}
    found |= {"q05": middle[0], "q50": middle[1], "q95": middle[2], "high": actions.max(axis=0)}
    return {name: [round(float(number), 6) for number in numbers] for name, numbers in found.items()}
