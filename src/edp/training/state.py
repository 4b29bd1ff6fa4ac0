"""The data on which an algorithm learns, in the form that it draws batches from."""

from typing import Any

from edp.algorithms import Algorithm
from edp.batches import Packed, Sequences
from edp.data import episodes, stream
from edp.data.dataset import Dataset
from edp.policies import PolicyConfig


def learnable(
    algorithm: Algorithm, policy: PolicyConfig, dataset: Dataset, n_step: int = 1, on_disk: bool = False
) -> Packed | Sequences:
    """The data set as ``algorithm.learns_from`` says, on the host."""
    hyper: Any = algorithm
    if algorithm.learns_from == "windows":
        windows: Any = policy
        return episodes.sequences(dataset, windows.context, windows.return_scale)
    tails = episodes.tails(dataset, hyper.discount) if algorithm.learns_from == "tails" else None
    if n_step > 1:
        dataset = episodes.n_step(dataset, n_step, hyper.discount)
    return stream.pack(episodes.transitions(dataset, tails), on_disk)
