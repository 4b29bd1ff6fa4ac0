"""The ablations in the folders of runs. A file that cannot be read becomes a note of its run."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edp.errors import first_line, printable
from edp.report.collect import Entry
from edp.report.series import MOST
from edp.runs.scores import is_score_table, nan_mean

LARGEST_FILE = 10_000_000  # bytes
MOST_VALUES = 100  # values of an option
LARGEST_DRAWN = 1e30  # larger numbers are not drawn
PAPER_FIGURES = {"eas": 4, "calls": 5, "scale": 6, "noise": 7}  # the paper's figure of each ablation


class Ablation(NamedTuple):
    """Scores over the values of one option."""

    label: str
    means: dict[float | str, np.ndarray]  # mean score of each seed, by the option's value
    step: int | None = None  # of the run's checkpoint, if that is known


def find_ablations(entries: list[Entry]) -> dict[str, list[tuple[Entry, Ablation]]]:
    """Read the ablations of all runs, by name; those that the paper has come first."""
    ablations: dict[str, list[tuple[Entry, Ablation]]] = {}
    for entry in entries:
        paths = sorted((entry.folder / "ablations").glob("*.json"))
        notes = [f"the first {MOST} of {len(paths)} ablations are shown"] if len(paths) > MOST else []
        for path in paths[:MOST]:
            try:
                ablation = read_ablation(path)
            except (OSError, ValueError, OverflowError, RecursionError) as error:
                notes.append(f"ablations/{path.name} could not be read ({first_line(error)})")
            else:
                ablations.setdefault(printable(path.stem), []).append((entry, ablation))
        entry.notes += [note for note in notes if note not in entry.notes]
    names = sorted(ablations, key=lambda name: (PAPER_FIGURES.get(name, MOST), name))
    return {name: ablations[name] for name in names}


def read_ablation(path: Path) -> Ablation:
    """Read one file; anything malformed is a ValueError."""
    if not path.is_file() or path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"not a file of at most {LARGEST_FILE / 1e6:.0f} MB")
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    values, scores, label = (content.get(key) for key in ("values", "scores", "label"))
    most = MOST_VALUES
    if not isinstance(values, list) or not isinstance(scores, list) or not 0 < len(values) == len(scores) <= most:
        raise ValueError(f"it does not have 1 to {most} values with scores for each")
    if not all(type(value) is str or (type(value) in (int, float) and are_drawable([value])) for value in values):
        raise ValueError("its values are neither numbers nor words")
    seeds = len(scores[0]) if isinstance(scores[0], list) else 0
    if len(set(values)) < len(values):
        raise ValueError("it has a value twice")
    if not all(is_score_table(row, seeds) for row in scores):
        raise ValueError("it does not have scores of the same seeds for each value")
    ablation = ablation_from_scores(label if isinstance(label, str) else path.stem, values, scores)
    if np.isnan(list(ablation.means.values())).all():
        raise ValueError("it has no score")
    return ablation._replace(step=content["step"] if type(content.get("step")) is int else None)


def ablation_from_scores(label: str, values: list[Any], scores: list[Any]) -> Ablation:
    """Average scores, (values, seeds, episodes), over episodes."""
    return Ablation(
        label, {value: nan_mean(drawable_numbers(row), 1) for value, row in zip(values, scores, strict=True)}
    )


def drawable_numbers(values: Any) -> np.ndarray:
    """Convert to an array in which numbers too large to draw are NaN."""
    numbers = np.array(values, float)
    return np.where(np.abs(numbers) < LARGEST_DRAWN, numbers, np.nan)


def are_drawable(numbers: Iterable[float]) -> bool:
    return all(abs(number) < LARGEST_DRAWN for number in numbers)
