"""The data on which an algorithm learns, in the form that it draws batches from."""

from collections.abc import Callable
from typing import Any

from edp.algorithms import Algorithm
from edp.batches import Packed, Sequences
from edp.data import episodes, stream
from edp.data.dataset import Dataset
from edp.policies import PolicyConfig


def pack_transitions(algorithm: Any, policy: Any, dataset: Dataset, n_step: int, on_disk: bool) -> Packed:
    del policy
    if n_step > 1:
        dataset = episodes.with_n_step_rewards(dataset, n_step, algorithm.discount)
    return stream.pack(episodes.to_transitions(dataset), on_disk)


def pack_tails(algorithm: Any, policy: Any, dataset: Dataset, n_step: int, on_disk: bool) -> Packed:
    del policy, n_step
    return stream.pack(episodes.to_transitions(dataset, episodes.episode_tails(dataset, algorithm.discount)), on_disk)


def pack_next_actions(algorithm: Any, policy: Any, dataset: Dataset, n_step: int, on_disk: bool) -> Packed:
    del policy
    following = episodes.following_actions(dataset, n_step)
    dataset = episodes.with_n_step_rewards(dataset, n_step, algorithm.discount)
    return stream.pack(episodes.to_transitions(dataset, following=following), on_disk)


def make_sequences(algorithm: Any, policy: Any, dataset: Dataset, n_step: int, on_disk: bool) -> Sequences:
    del algorithm, n_step, on_disk
    return episodes.to_sequences(dataset, policy.context, policy.return_scale)


# By the kind of batches that an algorithm declares as ``learns_from``.
BATCH_KINDS: dict[str, Callable[[Any, Any, Dataset, int, bool], Packed | Sequences]] = {
    "transitions": pack_transitions,
    "tails": pack_tails,
    "next actions": pack_next_actions,
    "windows": make_sequences,
}


def make_batch_source(
    algorithm: Algorithm, policy: PolicyConfig, dataset: Dataset, n_step: int = 1, on_disk: bool = False
) -> Packed | Sequences:
    """The data in the form that the algorithm draws batches from, still in the host's memory or on disk."""
    return BATCH_KINDS[algorithm.learns_from](algorithm, policy, dataset, n_step, on_disk)
