"""Figures of runs as files: curves, ablations, and those of the paper with these runs in them."""

import base64
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp.files import replacing, write_errors
from edp.report import page, summary
from edp.report.ablations import OF_PAPER, Ablation, ablations, bounded, is_drawable
from edp.report.collect import Entry, edge, mean_of
from edp.report.paper_figures import domains, speed
from edp.runs.scores import known_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 20  # in one figure
LETTERS = 100  # of a file's name
COLOURS = ["#2f7ed8", "#d9641e", "#2a9d5c", "#b455c9", "#c9a400", "#d23f57", "#1ba3b3", "#8d6e4f", "#7a85ff", "#7f8a94"]
ACROSS = "training steps (dotted: best evaluations, OMS; thick: the mean of the last ten, RAT)"
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "edp",  # the same names of parts in every file
    "text.usetex": False,
    "text.parse_math": False,  # names may have "$" in them
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


class Line(NamedTuple):
    """A run in a figure: the mean of its seeds, the lowest and the highest one, where they are known."""

    name: str
    at: np.ndarray
    ends: np.ndarray  # (3, points)
    rank: float
    oms: tuple[float, float, float] | None = None  # from where to where, and how high
    rat: tuple[float, float, float] | None = None
    marked: bool = False  # point by point
    joined: bool = True


def all_figures(
    entries: list[Entry], bench: Path | None = None, paper: bool = False, with_curves: bool = True
) -> dict[str, "Figure"]:
    """Each figure by its name, the paper's own if asked for. A file that cannot be drawn becomes a note of its run."""
    known = [entry for entry in entries if not entry.damage]
    found = {}
    with styled():
        for task in sorted({entry.task for entry in known}) if with_curves else ():
            found[f"curves-{task}"] = curves(task, [entry for entry in known if entry.task == task])
        for name, runs in ablations(known).items():
            found[f"ablation-{name}"] = ablation(name, runs)
        if paper and bench:
            found["speed"] = speed(bench)
        if paper:
            found["domains"] = domains(entries)
        return {name: settled(figure) for name, figure in found.items() if figure}


def settled(figure: "Figure") -> "Figure":
    """With everything in its place for good: laid out again, it would move by a hair, and its file would differ."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def save(figures: dict[str, "Figure"], folder: Path) -> list[Path]:
    """Write each as .svg and .png; whatever the names are, the files are in this folder."""
    written, taken = [], set()
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in figures.items():
            stem = file_name(name, taken)
            for kind, content in ((".svg", svg(figure)), (".png", drawn(figure, "png", dpi=150))):
                with replacing(folder / f"{stem}{kind}") as part:
                    part.write_bytes(content)
                written.append(folder / f"{stem}{kind}")
    return written


def as_data_uri(figure: "Figure") -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg(figure)).decode()


def svg(figure: "Figure") -> bytes:
    """The same for the same figure, and without a word of other files: not even of SVG's definition."""
    return re.sub(rb"<!DOCTYPE[^>]*>\s*", b"", drawn(figure, "svg", metadata=NO_METADATA), count=1)


def drawn(figure: "Figure", kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    with styled():
        figure.savefig(file, format=kind, **options)
    return file.getvalue()


@contextmanager
def styled() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():  # pyright: ignore
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names may be in any script
        yield


def file_name(name: str, taken: set[str]) -> str:
    """A name for a file, unlike those that are taken, even where capitals do not count."""
    stem = first = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:LETTERS].strip(".-") or "figure"
    number = 1
    while stem.lower() in taken:
        number += 1
        stem = f"{first}-{number}"
    taken.add(stem.lower())
    return stem


def shown(text: str, length: int = 60) -> str:
    """Text that can be drawn and kept in a file: on one line, without its middle if it is long."""
    text = "".join(char if char.isprintable() else " " for char in text[: 10 * length])
    return text if len(text) <= length else f"{text[: length // 2]}…{text[1 - length // 2 :]}"


def curves(task: str, runs: list[Entry]) -> "Figure | None":
    """Scores over training steps, as the page draws them (the paper's figure 3)."""
    lines, note = best([line for entry in runs if (line := scores_of(entry))], "RAT")
    if not lines:
        return None
    figure, axes = sheet(lines, (shown(task, 80), note), (ACROSS, summary.measure(runs)))
    axes.xaxis.set_major_formatter(short)
    for i, line in enumerate(lines):
        draw(axes, i, line)
        colour = stroke(i, line)["color"]
        if line.oms:
            axes.plot(line.oms[:2], line.oms[2:] * 2, ":", linewidth=1.2, color=colour)
        if line.rat:
            axes.plot(line.rat[:2], line.rat[2:] * 2, linewidth=4.5, alpha=0.6, solid_capstyle="butt", color=colour)
    axes.set_xlim(left=0)
    return figure


def scores_of(entry: Entry) -> Line | None:
    """The evaluations of a run, as the page has them."""
    found = page.curves(entry)
    if not found["scores"]:
        return None
    steps, *ends = (bounded(found["scores"][name]) for name in ("steps", "mean", "low", "high"))
    known = np.isfinite([steps, *ends]).all(axis=0)
    oms, rat = (tuple(found[name]) if found[name] and is_drawable(found[name]) else None for name in ("oms", "rat"))
    rank = rat[-1] if rat else -np.inf
    if not known.any():
        return None
    return Line(found["name"], steps[known], np.array(ends)[:, known], rank, oms, rat, marked=known.sum() < 3)


def best(lines: list[Line], what: str) -> tuple[list[Line], str]:
    """As many as one figure can show, and a note if that is not all."""
    if len(lines) <= RUNS:
        return lines, ""
    first = sorted(lines, key=lambda line: line.rank, reverse=True)[:RUNS]
    return first, f"the {RUNS} of {len(lines)} runs with the highest {what}"


def sheet(lines: list[Line], title: tuple[str, str], labels: tuple[str, str]) -> tuple["Figure", Any]:
    """A figure with a legend of these lines below; they are still to be drawn."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    names = [shown(line.name) for line in lines]
    across = 2 if max(map(len, names)) <= 45 else 1
    figure = Figure(figsize=(7.2, 4 + 0.18 * -(-len(names) // across)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title("\n".join(filter(None, title)), fontsize=10)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.grid(axis="y", color="0.92")
    handles = [Line2D([], [], **stroke(i, line)) for i, line in enumerate(lines)]
    places = [str(i) for i in range(len(names))]  # a name that begins with "_" would be left out
    legend = figure.legend(handles, places, loc="outside lower center", ncols=across, frameon=False, fontsize=8)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
    return figure, axes


def stroke(i: int, line: Line) -> dict[str, Any]:
    """Ten colours, twice."""
    style, marker = ("-", "o") if i < len(COLOURS) else ("--", "D")
    marker = {"marker": marker, "markersize": 4} if line.marked else {}
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": style if line.joined else "", "linewidth": 1.6, **marker}


def draw(axes: Any, i: int, line: Line) -> None:
    colour, (mean, low, high) = stroke(i, line)["color"], line.ends
    if line.joined and len(line.at) > 1:
        axes.fill_between(line.at, low, high, color=colour, alpha=0.15, linewidth=0)
    else:
        axes.vlines(line.at, low, high, color=colour, linewidth=1.2)
    axes.plot(line.at, mean, **stroke(i, line))


def short(value: float, _: Any = None) -> str:
    """A number of steps."""
    scale, unit = next((pair for pair in ((1e6, "M"), (1e3, "k")) if abs(value) >= pair[0]), (1, ""))
    return f"{value / scale:.4g}{unit}"


def ablation(name: str, runs: list[tuple[Entry, Ablation]]) -> "Figure":
    """Scores over the values of an option, which are evenly spaced; words are not joined by lines."""
    values = list(dict.fromkeys(value for _, each in runs for value in each.means))
    joined = not any(isinstance(value, str) for value in values)
    values = sorted(values, key=float) if joined else values
    of_task = {entry.task for entry, _ in runs}
    lines, note = best([line_of(entry, each, values, len(of_task) > 1) for entry, each in runs], "mean")
    used = sorted({int(place) for line in lines for place in line.at})
    title = shown(name, 30) + (f" (the paper's figure {OF_PAPER[name]})" if name in OF_PAPER else "")
    title += f": {shown(of_task.pop(), 50)}" if len(of_task) == 1 else ""
    labels = (shown(runs[0][1].label, 80), summary.measure([entry for entry, _ in runs]))
    lines = [line._replace(joined=joined) for line in lines]
    figure, axes = sheet(lines, (title, note), labels)
    for i, line in enumerate(lines):
        apart = 0.0 if joined else 0.4 * ((i + 0.5) / len(lines) - 0.5)
        draw(axes, i, line._replace(at=np.searchsorted(used, line.at) + apart))
    texts = [shown(value, 20) if isinstance(value, str) else f"{value:.6g}" for value in (values[at] for at in used)]
    every = -(-len(texts) // 25)
    slanted = {"rotation": 30, "ha": "right"} if sum(map(len, texts[::every])) > 70 else {}
    axes.set_xticks(range(0, len(texts), every), texts[::every], **slanted)
    axes.set_xlim(-0.5, len(texts) - 0.5)
    return figure


def line_of(entry: Entry, found: Ablation, values: list[float | str], with_task: bool) -> Line:
    name = f"{entry.task}: " * with_task + f"{entry.method}, {entry.name}"
    rows = np.array([found.means[value] for value in values if value in found.means])
    at = np.array([place for place, value in enumerate(values) if value in found.means])
    ends = np.array([mean_of(rows, 1), edge(rows, np.fmin), edge(rows, np.fmax)])
    known = np.isfinite(ends[0])
    return Line(name, at[known], ends[:, known], float(known_mean(ends[0])), marked=True)
