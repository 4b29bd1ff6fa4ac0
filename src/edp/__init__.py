"""Efficient diffusion policies for offline reinforcement learning."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edp.deploy import LoadedPolicy, load_policy

__all__ = ["LoadedPolicy", "load_policy"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from edp import deploy  # not before it is needed: it imports JAX

    return getattr(deploy, name)
