"""What a loaded policy sees, what it sets and how it acts, in words."""

import math
from typing import TYPE_CHECKING

from edp.data.signals import TEXT, TIME, Input
from edp.errors import printable

if TYPE_CHECKING:
    from edp.acting.policy import LoadedPolicy

MOST = 40  # lines of a table


def describe_policy(policy: "LoadedPolicy") -> str:
    spec, signals = policy.spec, policy.signals
    algorithm, kind = spec.names
    changes = policy.limits.max_change or (math.inf,) * len(spec.units.low)
    limits = [
        f"{low:g} to {high:g}" + (f", by at most {change:g} from one call to the next" if change < math.inf else "")
        for low, high, change in zip(spec.units.low, spec.units.high, changes, strict=True)
    ]
    return "\n".join(
        [
            f"LoadedPolicy: {algorithm} + {kind}" + (f" ({printable(policy.title)})" if policy.title else ""),
            f"acts with: {describe_acting(policy)}",
            f"outside of the training data: {policy.outside if policy._guard else 'not checked'}",
            *describe_deadline(policy),
            *as_table("observation", "in the training data", observed(policy)),
            *as_table("action", "limits", list(zip(signals.actions, limits, strict=True))),
        ]
    )


def describe_deadline(policy: "LoadedPolicy") -> list[str]:
    deadline, fallback = policy.limits.deadline_ms, policy.limits.fallback
    if deadline is None:
        return []
    if not isinstance(fallback, tuple):
        return [f"deadline: {deadline:g} ms, then the last action"]
    action = (f"{printable(name)} {number:g}" for name, number in zip(policy.signals.actions, fallback, strict=True))
    return [f"deadline: {deadline:g} ms, then {', '.join(action)}"]


def describe_acting(policy: "LoadedPolicy") -> str:
    options, selection = policy.options, policy._actors.selection
    parts = [f"{options.act_with} parameters"]
    sampler = getattr(policy._actors.policies, "sampler", None)  # of a diffusion policy
    if sampler is not None:
        parts.append(f"{sampler.calls} network calls of {sampler.name}")
    if selection.candidates > 1:
        parts.append(f"EAS of {selection.candidates} actions (temperature {options.eas_temperature:g})")
    for name in ("policy_scale", "initial_noise"):
        if getattr(options, name) != 1:
            parts.append(f"{name} {getattr(options, name):g}")
    return ", ".join(parts)


def observed(policy: "LoadedPolicy") -> list[tuple[str, str]]:
    """Each input by name, with its range, its texts, or what is computed from its time."""

    def known(each: Input) -> str:
        signals, at = policy.signals, each.numbers.start
        if each.kind == TEXT:
            return ", ".join(repr(printable(text)) for text in signals.encoding.texts[each.name])
        if each.kind == TIME:
            return f"a time (seen as {', '.join(signals.encoding.calendar)})"
        return f"{signals.low[at]:g} to {signals.high[at]:g}" if signals.low else "unknown"

    return [(each.name, known(each)) for each in policy.signals.inputs()]


def as_table(left: str, right: str, rows: list[tuple[str, str]]) -> list[str]:
    shown = [(printable(name), text) for name, text in rows[:MOST]]
    width = max(len(name) for name in (left, *(name for name, _ in shown)))
    more = [f"  … and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return [f"{left:<{width}}    {right}", *(f"  {name:<{width}}  {text}" for name, text in shown), *more]
