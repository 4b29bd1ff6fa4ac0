"""The metadata of a LeRobot data set, from ``meta/info.json``."""

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from edp.data.checks import check_exists
from edp.data.formats import LEROBOT_INFO
from edp.errors import UserError, first_line, printable

LARGEST = 2**24  # bytes of metadata
WIDEST = 2**20  # numbers in a feature
MOST = 2**53  # frames and episodes
VERSIONS = re.compile(r"v?(2\.[01]|3\.0)")
NUMBERS = re.compile(r"(float|int|uint)(8|16|32|64)|bool")


class Feature(NamedTuple):
    """One column of a data set."""

    key: str
    kind: str  # the type of its numbers, such as float32, or what it is instead
    width: int  # how many numbers each frame has; 0 if it is not a number or a vector
    names: tuple[str, ...]  # of the numbers


class Info(NamedTuple):
    """What ``meta/info.json`` says."""

    features: dict[str, Feature]
    frames: int
    episodes: int
    tasks: int


def read_info(folder: Path) -> Info:
    content = read_json(folder)
    version = content.get("codebase_version")
    if not isinstance(version, str) or not VERSIONS.fullmatch(version):
        shown = printable(str(version))[:40]
        raise UserError(
            f"{folder}: a LeRobot data set of version {shown}, not 2.0 to 3.0: convert it with LeRobot's own script"
        )
    place = content.get("data_path")
    if not isinstance(place, str) or not re.fullmatch(r"data/[^/]+/[^/]+\.parquet", place) or ".." in place:
        raise UserError(f"{folder}: data_path is {printable(str(place))[:80]!r}, and only data/*/*.parquet is read")
    features = content.get("features")
    if not isinstance(features, dict) or not features:
        raise UserError(f"{folder}: no features in {LEROBOT_INFO}")
    return Info(
        {key: read_feature(key, about, folder) for key, about in features.items()},
        *(count(content, name, folder) for name in ("total_frames", "total_episodes", "total_tasks")),
    )


def read_json(folder: Path) -> dict[str, Any]:
    path = folder / LEROBOT_INFO
    check_inside(path, folder)
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"larger than {LARGEST:,} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not the metadata of a LeRobot data set ({printable(first_line(error))})") from None
    return content


def check_inside(path: Path, folder: Path) -> None:
    """Refuse pipes, devices and links out of a data set. Hugging Face's cache keeps the files beside the data set."""
    check_exists(path)
    home = folder.resolve()
    if home.parent.name == "snapshots":
        home = home.parent.parent
    if not path.resolve().is_relative_to(home):
        raise UserError(f"{path}: a link to another place: copy the file into the data set")


def count(content: dict[str, Any], name: str, folder: Path) -> int:
    number = content.get(name)
    if type(number) is not int or not 0 <= number <= MOST:
        raise UserError(f"{folder}: {name} in {LEROBOT_INFO} is {printable(str(number))[:40]}, not a count")
    return number


def read_feature(key: str, about: Any, folder: Path) -> Feature:
    """Check a feature, and find out how many numbers it has."""
    kind, shape = (about.get(name) for name in ("dtype", "shape")) if isinstance(about, dict) else (None, None)
    counts = isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape)
    if not isinstance(kind, str) or not isinstance(shape, list) or not counts:
        raise UserError(f"{folder}: feature {printable(key)!r} in {LEROBOT_INFO} has no dtype, or no shape of counts")
    if not NUMBERS.fullmatch(kind):
        return Feature(key, printable(kind)[:20], 0, ())
    if len(shape) > 1:
        return Feature(key, f"{len(shape)} dimensions", 0, ())
    width = shape[0] if shape else 1
    if width > WIDEST:
        raise UserError(f"{folder}: feature {printable(key)!r} has {width:,} numbers, and {WIDEST:,} are the most")
    return Feature(key, kind, width, number_names(about.get("names"), width))


def number_names(names: Any, width: int) -> tuple[str, ...]:
    """Return a name for each number: from a list, lists in a dict, or a dict of positions; otherwise counted."""
    if isinstance(names, dict):
        values = list(names.values())
        if all(isinstance(value, list) for value in values):
            names = list(chain(*values))
        elif all(type(value) is int for value in values):
            names = sorted(names, key=names.__getitem__)
    good = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if good and len(names) == len(set(names)) == width:
        return tuple(map(printable, names))
    return tuple(map(str, range(width)))
