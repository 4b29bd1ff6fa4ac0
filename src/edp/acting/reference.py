"""Some rows of the training data, kept with the run, to tell how far an observation is from the data.

The unit of distances is how far data that the policy has not seen usually is: the 99 % quantile of the distances from a
row to the nearest row of *another* episode. (Rows of the same episode are near because they are near in time.)
"""

import hashlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from edp.config.spec import DataOptions, Spec
from edp.data.dataset import Dataset
from edp.data.episodes import mark_held_out, mark_learned
from edp.data.log import PIECE
from edp.data.signals import Signals
from edp.errors import UserError
from edp.files import replacing

FILE = "reference.npy"
ROWS = 1000
QUANTILE = 0.99
SMALLEST = 0.1  # distances below a tenth of a standard deviation are never large
PARTS = 10  # of a single episode, which stand for episodes
BLOCK = 500  # observations at a time


def learned_rows(options: DataOptions, dataset: Dataset) -> np.ndarray:
    """Mark the rows of the data that a run learns from."""
    return mark_learned(dataset, mark_held_out(dataset, options.validation), options.best, options.best_of)


def observed_ranges(obs: np.ndarray, marks: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The smallest and the largest number of each column in the marked rows, with the digits of float32."""
    pieces = (slice(start, start + PIECE) for start in range(0, len(obs), PIECE))
    parts = [obs[piece][marks[piece]] for piece in pieces if marks[piece].any()]
    low, high = [part.min(axis=0) for part in parts], [part.max(axis=0) for part in parts]
    shortest = lambda numbers: tuple(float(str(number)) for number in numbers)  # noqa: E731  (24.83, not 24.829999)
    return shortest(np.min(low, axis=0)), shortest(np.max(high, axis=0))


class Reference:
    """Rows of the training data, as the network sees them."""

    def __init__(self, rows: np.ndarray, normalised: bool):
        """If the network's observations are not ``normalised``, distances are in standard deviations of the rows."""
        self.rows, self.centre, std = rows, rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
        self.weight = np.ones_like(std) if normalised else np.divide(1, std, out=np.zeros_like(std), where=std > 0)
        self.points = self.place(rows)
        self.squares = np.sum(self.points**2, axis=1)

    def place(self, obs: np.ndarray) -> np.ndarray:
        """The points in which distances are measured."""
        return (obs - self.centre) * self.weight

    def distances(self, obs: np.ndarray) -> np.ndarray:
        """The distance of each observation, as the network sees it, to the nearest row."""
        return nearest_distances(self.place(obs), self.points, self.squares)

    def usual_distance(self, episode: np.ndarray) -> float:
        """The unit of distances (see above), from the number of each row's episode; 0 if there is only one row."""
        if len(self.rows) == 1:
            return 0.0
        if episode[0] == episode[-1]:
            episode = np.arange(len(self.rows)) * PARTS // len(self.rows)
        alone = [episode == number for number in np.unique(episode)]
        found = [nearest_distances(self.points[own], self.points[~own], self.squares[~own]) for own in alone]
        return max(SMALLEST, float(np.quantile(np.concatenate(found), QUANTILE)))


def nearest_distances(points: np.ndarray, among: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The distance of each point to the nearest of other points, whose ``squares`` are those of their lengths.

    This is ``nearest.nearest_distance`` in NumPy and in float64, which is faster for a single point.
    """
    found = np.empty(len(points))
    for start in range(0, len(points), BLOCK):
        block = points[start : start + BLOCK]
        found[start : start + BLOCK] = (squares - 2 * (block @ among.T)).min(axis=1) + np.sum(block**2, axis=1)
    return np.sqrt(np.maximum(found, 0))


def sample_reference(options: DataOptions, dataset: Dataset) -> tuple[Reference, np.ndarray]:
    """Draw rows to learn from, the same ones every time, and return also the numbers of their episodes."""
    known = np.flatnonzero(learned_rows(options, dataset))
    rows = np.sort(np.random.default_rng(0).choice(known, min(ROWS, len(known)), replace=False))
    return Reference(np.asarray(dataset.obs[rows]), options.normalise != "none"), dataset.episode[rows]


def add_reference(spec: Spec, dataset: Dataset) -> Spec:
    """The spec with what tells whether a reference is the one of this data."""
    assert spec.signals is not None
    reference, episode = sample_reference(spec.data, dataset)
    digest = hashlib.sha256(as_file(reference)).hexdigest()
    signals = replace(spec.signals, distance=reference.usual_distance(episode), reference_sha256=digest)
    return replace(spec, signals=signals)


def as_file(reference: Reference) -> bytes:
    file = io.BytesIO()
    np.save(file, reference.rows)
    return file.getvalue()


def keep_reference(folder: Path, spec: Spec, dataset: Dataset) -> None:
    """Write the reference into the run directory, unless it is there. ``dataset`` is in the spec's units."""
    if spec.signals is None or read_bytes(folder, spec.signals):
        return
    reference, _ = sample_reference(spec.data, dataset)
    with replacing(folder / FILE) as part:
        part.write_bytes(as_file(reference))


def read_bytes(folder: Path, signals: Signals) -> bytes:
    """The content of the file, or nothing if it is missing or damaged."""
    try:
        content = (folder / FILE).read_bytes()
    except OSError:
        return b""
    return content if hashlib.sha256(content).hexdigest() == signals.reference_sha256 else b""


def read_reference(folder: Path, spec: Spec) -> Reference:
    """Read the reference of a run."""
    assert spec.signals is not None
    content = read_bytes(folder, spec.signals)
    if not content:
        raise UserError(
            f"{folder / FILE}: missing or damaged, so observations cannot be compared with the training data: copy the "
            "whole run directory, or act without this check (`outside=ignore`)"
        )
    return Reference(np.load(io.BytesIO(content), allow_pickle=False), spec.data.normalise != "none")
