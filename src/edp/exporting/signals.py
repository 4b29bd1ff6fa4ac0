"""Names and ranges of what a policy sees and sets, as far as its run knows them."""

from typing import Any, NamedTuple

from edp.acting.policy import LoadedPolicy
from edp.data.formats.times import parse_duration
from edp.errors import UserError


class Signals(NamedTuple):
    observations: tuple[str, ...]  # names
    actions: tuple[str, ...]
    observed_range: tuple[tuple[float, ...], tuple[float, ...]] | None  # of the training data: lowest, highest
    seconds: float | None  # between two actions


def read_signals(policy: LoadedPolicy) -> Signals:
    """Names are ``observation_0``, …, ``action_0``, … for runs that have none."""
    known: Any = getattr(policy.spec, "signals", None)
    obs, act = policy.dims
    low, high = (tuple(getattr(known, side, ()) or ()) for side in ("low", "high"))
    return Signals(
        names(getattr(known, "observations", ()), "observation", obs),
        names(getattr(known, "actions", ()), "action", act),
        (low, high) if len(low) == len(high) == obs else None,
        control_period(policy),
    )


def names(given: Any, kind: str, count: int) -> tuple[str, ...]:
    return tuple(given) if len(given) == count else tuple(f"{kind}_{i}" for i in range(count))


def control_period(policy: LoadedPolicy) -> float | None:
    """The time between rows of the training data, if rows were averaged over a given time."""
    columns = policy.origin.run.config.get("columns") if policy.origin else None
    try:
        return parse_duration(str(columns.get("every") or ""), "every") or None if isinstance(columns, dict) else None
    except UserError:
        return None
