"""Names and ranges of what a policy sees and sets, as far as its run and its data know them."""

from typing import Any, NamedTuple

from edp.acting.policy import LoadedPolicy
from edp.data.formats.times import parse_duration
from edp.data.log import Log
from edp.errors import UserError


class Signals(NamedTuple):
    observations: tuple[str, ...]  # names
    actions: tuple[str, ...]
    observed_range: tuple[tuple[float, ...], tuple[float, ...]] | None  # of the training data: lowest, highest
    seconds: float | None  # between two actions


def read_signals(policy: LoadedPolicy, log: Log | None = None) -> Signals:
    """What the run says, otherwise its data; names are ``observation_0``, …, ``action_0``, … if neither has any."""
    known: Any = getattr(policy.spec, "signals", None)
    obs, act = policy.dims
    low, high = (tuple(getattr(known, side, ())) for side in ("low", "high"))
    return Signals(
        first_names(obs, "observation", getattr(known, "observations", ()), log.observation_names if log else ()),
        first_names(act, "action", getattr(known, "actions", ()), policy.spec.task.action_names),
        (low, high) if len(low) == len(high) == obs else None,
        control_period(policy),
    )


def first_names(count: int, kind: str, *known: tuple[str, ...]) -> tuple[str, ...]:
    """The first names of which there are as many as needed."""
    numbered = tuple(f"{kind}_{i}" for i in range(count))
    return next((tuple(names) for names in known if len(names) == count), numbered)


def control_period(policy: LoadedPolicy) -> float | None:
    """The time between rows of the training data, if rows were averaged over a given time."""
    columns = policy.origin.run.config.get("columns") if policy.origin else None
    try:
        return parse_duration(str(columns.get("every") or ""), "every") or None if isinstance(columns, dict) else None
    except UserError:
        return None
