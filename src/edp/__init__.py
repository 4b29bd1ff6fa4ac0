"""Efficient diffusion policies for offline reinforcement learning."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from edp.acting.load import load_policy
    from edp.acting.policy import LoadedPolicy
    from edp.api import fit, open_log, sweep, write
    from edp.data.arrays import from_arrays, from_episodes
    from edp.data.synthesis.record import Recorder, record
    from edp.errors import UserError
    from edp.exporting.export import export

__all__ = [
    "LoadedPolicy",
    "Recorder",
    "UserError",
    "export",
    "fit",
    "from_arrays",
    "from_episodes",
    "load_policy",
    "open_log",
    "record",
    "sweep",
    "write",
]
PLACES = {
    "edp.api": ("fit", "open_log", "sweep", "write"),
    "edp.data.arrays": ("from_arrays", "from_episodes"),
    "edp.data.synthesis.record": ("Recorder", "record"),
    "edp.acting.load": ("load_policy",),
    "edp.acting.policy": ("LoadedPolicy",),
    "edp.errors": ("UserError",),
    "edp.exporting.export": ("export",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, because importing JAX is slow."""
    if name == "__version__":
        return import_module("importlib.metadata").version("edp-rl")
    for module, names in PLACES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
