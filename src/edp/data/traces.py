"""Pictures of one column of a log: its trace over a typical day or episode, and who acted when."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from edp.data.typical import HOURS, Typical
from edp.drawing import COLOURS, GREY, LIGHT, fitted_text

POINTS, FEW_POINTS = 5000, 30  # of a trace; few points have markers
GAP = 5  # lines are not joined over more than so many intervals between rows


class DrawnColumn(NamedTuple):
    """A column of a log, of which there are pictures."""

    kind: str
    name: str
    values: np.ndarray  # of the rows of the sample
    colour: str

    @property
    def title(self) -> str:
        return self.name if not self.name.isdigit() else f"{self.kind} {self.name}"


@dataclass
class Shades:
    """The colours of rows, which tell who acted. Without ``labels``, all rows of a column have its own colour."""

    labels: np.ndarray | None  # a text for each row; an empty one is nobody known
    colours: dict[str, str] = field(init=False)  # of labels; the others are grey

    def __post_init__(self):
        texts, counts = np.unique([] if self.labels is None else self.labels, return_counts=True)
        frequent = [str(text) for text in texts[np.argsort(-counts, kind="stable")] if text][: len(COLOURS) - 1]
        self.colours = dict(zip(sorted(frequent), COLOURS, strict=False))

    def of_rows(self, rows: np.ndarray, own: str) -> list[tuple[str, np.ndarray]]:
        """Return each colour, and which of these rows have it."""
        if self.labels is None:
            return [(own, np.ones(len(rows), bool))]
        labels = self.labels[rows]
        masks = [(colour, labels == text) for text, colour in self.colours.items()]
        return [*masks, (LIGHT, ~np.isin(labels, list(self.colours)))]

    def draw_legend(self, axes: Any) -> None:
        from matplotlib.patches import Patch

        assert self.labels is not None
        named = {fitted_text(text, 30): colour for text, colour in self.colours.items()}
        if not np.isin(self.labels, list(self.colours)).all():
            named["others, or unknown"] = LIGHT
        axes.axis("off")
        handles = [Patch(color=colour) for colour in named.values()]
        axes.legend(handles, list(named), loc="center", ncols=len(named), frameon=False, fontsize=8)


def draw_trace(axes: Any, column: DrawnColumn, typical: Typical, ends: np.ndarray, shades: Shades) -> None:
    """Draw a column over typical days or episodes. Lines are not joined over gaps, nor after ``ends`` of episodes."""
    axes.set_ylabel(fitted_text(column.title, 24))
    axes.set_xlabel(typical.across)
    axes.grid(axis="x", color="0.92")
    axes.locator_params(axis="y", nbins=4)
    if typical.across == HOURS:
        axes.set_xlim(0, 24)
        axes.set_xticks(range(0, 25, 3))
    for trace in typical.traces:
        every = -(-len(trace.rows) // POINTS)
        rows, at = trace.rows[::every], trace.at[::every].astype(np.float64)
        apart = np.diff(at, prepend=at[:1])
        broken = (apart > GAP * max(np.median(apart), 1e-9)) | (apart < 0) | np.append(False, ends[rows[:-1]])
        breaks = np.flatnonzero(broken)
        marker = "." if len(rows) <= FEW_POINTS or len(breaks) > len(rows) / 2 else ""
        values = column.values[rows].astype(np.float64)
        for colour, mask in shades.of_rows(rows, column.colour):
            mask = mask | np.append(False, mask[:-1])  # up to the next row
            shown = np.insert(np.where(mask, values, np.nan), breaks, np.nan)
            axes.plot(np.insert(at, breaks, np.nan), shown, color=colour, linewidth=1, marker=marker, markersize=4)
    if not any(np.isfinite(column.values[trace.rows]).any() for trace in typical.traces):
        axes.text(0.5, 0.5, "no number", transform=axes.transAxes, ha="center", va="center", color=GREY)
