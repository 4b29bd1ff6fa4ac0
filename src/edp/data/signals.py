"""The signals of a policy: the name of each number that it sees and sets, and where they were in the training data.

They are kept in the run's config, in the units of the log.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

NUMBER, TEXT, TIME = "number", "text", "time"  # kinds of inputs


@dataclass(frozen=True)
class Encoding:
    """How the cells of a table's row become an observation. Without texts and a calendar, each cell is a number."""

    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of columns that became columns of 0 and 1
    time_column: str = ""
    time_format: str = ""
    calendar: tuple[str, ...] = ()  # sine and cosine of these are the last numbers of an observation
    unused: tuple[str, ...] = ()  # the names of the table's other columns
    filled: tuple[str, ...] = ()  # observations whose empty cells have the number of the row before
    empty: tuple[str, ...] = ()  # texts that mean an empty cell
    zoneless: bool = False  # whether the times are known to have no zone


class Input(NamedTuple):
    """A cell that makes one or more numbers of an observation."""

    name: str
    kind: str
    numbers: slice  # of the observation


@dataclass(frozen=True)
class Signals:
    """Names and ranges of observations, and names of actions. (The ranges of actions are those of the units.)"""

    observations: tuple[str, ...]
    actions: tuple[str, ...]
    low: tuple[float, ...] = ()  # of each observation in the rows that were learned from; empty in older runs
    high: tuple[float, ...] = ()
    distance: float = 0.0  # see edp.acting.reference; 0 if it is unknown
    reference_sha256: str = ""  # of the file with some rows of the training data
    encoding: Encoding = Encoding()

    def inputs(self) -> list[Input]:
        """The cells from which an observation is made, in the order of its numbers."""
        found, at, encoding = [], 0, self.encoding
        calendar = len(self.observations) - 2 * len(encoding.calendar)
        firsts = {f"{name}={texts[0]}": name for name, texts in encoding.texts.items()}
        while at < calendar:
            name = firsts.get(self.observations[at])
            width = len(encoding.texts[name]) if name else 1
            found.append(Input(name or self.observations[at], TEXT if name else NUMBER, slice(at, at + width)))
            at += width
        if encoding.calendar:
            found.append(Input(encoding.time_column, TIME, slice(calendar, len(self.observations))))
        return found

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any, dims: tuple[int, int]) -> "Signals":
        """Raises TypeError or ValueError if it is not what ``to_json`` gives for observations of such sizes."""
        encoding = dict(content["encoding"])
        encoding["texts"] = {name: names_from(texts) for name, texts in encoding["texts"].items()}
        encoding = {"filled": (), "empty": (), "zoneless": False} | encoding  # older runs lack them
        for name in ("calendar", "unused", "filled", "empty"):
            encoding[name] = names_from(encoding[name])
        pairs = {name: tuple(float(number) for number in content[name]) for name in ("low", "high")}
        names = {name: names_from(content[name]) for name in ("observations", "actions")}
        found = cls(**content | names | pairs | {"encoding": Encoding(**encoding)})
        texts = (found.reference_sha256, found.encoding.time_column, found.encoding.time_format)
        if not all(isinstance(text, str) for text in texts) or not isinstance(found.distance, float | int):
            raise TypeError("signals")
        widths = [len(found.observations), len(found.actions), len(found.low), len(found.high)]
        if widths[:2] != [*dims] or widths[2:] not in ([dims[0]] * 2, [0, 0]) or not all(found.encoding.texts.values()):
            raise ValueError("signals of another size")
        if sum(each.numbers.stop - each.numbers.start for each in found.inputs()) != dims[0]:
            raise ValueError("signals whose texts do not fit")
        return found


def names_from(content: Any) -> tuple[str, ...]:
    if not isinstance(content, list | tuple) or not all(isinstance(name, str) for name in content):
        raise TypeError("names are a list of texts")
    return tuple(content)


def name_signals(
    observations: tuple[str, ...], actions: tuple[str, ...], encoding: Encoding, dims: tuple[int, int]
) -> Signals:
    """Signals without ranges. Names that are missing or not unique become ``observation_0``, ``action_0``, …"""
    if not is_named(observations, dims[0]):
        observations, encoding = numbered("observation", dims[0]), Encoding()
    return Signals(
        observations, actions if is_named(actions, dims[1]) else numbered("action", dims[1]), encoding=encoding
    )


def is_named(names: tuple[str, ...], width: int) -> bool:
    return len(names) == len(set(names)) == width


def numbered(kind: str, width: int) -> tuple[str, ...]:
    return tuple(f"{kind}_{number}" for number in range(width))
