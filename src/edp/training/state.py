"""The training state of one seed, and the data in the form that an algorithm learns from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from edp.algorithms import Algorithm
from edp.batches import Packed, Sequences
from edp.data import episodes, stream
from edp.data.log import Dataset
from edp.policies import PolicyConfig


@dataclass(frozen=True)
class Init:
    """A function from a random key to one seed's training state.

    Instances with the same options are equal, so that JAX compiles them once.
    """

    algorithm: Algorithm
    policy: PolicyConfig
    obs_dim: int
    act_dim: int

    def __call__(self, key: PRNGKeyArray) -> Any:
        policy_key, algorithm_key = jax.random.split(key)
        policy = self.policy.build(self.obs_dim, self.act_dim, policy_key)
        return self.algorithm.init(policy, self.obs_dim, self.act_dim, algorithm_key)


def pack_transitions(algorithm: Any, policy: Any, dataset: Dataset, n_step: int, on_disk: bool) -> Packed:
    del policy
    if n_step > 1:
        dataset = episodes.n_step(dataset, n_step, algorithm.discount)
    return stream.pack(episodes.transitions(dataset), on_disk)


def pack_tails(algorithm: Any, policy: Any, dataset: Dataset, n_step: int, on_disk: bool) -> Packed:
    del policy, n_step
    return stream.pack(episodes.transitions(dataset, episodes.tails(dataset, algorithm.discount)), on_disk)


def make_sequences(algorithm: Any, policy: Any, dataset: Dataset, n_step: int, on_disk: bool) -> Sequences:
    del algorithm, n_step, on_disk
    return episodes.sequences(dataset, policy.context, policy.return_scale)


# By the kind of batches that an algorithm declares as ``learns_from``.
BATCH_KINDS: dict[str, Callable[[Any, Any, Dataset, int, bool], Packed | Sequences]] = {
    "transitions": pack_transitions,
    "tails": pack_tails,
    "windows": make_sequences,
}


def learnable(
    algorithm: Algorithm, policy: PolicyConfig, dataset: Dataset, n_step: int = 1, on_disk: bool = False
) -> Packed | Sequences:
    """The data in the form that the algorithm draws batches from, still in the host's memory or on disk."""
    return BATCH_KINDS[algorithm.learns_from](algorithm, policy, dataset, n_step, on_disk)
