"""Validation without an environment: losses on held-out episodes, and the policy's actions beside the data's.

The losses are those of training, for every algorithm: an update is computed on held-out data and discarded.
"""

import time
from collections.abc import Container
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from edp.acting.actors import Actors
from edp.acting.selection import act
from edp.acting.usable import action_distance, action_faults, value_faults
from edp.algorithms import Update
from edp.config.spec import Spec
from edp.data.dataset import Dataset
from edp.devices import processes
from edp.devices.seeds import map_seeds
from edp.runs.directory import Run
from edp.runs.rows import finite_or_none

ROWS = 100_000  # at most this many rows of the held-out data are used
BATCHES = 20
STATES = 1000  # states in which the policy's actions are compared with the data's
BINS = 24  # of histograms of actions


class Validation(NamedTuple):
    step: int
    metrics: dict[str, list[float]]  # those of training, one value per seed; NaN for a failed seed
    distance: list[float]  # of the policy's actions from the data's, in standard deviations of the data's
    seconds: float
    faults: tuple[str, ...] = ()  # why a policy cannot be used


@partial(jax.jit, static_argnames="batch_size")
def validation_losses(update: Update, states, data, key, *, batch_size: int) -> dict[str, jax.Array]:
    """The metrics of an update that is not applied: means over some batches, for each seed."""

    def losses_of_seed(state):
        def batch_losses(key):
            batch_key, update_key = jax.random.split(key)
            return update(state, data.draw(batch_key, batch_size), update_key)[1]

        losses = jax.lax.map(batch_losses, jax.random.split(key, BATCHES))
        return jax.tree.map(lambda value: value.mean(), losses)

    return map_seeds(losses_of_seed)(states)


class ActionComparison:
    """A policy's actions in some states of a data set, beside the actions of the data."""

    def __init__(self, spec: Spec, dataset: Dataset):
        self.spec = spec
        rows = np.random.default_rng(0).choice(len(dataset.obs), min(STATES, len(dataset.obs)), replace=False)
        self.obs, self.action = np.asarray(dataset.obs[rows]), np.asarray(dataset.action[rows])

    def choose(self, states: Any) -> np.ndarray:
        """Each seed's actions in the states, in the networks' units."""
        actors = Actors.from_states(self.spec, self.spec.evaluation, states)
        seeds, count = len(jax.tree.leaves(states)[0]), len(self.obs)
        keys = jax.random.split(jax.random.key(0), (seeds, count))
        obs = np.broadcast_to(self.obs, (seeds, *self.obs.shape))
        rewards, steps = np.zeros((seeds, count), np.float32), np.zeros((seeds, count), np.int32)
        _, actions = act(actors.policies, actors.critics, None, obs, rewards, steps, keys, actors.selection)
        return np.asarray(actions)

    def describe(self, chosen: np.ndarray) -> list[dict[str, Any] | None]:
        """Statistics of each seed's actions, and their distance from the data's."""
        return [
            self.summarise(each)
            | {"distance": action_distance(each, self.action), "faults": action_faults(each, self.action)}
            for each in chosen
        ]

    def summarise(self, actions: np.ndarray) -> dict[str, Any]:
        """Statistics of each action in the units of the data, and a histogram over its range."""
        bins = [np.histogram(column, BINS, (-1, 1))[0] / len(column) for column in actions.T]
        shares = [[round(float(share), 4) for share in shares] for shares in bins]
        return column_statistics(self.spec.units.actions_from_network(actions)) | {"histogram": shares}


class Validator:
    """Validates training states on held-out episodes. ``data`` draws batches of them."""

    def __init__(self, spec: Spec, held_out: Dataset, data: Any):
        self.spec, self.data = spec, data
        self.largest_reward = float(np.abs(held_out.reward).max())
        self.comparison = ActionComparison(spec, held_out)

    def __call__(self, states: Any, step: int, run: Run, failed: Container[int]) -> Validation:
        """Validate all seeds, and record the result in the run."""
        start, training = time.perf_counter(), self.spec.training
        own = processes.local_part(states)
        update, key = Update(self.spec.algorithm), jax.random.key(0)
        losses = jax.device_get(validation_losses(update, own, self.data, key, batch_size=training.batch_size))
        heard = processes.exchange(({name: value.tolist() for name, value in losses.items()}, self.actions(own)))
        metrics = {name: [value for part, _ in heard for value in part[name]] for name in losses}
        acted = [each for _, part in heard for each in part]
        for row, seed in enumerate(self.spec.seeds):
            if seed in failed:
                for values in metrics.values():
                    values[row] = float("nan")
        distance = [each["distance"] if each else float("nan") for each in acted]
        data = self.comparison.summarise(self.comparison.action)
        faults = self.faults(metrics, acted, failed)
        run.log_validation(
            {
                "step": step,
                "seeds": list(self.spec.seeds),
                "metrics": {name: finite_or_none(values) for name, values in metrics.items()},
                "actions": {"data": data, "policy": acted},
                "faults": faults,
            }
        )
        seconds = time.perf_counter() - start
        run.log_time({"step": step, "kind": "training", "validation_seconds": round(seconds, 2)})
        return Validation(step, metrics, distance, seconds, tuple(faults))

    def faults(self, metrics: dict[str, list[float]], acted: list[Any], failed: Container[int]) -> list[str]:
        """Why the policies of some seeds cannot be used."""
        texts = []
        for row, seed in enumerate(self.spec.seeds):
            if seed in failed:
                continue
            discount = getattr(self.spec.algorithm, "discount", 0.0)
            own = {name: values[row] for name, values in metrics.items()}
            found = (acted[row] or {}).get("faults", []) + value_faults(own, self.largest_reward, discount)
            texts += [f"seed {seed}: {text}" if len(self.spec.seeds) > 1 else text for text in found]
        return texts

    def actions(self, states: Any) -> list[dict[str, Any] | None]:
        """What each seed's policy does in the held-out states; None for policies that read histories."""
        if self.spec.policy.reads_histories:
            return [None] * len(jax.tree.leaves(states)[0])
        return self.comparison.describe(self.comparison.choose(states))


def limit_rows(held_out: Dataset) -> Dataset:
    """At most ``ROWS`` rows of the held-out data."""
    return held_out._replace(**{name: getattr(held_out, name)[:ROWS] for name in held_out._fields[:6]})


def column_statistics(actions: np.ndarray) -> dict[str, Any]:
    middle = np.quantile(actions, [0.05, 0.5, 0.95], axis=0)
    columns = {"mean": actions.mean(axis=0), "std": actions.std(axis=0), "low": actions.min(axis=0)}
    columns |= {"q05": middle[0], "q50": middle[1], "q95": middle[2], "high": actions.max(axis=0)}
    return {name: [round(float(number), 6) for number in numbers] for name, numbers in columns.items()}
