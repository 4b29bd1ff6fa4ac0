"""Values of policies that were estimated from the data, and the verdict on them: rows of ``offline.jsonl``."""

from typing import Any, NamedTuple

from edp.runs.rows import Row
from edp.runs.scores import is_number

WORDS = ("better", "worse", "cannot tell")
LONGEST, MOST_OPERATORS = 2000, 40  # characters of a text, and operators, that are shown


class Verdict(NamedTuple):
    """Whether a policy is better than the behaviour in the log. Numbers that the row does not have are None."""

    sentence: str
    word: str  # one of ``WORDS``, or empty
    policy: float | None
    log: float | None
    difference: tuple[float, float, float] | None  # low, mean, high
    unit: str
    operators: dict[str, float]


class OfflineValue(NamedTuple):
    """The value of one checkpoint."""

    step: int
    values: list[float | None]  # of each seed
    options: Any  # of the estimate
    verdict: Verdict | None


def offline_values(rows: list[Row]) -> list[OfflineValue]:
    """Return the values that can be compared with the last one, in the order of steps.

    Values with other options than those of the last row are left out. Of several values of a step, the last counts.
    """
    found = [
        OfflineValue(row["step"], row["values"], row.get("options"), read_verdict(row.get("verdict"))) for row in rows
    ]
    comparable = {each.step: each for each in found if each.options == found[-1].options}
    return [comparable[step] for step in sorted(comparable)]


def read_verdict(content: Any) -> Verdict | None:
    """Read a verdict; None if there is no sentence. Any other part may be missing or malformed."""
    if not isinstance(content, dict) or not isinstance(content.get("sentence"), str) or not content["sentence"]:
        return None
    number = lambda name: known_number(content.get(name))  # noqa: E731
    text = lambda name: str(content.get(name) or "")[:LONGEST]  # noqa: E731
    parts, operators = content.get("difference"), content.get("operators")
    ends = [known_number(part) for part in parts] if isinstance(parts, list) and len(parts) == 3 else [None]
    return Verdict(
        sentence=text("sentence"),
        word=text("word") if content.get("word") in WORDS else "",
        policy=number("policy"),
        log=number("log"),
        difference=None if None in ends else tuple(ends),  # pyright: ignore
        unit=text("unit"),
        operators={
            str(name): value
            for name, each in (list(operators.items())[:MOST_OPERATORS] if isinstance(operators, dict) else ())
            if (value := known_number(each)) is not None
        },
    )


def known_number(value: Any) -> float | None:
    return float(value) if is_number(value) and abs(value) < 1e300 else None
