"""What is done to whole episodes before training: the best of them, the scale of rewards, what followed each row."""

from typing import Any

import numpy as np

from edp.data.d4rl import Dataset
from edp.errors import unknown
from edp.types import Sequences, Tail, Transitions


def spans(dataset: Dataset) -> list[slice]:
    """The rows of each episode."""
    starts = np.flatnonzero(np.diff(dataset.episode, prepend=-1))
    return [slice(*ends) for ends in zip(starts, [*starts[1:], len(dataset.episode)], strict=True)]


def prepare(dataset: Dataset, rewards: str, share: float) -> Dataset:
    """The best episodes by their own rewards, with rewards transformed as those of the whole data set."""
    return take(with_rewards(dataset, rewards), best(dataset, share))


def best(dataset: Dataset, share: float) -> np.ndarray:
    """The rows of the episodes with the highest returns, ``share`` of their number (at least one)."""
    episodes = spans(dataset)
    returns = np.array([dataset.reward[rows].sum(dtype=np.float64) for rows in episodes])
    count = max(1, int(np.ceil(share * len(episodes))))
    kept = sorted(np.argsort(-returns, kind="stable")[:count])
    return np.concatenate([np.r_[episodes[i]] for i in kept])


def take(dataset: Dataset, rows: np.ndarray) -> Dataset:
    if len(rows) == len(dataset.obs):
        return dataset
    return dataset._replace(**{name: getattr(dataset, name)[rows] for name in (*Transitions._fields[:5], "episode")})


def scaled_by_returns(dataset: Dataset) -> np.ndarray:
    """So that the best and the worst episode are 1,000 apart (IQL's choice for locomotion)."""
    returns = [dataset.reward[rows].sum(dtype=np.float64) for rows in spans(dataset)]
    spread = max(returns) - min(returns)
    return dataset.reward * (1000 / spread) if spread else dataset.reward


def scaled_to_unit(dataset: Dataset) -> np.ndarray:
    """From the smallest and the largest reward to -1 and 1."""
    low, high = dataset.reward.min(), dataset.reward.max()
    return 2 * (dataset.reward - low) / (high - low) - 1 if high > low else np.zeros_like(dataset.reward)


REWARDS = {
    "raw": lambda dataset: dataset.reward,
    "return-range": scaled_by_returns,
    "min-max": scaled_to_unit,
    "minus-one": lambda dataset: dataset.reward - 1,
    "centred": lambda dataset: 4 * (dataset.reward - 0.5),
}


def with_rewards(dataset: Dataset, name: str) -> Dataset:
    """The data set with its rewards transformed in one of the paper's ways."""
    if name not in REWARDS:
        raise unknown("choice of --rewards", name, REWARDS)
    return dataset._replace(reward=REWARDS[name](dataset).astype(np.float32))


def transitions(dataset: Dataset, tail: Tail | None = None) -> Transitions:
    return Transitions(*(getattr(dataset, name) for name in Transitions._fields[:5]), tail=tail)  # pyright: ignore


def tails(dataset: Dataset, discount: float) -> Tail:
    """What followed each row, up to the end of its episode."""
    reward, ahead, last = np.empty_like(dataset.reward), np.empty_like(dataset.reward), np.empty(len(dataset.obs), int)
    for rows in spans(dataset):
        reward[rows] = discounted(dataset.reward[rows], discount)
        last[rows] = rows.stop - 1
        ahead[rows] = discount ** np.arange(rows.stop - rows.start, 0, -1) * dataset.not_done[rows.stop - 1]
    return Tail(reward, dataset.next_obs[last], ahead)  # pyright: ignore


def discounted(rewards: np.ndarray, discount: float) -> np.ndarray:
    """G_t = r_t + discount · G_{t+1}, from the end."""
    from scipy.signal import lfilter  # takes half a second to import, and few algorithms need it

    return np.asarray(lfilter([1.0], [1.0, -discount], rewards[::-1].astype(np.float64)))[::-1]


def sequences(dataset: Dataset, context: int, return_scale: float) -> Sequences:
    """The data set for models of histories: the return still to come, and the step within the episode, of each row."""
    to_go, step = np.empty_like(dataset.reward), np.empty(len(dataset.obs), np.int32)
    for rows in spans(dataset):
        to_go[rows] = discounted(dataset.reward[rows], 1.0) / return_scale
        step[rows] = np.arange(rows.stop - rows.start)
    columns: Any = (dataset.obs, dataset.action, to_go, step, np.zeros(context, np.float32))
    return Sequences(*columns)
