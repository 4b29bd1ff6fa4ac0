"""What a control loop asks of actions: how far they may change, and when they must be there."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from edp.data.signals import Signals
from edp.data.units import Numbers, Units
from edp.errors import UserError, counted, printable, unknown

HOLD = "hold"  # the fallback that gives the last action again


class Limits(NamedTuple):
    """Limits of a loaded policy. Numbers are in the units of the log."""

    max_change: Numbers | None = None  # of each action from one call to the next, Inf where there is no limit
    deadline_ms: float | None = None  # milliseconds after which a call returns the fallback
    fallback: Numbers | str | None = None  # an action, or HOLD; None without a deadline

    def to_json(self) -> dict[str, Any]:
        """With None where there is no limit, because JSON has no Inf."""
        change = self.max_change and [None if number == np.inf else number for number in self.max_change]
        fallback = list(self.fallback) if isinstance(self.fallback, tuple) else self.fallback
        return {"max_change": change, "deadline_ms": self.deadline_ms, "fallback": fallback}

    def limit_change(self, wanted: np.ndarray, last: np.ndarray, units: Units) -> np.ndarray:
        """The actions (rows), brought near to the last ones. Where the last one is NaN, there is no limit."""
        if self.max_change is None:
            return wanted
        *_, low, high = units.arrays
        change = np.array(self.max_change, np.float32)
        near = np.fmin(np.fmax(wanted, last - change), last + change)  # fmin and fmax ignore NaN
        return np.minimum(np.maximum(near, low), high)


def make_limits(
    signals: Signals, units: Units, max_change: Any = None, deadline_ms: Any = None, fallback: Any = None
) -> Limits:
    """Limits as ``load_policy`` takes them, checked: numbers, sequences, or mappings from names of actions."""
    if max_change is not None:
        numbers = by_action("max_change", max_change, signals.actions, missing=np.inf)
        if not min(numbers) > 0:
            raise UserError(f"`max_change` must be above 0, not {min(numbers):g}")
        max_change = numbers if min(numbers) < np.inf else None
    if deadline_ms is None:
        if fallback is not None:
            raise UserError("`fallback` is what is returned after `deadline_ms`: give that, too, or leave it out")
        return Limits(max_change)
    if not is_number(deadline_ms) or not 0 < deadline_ms < np.inf:
        raise UserError(f"`deadline_ms` must be a number of milliseconds above 0, not {deadline_ms!r}")
    return Limits(max_change, float(deadline_ms), read_fallback(fallback, signals, units))


def read_fallback(fallback: Any, signals: Signals, units: Units) -> Numbers | str:
    if fallback is None or isinstance(fallback, str):
        if fallback not in (None, HOLD):
            raise UserError(f"`fallback` must be {HOLD!r} or an action, not {fallback!r}")
        return HOLD
    action = by_action("fallback", fallback, signals.actions)
    for name, number, a, b in zip(signals.actions, action, units.low, units.high, strict=True):
        if not a <= number <= b:
            raise UserError(f"`fallback` is {number:g} for {printable(name)!r}, which is not within {a:g} to {b:g}")
    return action


def by_action(option: str, given: Any, names: tuple[str, ...], missing: float | None = None) -> Numbers:
    """A number for each action. With ``missing``, some may be left out, and one number may stand for all actions."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise unknown(f"action in `{option}`", printable(str(name)), map(printable, names))
        left_out = [name for name in names if name not in given]
        if left_out and missing is None:
            raise UserError(f"`{option}` has no {printable(left_out[0])!r}: give a number for each action")
        given = [given.get(name) for name in names]
    elif is_number(given) and (missing is not None or len(names) == 1):
        given = [given] * len(names)
    numbers: list[Any] = [missing if number is None else number for number in listed(option, given)]
    if len(numbers) != len(names):
        raise UserError(f"`{option}` has {counted(len(numbers), 'number')}, and there are {len(names)} actions")
    for name, number in zip(names, numbers, strict=True):
        if not is_number(number) or np.isnan(number):
            raise UserError(f"`{option}` must be a number for {printable(name)!r}, not {number!r}")
    return tuple(map(float, numbers))


def listed(option: str, given: Any) -> list[Any]:
    found = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(found, list | tuple):
        raise UserError(f"`{option}` must be numbers, or a mapping from names of actions to numbers, not {given!r}")
    return list(found)


def is_number(value: Any) -> bool:
    return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
