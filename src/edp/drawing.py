"""How all figures are drawn with Matplotlib and saved: style, colours, files."""

import base64
import io
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import chdir, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp.files import MADE_BY, check_writable, replacing, write_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of runs, in this order, in figures and on the page.
COLOURS = ["#2f7ed8", "#d9641e", "#2a9d5c", "#b455c9", "#c9a400", "#d23f57", "#1ba3b3", "#8d6e4f", "#7a85ff", "#7f8a94"]
BLUE, ORANGE, GREEN = COLOURS[:3]
GREY, LIGHT = "#6b7280", "#c3c8cf"
SMALL_TEXT = {"fontsize": 7.5, "color": "0.3"}
FIGURE_STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "edp",  # the same ids in every file
    "text.usetex": False,
    "text.parse_math": False,  # names may contain "$"
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
DPI = 150
LONGEST_NAME = 100  # characters of a file's name


@contextmanager
def drawing_style() -> Iterator[None]:
    """Set Matplotlib up. Matplotlib is imported, and figures are made and saved, inside this context.

    Figures have Matplotlib's default style and ours, whatever a ``matplotlibrc`` says.
    """
    matplotlib = import_matplotlib()
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(FIGURE_STYLE)
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names may be in any script
        yield


def import_matplotlib() -> Any:
    """Import Matplotlib from another folder, because it reads the ``matplotlibrc`` of the current folder first.

    That file may have come with downloaded data, and can name code to import.
    """
    if "matplotlib" not in sys.modules:
        with suppress(OSError), chdir(Path(__file__).parent):  # the current folder may have been deleted
            import_module("matplotlib")
    return import_module("matplotlib")


def fix_layout(figure: "Figure") -> "Figure":
    """Lay a figure out, and keep that layout. A second layout would move things slightly, so files would differ."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def save_figure(figure: "Figure", path: Path) -> None:
    """Write one file in the format of its suffix."""
    about = {"metadata": {"Software": MADE_BY}} if path.suffix == ".png" else {}
    content = svg(figure) if path.suffix == ".svg" else rendered(figure, path.suffix.lstrip("."), dpi=DPI, **about)
    with replacing(path) as part:
        part.write_bytes(content)


def save_figures(figures: dict[str, "Figure"], folder: Path) -> list[Path]:
    """Write each figure as .svg and .png. The files are in this folder, whatever the figures' names contain."""
    paths = figure_paths(figures, folder)
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, name in paths.items():
            save_figure(figures[name], path)
    return list(paths)


def check_figures(figures: Iterable[str], folder: Path, overwrite: bool) -> None:
    """Refuse a folder to which these figures cannot be written, or which has files of these names."""
    for path in figure_paths(figures, folder):
        check_writable(path, overwrite)


def figure_paths(figures: Iterable[str], folder: Path) -> dict[Path, str]:
    """Return the files of figures with these names, and the name that belongs to each."""
    taken: set[str] = set()
    stems = {safe_file_name(name, taken): name for name in figures}
    return {folder / f"{stem}{suffix}": name for stem, name in stems.items() for suffix in (".svg", ".png")}


def data_uri(figure: "Figure") -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg(figure)).decode()


def svg(figure: "Figure") -> bytes:
    """Render as SVG: the same bytes for the same figure, without dates and without references to other files."""
    return re.sub(rb"<!DOCTYPE[^>]*>\s*", b"", rendered(figure, "svg", metadata=NO_METADATA), count=1)


def rendered(figure: "Figure", kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    with drawing_style():
        figure.savefig(file, format=kind, **options)
    return file.getvalue()


def safe_file_name(name: str, taken: set[str]) -> str:
    """Make a file name that differs from those in ``taken``, ignoring case, and add it to them."""
    stem = first = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:LONGEST_NAME].strip(".-") or "figure"
    number = 1
    while stem.lower() in taken:
        number += 1
        stem = f"{first}-{number}"
    taken.add(stem.lower())
    return stem


def fitted_text(text: str, length: int = 60) -> str:
    """Make text fit for a figure: on one line, without control characters, and without its middle if it is long."""
    text = "".join(char if char.isprintable() else " " for char in text[: 10 * length])
    return text if len(text) <= length else f"{text[: length // 2]}…{text[1 - length // 2 :]}"
