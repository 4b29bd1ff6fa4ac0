import atexit
import os
import shutil
import tempfile
from pathlib import Path

# Tests compile many small programs and run each for a moment: spend little time on making them fast.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()

# The processes that share the work, and those that tests start, share what they compile.
if "EDP_TEST_COMPILED" not in os.environ:
    os.environ["EDP_TEST_COMPILED"] = tempfile.mkdtemp(prefix="edp-compiled-")
    atexit.register(shutil.rmtree, os.environ["EDP_TEST_COMPILED"], ignore_errors=True)
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ["EDP_TEST_COMPILED"]
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"

import h5py
import jax
import numpy as np
import pytest

from edp.cli import main

jax.config.update("jax_numpy_rank_promotion", "raise")

SHARED = Path(os.environ.get("EDP_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(autouse=True)
def few_programs():
    """JAX keeps compiled programs, mapped into memory, and a process has 65,530 mappings at most: after some seventy
    runs in one process, it dies. Let go of them before that."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 30_000:
        jax.clear_caches()


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


@pytest.fixture(scope="session")
def hopper_file(tmp_path_factory):
    """Random transitions with the sizes of Hopper's."""
    rng, n = np.random.default_rng(0), 200
    path = tmp_path_factory.mktemp("data") / "tiny.hdf5"
    with h5py.File(path, "w") as file:
        file["observations"] = rng.standard_normal((n, 11)).astype(np.float32)
        file["next_observations"] = rng.standard_normal((n, 11)).astype(np.float32)
        file["actions"] = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
        file["rewards"], file["terminals"] = rng.standard_normal(n), rng.random(n) < 0.02
        file["timeouts"] = np.zeros(n, bool)
    return path


@pytest.fixture
def fails(capsys):
    """The one line that a wrong command prints."""

    def run(*argv):
        capsys.readouterr()
        assert main([str(word) for word in argv]) == 2
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert len(lines) == 1, captured.err
        return lines[0]

    return run
