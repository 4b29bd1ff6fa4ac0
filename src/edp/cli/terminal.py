"""Numbers and names as text, for all commands that print them."""

from typing import Any

import numpy as np
from rich.markup import escape

from edp.errors import printable
from edp.runs.scores import nan_mean

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Any, width: int = 20) -> str:
    """Draw a curve in one line of text, scaled from its lowest to its highest value; NaN is a space."""
    values = np.asarray(values, float)
    if not len(values) or np.isnan(values).all():
        return ""
    blocks = [nan_mean(block) for block in np.array_split(values, min(width, len(values)))]
    low, high = np.nanmin(blocks), np.nanmax(blocks)
    height = lambda value: round((value - low) / (high - low) * (len(BARS) - 1)) if high > low else 3  # noqa: E731
    return "".join(" " if np.isnan(value) else BARS[height(value)] for value in blocks)


def score_text(scores: np.ndarray) -> str:
    """Write scores (seeds, episodes) as their mean ± the spread over seeds, or over episodes if there is one seed."""
    if np.isnan(scores).all():
        return "none (all episodes failed)"
    means = nan_mean(scores, axis=1)
    means = means[~np.isnan(means)]
    spread = means.std(ddof=1) if len(means) > 1 else np.nanstd(scores)
    return f"{means.mean():.1f} ± {spread:.1f}"


def shown(name: str) -> str:
    """Write a name that comes from a file in a table of rich: without its control characters and its markup."""
    return escape(printable(name))
