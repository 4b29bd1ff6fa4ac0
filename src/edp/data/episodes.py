"""Preparing whole episodes for training: held-out and best episodes, rewards, n-step returns, sequences."""

from typing import Any, NamedTuple

import numpy as np

from edp.batches import Following, Sequences, Tail, Transitions
from edp.data.dataset import Dataset, GrowingArray
from edp.data.log import PIECE
from edp.errors import unknown


def episode_spans(dataset: Dataset) -> list[slice]:
    """Return the rows of each episode."""
    starts = np.flatnonzero(np.diff(dataset.episode, prepend=-1))
    return [slice(*ends) for ends in zip(starts, [*starts[1:], len(dataset.episode)], strict=True)]


class Parts(NamedTuple):
    """The data to learn from, and the data that is held out for validation."""

    learned: Dataset
    held: Dataset | None


def prepare_episodes(
    dataset: Dataset, rewards: str, share: float, validation: float = 0.0, best_of: str = "episodes"
) -> Parts:
    """Split off held-out episodes and keep the best others, by raw rewards. Rewards are transformed over all data."""
    held = mark_held_out(dataset, validation)
    transformed = with_rewards(dataset, rewards)
    learned = take_rows(transformed, mark_learned(dataset, held, share, best_of))
    return Parts(learned, take_rows(transformed, held) if held.any() else None)


def mark_held_out(dataset: Dataset, share: float) -> np.ndarray:
    """Mark the rows of a random ``share`` of the episodes, the same ones every time; none if there is one episode."""
    marks, episodes = np.zeros(len(dataset.obs), bool), episode_spans(dataset)
    if share and len(episodes) > 1:
        count = min(len(episodes) - 1, max(1, round(share * len(episodes))))
        for chosen in np.random.default_rng(0).permutation(len(episodes))[:count]:
            marks[episodes[chosen]] = True
    return marks


def mark_learned(dataset: Dataset, held: np.ndarray, share: float, best_of: str = "episodes") -> np.ndarray:
    """Mark the rows to learn from: those of the best episodes that are not held out."""
    marks = ~held
    if share < 1:
        others = dataset._replace(reward=dataset.reward[marks], episode=dataset.episode[marks])
        marks[np.flatnonzero(marks)] = mark_best(others, share, best_of)
    return marks


BEST_OF = ("episodes", "transitions")  # choices of `best_of`


def mark_best(dataset: Dataset, share: float, best_of: str = "episodes") -> np.ndarray:
    """Mark the rows of the ``share`` of episodes with the highest returns (at least one).

    With ``best_of="transitions"``, mark the best episodes that have together less than this share of all transitions.
    """
    episodes = episode_spans(dataset)
    returns = np.array([dataset.reward[rows].sum(dtype=np.float64) for rows in episodes])
    order = np.argsort(-returns, kind="stable")
    if best_of == "transitions":
        lengths = np.cumsum([episodes[chosen].stop - episodes[chosen].start for chosen in order])
        count = max(1, int(np.sum(lengths < share * lengths[-1])))
    else:
        count = max(1, int(np.ceil(share * len(episodes))))
    marks = np.zeros(len(dataset.reward), bool)
    for chosen in order[:count]:
        marks[episodes[chosen]] = True
    return marks


def take_rows(dataset: Dataset, marked: np.ndarray) -> Dataset:
    """Keep the marked rows. They are in a file if the data set is."""
    if marked.all():
        return dataset
    names = (*Transitions._fields[:5], "episode", *(() if dataset.operator is None else ("operator",)))
    return dataset._replace(**{name: marked_rows(getattr(dataset, name), marked) for name in names})


def marked_rows(array: np.ndarray, marked: np.ndarray) -> np.ndarray:
    column = GrowingArray(array.shape[1:], array.dtype, int(marked.sum()), isinstance(array, np.memmap))
    for start in range(0, len(array), PIECE):
        rows = slice(start, start + PIECE)
        column.add(array[rows][marked[rows]])
    return column.whole()


def with_n_step_rewards(dataset: Dataset, count: int, discount: float) -> Dataset:
    """Give each row the discounted rewards of ``count`` steps of its episode, and the state after them.

    ``not_done`` includes the discount of the extra steps, so discount · not_done is the factor of that state's value.
    """
    if count == 1:
        return dataset
    reward, ahead = np.zeros_like(dataset.reward, subok=False), np.empty(len(dataset.obs), np.int32)
    for rows in episode_spans(dataset):
        length = rows.stop - rows.start
        for k in range(min(count, length)):
            reward[rows.start : rows.stop - k] += discount**k * dataset.reward[rows.start + k : rows.stop]
        ahead[rows] = np.minimum(np.arange(length, 0, -1), count) - 1
    next_obs = GrowingArray(
        dataset.next_obs.shape[1:], np.float32, len(reward), isinstance(dataset.next_obs, np.memmap)
    )
    not_done = np.empty_like(reward)
    for start in range(0, len(reward), PIECE):
        piece = slice(start, start + PIECE)
        last = np.arange(start, start + len(reward[piece])) + ahead[piece]
        next_obs.add(dataset.next_obs[last])
        not_done[piece] = dataset.not_done[last] * discount ** ahead[piece]
    return dataset._replace(reward=reward, next_obs=next_obs.whole(), not_done=not_done)


def scaled_to_return_range(dataset: Dataset) -> np.ndarray:
    """Scale rewards so that the returns of the best and the worst episode differ by 1,000 (IQL, for locomotion)."""
    returns = [dataset.reward[rows].sum(dtype=np.float64) for rows in episode_spans(dataset)]
    spread = max(returns) - min(returns)
    return dataset.reward * (1000 / spread) if spread else dataset.reward


def scaled_to_range(dataset: Dataset) -> np.ndarray:
    """Map the smallest and the largest reward to -1 and 1."""
    low, high = dataset.reward.min(), dataset.reward.max()
    return 2 * (dataset.reward - low) / (high - low) - 1 if high > low else np.zeros_like(dataset.reward)


def scaled_to_unit_std(dataset: Dataset) -> np.ndarray:
    """Divide rewards by their std. They are not shifted, so signs stay."""
    std = dataset.reward.std(dtype=np.float64)
    return dataset.reward / std if std > 0 else dataset.reward


REWARDS = {
    "raw": lambda dataset: dataset.reward,
    "unit": scaled_to_unit_std,
    "return-range": scaled_to_return_range,
    "min-max": scaled_to_range,
    "minus-one": lambda dataset: dataset.reward - 1,
    "centred": lambda dataset: 4 * (dataset.reward - 0.5),
    "hundredfold": lambda dataset: 100 * dataset.reward,
}


def with_rewards(dataset: Dataset, name: str) -> Dataset:
    """Transform the rewards of a data set in one of the paper's ways."""
    if name not in REWARDS:
        raise unknown("choice of `rewards`", name, REWARDS)
    return dataset._replace(reward=REWARDS[name](dataset).astype(np.float32))


def to_transitions(dataset: Dataset, tail: Tail | None = None, following: Following | None = None) -> Transitions:
    columns: Any = (getattr(dataset, name) for name in Transitions._fields[:5])
    return Transitions(*columns, tail=tail, following=following)


def following_actions(dataset: Dataset, count: int) -> Following:
    """Return the action ``count`` steps after each row, which is taken in the row's next state of ``count`` steps.

    Rows less than ``count`` steps before the end of their episode have none.
    """
    action = GrowingArray(
        dataset.action.shape[1:], np.float32, len(dataset.action), isinstance(dataset.action, np.memmap)
    )
    known = np.zeros_like(dataset.reward, subok=False)
    for rows in episode_spans(dataset):
        missing = min(count, rows.stop - rows.start)
        known[rows.start : rows.stop - missing] = 1
        action.add(dataset.action[rows.start + missing : rows.stop])
        action.add(np.zeros((missing, *dataset.action.shape[1:]), np.float32))
    return Following(action.whole(), known)  # pyright: ignore


def episode_tails(dataset: Dataset, discount: float) -> Tail:
    """Return the discounted rewards from each row to the end of its episode, and the state there."""
    reward, ahead, last = np.empty_like(dataset.reward), np.empty_like(dataset.reward), np.empty(len(dataset.obs), int)
    for rows in episode_spans(dataset):
        reward[rows] = discounted_returns(dataset.reward[rows], discount)
        last[rows] = rows.stop - 1
        ahead[rows] = discount ** np.arange(rows.stop - rows.start, 0, -1) * dataset.not_done[rows.stop - 1]
    return Tail(reward, dataset.next_obs[last], ahead)  # pyright: ignore


def discounted_returns(rewards: np.ndarray, discount: float) -> np.ndarray:
    """Return G_t = r_t + discount · G_{t+1} for each step."""
    from scipy.signal import lfilter  # its import takes half a second, and few algorithms need it

    return np.asarray(lfilter([1.0], [1.0, -discount], rewards[::-1].astype(np.float64)))[::-1]


def to_sequences(dataset: Dataset, context: int, return_scale: float) -> Sequences:
    """Return the data of sequence models, with the return-to-go and the step within the episode of each row."""
    to_go, step = np.empty_like(dataset.reward), np.empty(len(dataset.obs), np.int32)
    for rows in episode_spans(dataset):
        to_go[rows] = discounted_returns(dataset.reward[rows], 1.0) / return_scale
        step[rows] = np.arange(rows.stop - rows.start)
    columns: Any = (dataset.obs, dataset.action, to_go, step, np.zeros(context, np.float32))
    return Sequences(*columns)
