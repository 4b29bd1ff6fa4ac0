"""The space of a sweep: for each option, the values that are tried."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import product
from typing import Any, NamedTuple, get_origin

import numpy as np

from edp.algorithms import ALGORITHMS
from edp.config.defaults import PRESETS
from edp.config.spec import DataOptions, EvalOptions, TrainOptions
from edp.data.formats.columns import Columns
from edp.errors import UserError, unknown
from edp.policies import POLICIES

NAMES: dict[str, Any] = {"algo": ALGORITHMS, "policy": POLICIES, "preset": PRESETS}  # with their choices
TEXTS = ("task", *NAMES, "env", "columns", "data")  # the names of a run's parts, which are no options
MOST_TRIALS = 10_000
FARTHEST = 1e30  # end of a range
DIGITS = 4  # of numbers that are drawn

Values = dict[str, Any]


class Choices(NamedTuple):
    """One of these values."""

    values: tuple[Any, ...]

    def points(self) -> list[Any]:
        return list(self.values)

    def draw(self, rng: np.random.Generator) -> Any:
        return self.values[int(rng.integers(len(self.values)))]

    def holds(self, value: Any) -> bool:
        return as_tuple(value) in map(as_tuple, self.values)


class Range(NamedTuple):
    """A number from ``low`` to ``high``, on a logarithmic scale if ``log`` is true. A grid has ``number`` of them."""

    low: float
    high: float
    log: bool = False
    whole: bool = False
    number: int = 0

    def points(self) -> list[Any]:
        even = np.geomspace if self.log else np.linspace
        return list(dict.fromkeys(self.rounded(float(value)) for value in even(self.low, self.high, self.number)))

    def draw(self, rng: np.random.Generator) -> Any:
        if self.log:
            return self.rounded(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))
        return self.rounded(rng.uniform(self.low, self.high + self.whole))

    def holds(self, value: Any) -> bool:
        return type(value) in (int, float) and self.low <= value <= self.high

    def rounded(self, value: float) -> Any:
        """The number with few digits, inside the range."""
        value = math.floor(value) if self.whole else float(f"{value:.{DIGITS}g}")
        return min(max(value, self.low), self.high)


Dimension = Choices | Range


class Space(NamedTuple):
    """Values that all trials of this space share, and the dimensions in which they differ."""

    fixed: Values
    dimensions: dict[str, Dimension]

    @property
    def size(self) -> int:
        """The number of points of the grid."""
        return math.prod(len(each.points()) for each in self.dimensions.values())

    def grid(self) -> Iterator[Values]:
        """All points; the last dimension changes first."""
        for point in product(*(each.points() for each in self.dimensions.values())):
            yield self.fixed | dict(zip(self.dimensions, point, strict=True))

    def draw(self, rng: np.random.Generator) -> Values:
        return self.fixed | {name: each.draw(rng) for name, each in self.dimensions.items()}

    def holds(self, values: Values) -> bool:
        """Whether a trial with these values may be of this space."""
        return (
            set(values) == {*self.fixed, *self.dimensions}
            and all(as_tuple(values[name]) == as_tuple(value) for name, value in self.fixed.items())
            and all(each.holds(values[name]) for name, each in self.dimensions.items())
        )

    @property
    def most_trials(self) -> float:
        """The number of different trials, which is infinite if there is a range."""
        if any(isinstance(each, Range) for each in self.dimensions.values()):
            return math.inf
        return self.size


def as_tuple(value: Any) -> Any:
    """The value with tuples in the place of lists, which JSON has."""
    return tuple(value) if isinstance(value, list) else value


def option_types() -> dict[str, Any]:
    """The type of every option of `edp train`, over all algorithms and policies, and of the columns of tables."""
    classes: Any = (*ALGORITHMS.values(), *POLICIES.values(), DataOptions, TrainOptions, EvalOptions, Columns)
    return {entry.name: entry.type for cls in classes for entry in fields(cls)}


def read_values(given: Mapping[str, Any], where: str) -> Values:
    """Options that have one value in all trials."""
    spaces = read_space(given, where)
    if spaces.dimensions:
        name = next(iter(spaces.dimensions))
        raise UserError(f"{where}: {name} must have one value here; what differs between trials belongs into [space]")
    return spaces.fixed


def read_space(given: Mapping[str, Any], where: str) -> Space:
    """One table of the file: a list is a choice, a table a range, and anything else a fixed value."""
    fixed, dimensions, types = {}, {}, option_types()
    for spelled, entry in given.items():
        name = spelled.replace("-", "_")
        if name not in types and name not in TEXTS:
            raise UserError(f"{where}: {unknown('option', spelled, [*types, *TEXTS])}")
        if name in fixed or name in dimensions:
            raise UserError(f"{where}: {name} is there twice, with - and with _")
        many = get_origin(types.get(name)) is tuple
        if name == "columns" and isinstance(entry, Mapping):
            fixed[name] = dict(entry)
            continue
        if isinstance(entry, Mapping):
            dimensions[name] = read_range(entry, f"{where}: {name}", types.get(name))
        elif isinstance(entry, list | tuple) and not (many and entry and not isinstance(entry[0], list | tuple)):
            if not entry:
                raise UserError(f"{where}: {name} has no values to choose from")
            values = [tuple(each) if isinstance(each, list) else each for each in entry]
            if len(set(map(repr, values))) < len(values):
                raise UserError(f"{where}: {name} has a value twice")
            dimensions[name] = Choices(tuple(values))
        else:
            fixed[name] = tuple(entry) if isinstance(entry, list) else entry
        check_names(name, dimensions.get(name, fixed.get(name)), where)
    return Space(fixed, dimensions)


def check_names(name: str, values: Any, where: str) -> None:
    """Refuse what is no name where only names make sense, and names of algorithms, policies and presets unknown."""
    if name not in TEXTS:
        return
    for value in values.values if isinstance(values, Choices) else (values,):
        if not isinstance(value, str):
            raise UserError(f"{where}: {name} must be a name, or a list of names")
        if value not in NAMES.get(name, {value}):
            raise UserError(f"{where}: {unknown(name, value, NAMES[name])}")


def read_range(entry: Mapping[str, Any], where: str, kind: Any) -> Range:
    """A range, such as {low = 1e-4, high = 1e-2, log = true}."""
    if kind not in (int, float):
        raise UserError(f"{where}: a range is for numbers; give a list of values")
    for name in entry:
        if name not in ("low", "high", "log", "points"):
            raise UserError(f"{where}: {unknown('entry', name, ('low', 'high', 'log', 'points'))}")
    given: list[Any] = [entry.get(name) for name in ("low", "high", "log", "points")]
    low, high, log, points = given
    for name, value in (("low", low), ("high", high)):  # None if it is missing
        if type(value) not in (int, float) or (kind is int and value % 1 != 0):
            raise UserError(f"{where}: {name} must be a {'whole ' * (kind is int)}number, not {value!r}")
        if not abs(value) <= FARTHEST:
            raise UserError(f"{where}: {name} must be between -{FARTHEST:g} and {FARTHEST:g}, not {value}")
    if not low < high:
        raise UserError(f"{where}: low ({low:g}) must be below high ({high:g})")
    if log not in (None, True, False):
        raise UserError(f"{where}: log must be true or false")
    if log and low <= 0:
        raise UserError(f"{where}: a logarithmic range begins above 0, not at {low:g}")
    if points is not None and (type(points) is not int or not 2 <= points <= MOST_TRIALS):
        raise UserError(f"{where}: points must be a whole number from 2 to {MOST_TRIALS}, not {points!r}")
    number = int if kind is int else float
    return Range(number(low), number(high), bool(log), kind is int, points or 0)
