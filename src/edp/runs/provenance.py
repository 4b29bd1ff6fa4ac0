"""What a run's numbers may depend on besides its options: versions of packages, the commit, the devices."""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import edp

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "orbax-checkpoint", "gymnasium", "mujoco", "numpy")


def provenance() -> dict[str, Any]:
    """Recorded when a run starts and when it is resumed."""
    return {
        "packages": {"edp": edp.__version__} | {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "commit": source_commit(),
    }


def source_commit() -> str | None:
    """The commit of the source if it is a checkout, with a mark if files have changed since."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def device_name() -> str:
    """The devices that train, for example ``1 × cpu``."""
    import jax

    devices, processes = jax.devices(), jax.process_count()
    return f"{len(devices)} × {devices[0].device_kind}" + f" in {processes} processes" * (processes > 1)
