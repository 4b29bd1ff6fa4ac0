"""Which observations a policy can change: those that depend on the actions, directly or through other observations.

Weather, prices and the time of the day go their own way. A model that has to learn this from a log learns it almost,
and in a replay of a hundred steps the weather would drift with what the policy does.
"""

import numpy as np

from edp.acting.features import draw_features
from edp.data.dataset import Dataset

ROWS, FEATURES, RIDGE = 20_000, 200, 1e-5
GAIN = 0.005  # of the variance of an observation's changes: what the actions explain of a change beyond this counts
SIGMAS = 3.0  # and only if it is more than noise


def driven_columns(dataset: Dataset, seed: int = 0) -> np.ndarray:
    """Mark the observations whose changes are predicted better with the actions, or with observations so marked.

    Predictions are those of regressions on one half of the episodes, for the other half.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(dataset.obs), min(ROWS, len(dataset.obs)), replace=False))
    obs, action, episode = dataset.obs[rows], dataset.action[rows], dataset.episode[rows]
    change = (dataset.next_obs[rows] - obs).astype(np.float64)
    change = (change - change.mean(axis=0)) / (change.std(axis=0) + 1e-12)
    part = part_of_rows(episode, rng)
    whole = squared_errors([obs, action], change, part)
    driven = np.zeros(obs.shape[1], bool)
    while True:
        without = squared_errors([obs[:, ~driven], action[:, :0]], change, part)
        found = driven | helps(without - whole, part)
        if (found == driven).all() or found.all():
            return found
        driven = found


def part_of_rows(episode: np.ndarray, rng: np.random.Generator, parts: int = 20) -> np.ndarray:
    """Number parts of a log: groups of whole episodes, or of neighbouring rows if there are few episodes."""
    names, index = np.unique(episode, return_inverse=True)
    if len(names) < parts:
        return np.arange(len(episode)) * parts // len(episode)
    return (rng.permutation(len(names)) % parts)[index]


def squared_errors(columns: list[np.ndarray], change: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The errors of predictions for the odd parts by the even ones, and the other way round."""
    features = draw_features(*columns, count=FEATURES)(*columns)
    errors = np.empty_like(change)
    for fitted in (part % 2 == 0, part % 2 == 1):
        inputs = features[fitted]
        square = inputs.T @ inputs / len(inputs) + RIDGE * np.eye(inputs.shape[1])
        weight = np.linalg.solve(square, inputs.T @ change[fitted] / len(inputs))
        errors[~fitted] = (change[~fitted] - features[~fitted] @ weight) ** 2
    return errors


def helps(gain: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Whether the errors fall by more than their noise over the parts of the log, and by enough to matter."""
    means = np.stack([gain[part == number].mean(axis=0) for number in np.unique(part)])
    noise = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return (means.mean(axis=0) > GAIN) & (means.mean(axis=0) > SIGMAS * noise)
