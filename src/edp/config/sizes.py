"""Sizes that no memory can hold, refused by arithmetic before they are tried.

Every number here is a lower bound of what a run needs: what passes may still be too large.
"""

from itertools import pairwise
from typing import Any, NamedTuple

from edp.devices.processes import process_count
from edp.errors import UserError
from edp.memory import show_size, total_memory

FLOAT = 4  # bytes
COPIES = 4  # of a network's parameters: the network, its target, and Adam's two averages
TABLES = 5 * 8  # bytes of a schedule's float64 tables, for each noise level
KEYS = 8  # bytes of the random key of a step


class Need(NamedTuple):
    """Bytes that something needs, and the options that decide how many."""

    what: str
    size: int
    options: tuple[str, ...]


def check_sizes(algorithm: Any, policy: Any, training: Any, evaluation: Any) -> None:
    """Refuse a run that needs more memory than this machine has."""
    values = {key: value for part in (algorithm, policy, training, evaluation) for key, value in vars(part).items()}
    refuse_large([*network_needs(algorithm, values), *batch_needs(values), acting_need(values)], values)


def check_acting_sizes(policy: Any, evaluation: Any) -> None:
    """The same for a policy that acts."""
    values = {**vars(policy), **vars(evaluation)}
    refuse_large([acting_need(values)], values)


def refuse_large(needs: list[Need], values: dict[str, Any]) -> None:
    there = total_memory()
    for need in needs:
        if need.size > there:
            chosen = [name for name in need.options if values.get(name, 0) not in (0, 1)]
            given = " and ".join(f"`{name}={option_text(values[name])}`" for name in chosen)
            sizes = f"{show_size(need.size)} of memory, and this machine has {show_size(there)}"
            raise UserError(f"{given}: {need.what} would need at least {sizes}: use smaller ones")


def option_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def weights(widths: tuple[int, ...]) -> int:
    """The number of weights between hidden layers."""
    return sum(before * after for before, after in pairwise(widths)) + sum(widths)


def network_needs(algorithm: Any, values: dict[str, Any]) -> list[Need]:
    each = COPIES * FLOAT * -(-values["seeds"] // process_count())
    hidden, critic, critics = (values.get(name, ()) for name in ("hidden", "critic_hidden", "critics"))
    wide = 12 * values.get("width", 0) ** 2 * values.get("layers", 0)  # of a transformer
    needs = [Need("the policy", each * (weights(hidden) + wide), ("seeds", "hidden", "width", "layers"))]
    if algorithm.values_actions:
        options = ("seeds", "critic_hidden", "critics")
        needs.append(Need("the critics", each * critics * weights(critic), options))
    return [*needs, Need("the noise levels", TABLES * values.get("diffusion_steps", 0), ("diffusion_steps",))]


def batch_needs(values: dict[str, Any]) -> list[Need]:
    rows = values["batch_size"]
    actions = max(1, values.get("samples", 0), values.get("max_q_backup", 0))
    steps = min(values["epoch_steps"], values["steps"])
    return [
        Need("a batch", FLOAT * rows * actions * widest(values), ("batch_size", "samples", "max_q_backup", "context")),
        Need("the random keys of an epoch", KEYS * steps * values["seeds"], ("epoch_steps", "seeds")),
    ]


def acting_need(values: dict[str, Any]) -> Need:
    return Need("choosing an action", FLOAT * values["eas"] * widest(values), ("eas",))


def widest(values: dict[str, Any]) -> int:
    """The numbers of one row in the widest layer."""
    window = values.get("context", 1) * values.get("width", 1)
    return max(window, *values.get("hidden", ()), *values.get("critic_hidden", ()), 1)
