import os
from pathlib import Path

# Tests compile many small programs and run each for a moment: spend little time on making them fast.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()

import jax
import numpy as np
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")

SHARED = Path(os.environ.get("EDP_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def reference():
    """A file of genuine D4RL data, which cannot be part of this repository."""

    def find(name: str) -> Path:
        if not (SHARED / name).exists():
            pytest.skip(f"needs the reference file {name} (set EDP_REFERENCE_DATA to its folder)")
        return SHARED / name

    return find
