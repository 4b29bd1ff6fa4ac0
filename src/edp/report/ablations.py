"""The ablations that runs have in their folders; a file that cannot be read becomes a note of its run."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edp.data.formats.columns import printable
from edp.errors import first_line
from edp.report.collect import MOST, Entry, are_scores, mean_of

VALUES = 100  # of an option
BYTES = 10_000_000  # of a file
HUGE = 1e30  # what is larger is no score
OF_PAPER = {"eas": 4, "calls": 5, "scale": 6, "noise": 7}  # and the paper's figures of them


class Ablation(NamedTuple):
    """What ``edp ablate`` found of a run."""

    label: str
    means: dict[float | str, np.ndarray]  # of each seed, by the option's value


def ablations(entries: list[Entry]) -> dict[str, list[tuple[Entry, Ablation]]]:
    """By name, the paper's first: the runs that have it."""
    found: dict[str, list[tuple[Entry, Ablation]]] = {}
    for entry in entries:
        paths = sorted((entry.folder / "ablations").glob("*.json"))
        notes = [f"the first {MOST} of {len(paths)} ablations are shown"] if len(paths) > MOST else []
        for path in paths[:MOST]:
            try:
                read = read_ablation(path)
            except (OSError, ValueError, OverflowError, RecursionError) as error:
                notes.append(f"ablations/{path.name} could not be read ({first_line(error)})")
            else:
                found.setdefault(printable(path.stem), []).append((entry, read))
        entry.notes += [note for note in notes if note not in entry.notes]
    return {name: found[name] for name in sorted(found, key=lambda name: (OF_PAPER.get(name, MOST), name))}


def read_ablation(path: Path) -> Ablation:
    """What ``edp ablate`` wrote; a ValueError if it is something else."""
    if not path.is_file() or path.stat().st_size > BYTES:
        raise ValueError(f"not a file of at most {BYTES / 1e6:.0f} MB")
    content = json.loads(path.read_text())
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    values, scores, label = (content.get(key) for key in ("values", "scores", "label"))
    if not isinstance(values, list) or not isinstance(scores, list) or not 0 < len(values) == len(scores) <= VALUES:
        raise ValueError(f"it does not have 1 to {VALUES} values with scores for each")
    if not all(type(value) is str or (type(value) in (int, float) and is_drawable([value])) for value in values):
        raise ValueError("its values are neither numbers nor words")
    seeds = len(scores[0]) if isinstance(scores[0], list) else 0
    if len(set(values)) < len(values):
        raise ValueError("it has a value twice")
    if not all(are_scores(row, seeds) for row in scores):
        raise ValueError("it does not have scores of the same seeds for each value")
    means = [mean_of(bounded(row), 1) for row in scores]
    if np.isnan(means).all():
        raise ValueError("it has no score")
    return Ablation(label if isinstance(label, str) else path.stem, dict(zip(values, means, strict=True)))


def bounded(values: Any) -> np.ndarray:
    numbers = np.array(values, float)
    return np.where(np.abs(numbers) < HUGE, numbers, np.nan)


def is_drawable(numbers: Iterable[float]) -> bool:
    return all(abs(number) < HUGE for number in numbers)
