import atexit
import inspect
import os
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

# Tests compile many small programs and run each for a moment: spend little time on making them fast.
FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}".strip()

# Tests see neither the user's data nor the user's cache, and leave nothing behind.
if "EDP_TEST_HOME" not in os.environ:
    os.environ["EDP_TEST_HOME"] = tempfile.mkdtemp(prefix="edp-home-")
    atexit.register(shutil.rmtree, os.environ["EDP_TEST_HOME"], ignore_errors=True)
os.environ["HOME"] = os.environ["USERPROFILE"] = os.environ["EDP_TEST_HOME"]
for name in ("EDP_DATA", "EDP_CACHE", "EDP_SERVER", "MINARI_DATASETS_PATH", "XDG_CACHE_HOME"):
    os.environ.pop(name, None)

# The processes that share the work, and those that tests start, share what they compile.
if "EDP_TEST_COMPILED" not in os.environ:
    os.environ["EDP_TEST_COMPILED"] = tempfile.mkdtemp(prefix="edp-compiled-")
    atexit.register(shutil.rmtree, os.environ["EDP_TEST_COMPILED"], ignore_errors=True)
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ["EDP_TEST_COMPILED"]
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"

from jaxtyping import install_import_hook

# Check shapes and types of the mathematics at run time.
install_import_hook(
    ["edp.algorithms", "edp.batches", "edp.diffusion", "edp.networks", "edp.policies"], "beartype.beartype"
)

import h5py
import jax
import numpy as np
import pytest

from edp.algorithms import ALGORITHMS
from edp.cli import main
from edp.policies import POLICIES
from edp.training.epoch import PROGRAMS
from support import small_run

# Options may have wrong types until ``check_options`` refuses them, with a message for users.
for options in (*ALGORITHMS.values(), *POLICIES.values()):
    options.__init__ = inspect.unwrap(options.__init__)

jax.config.update("jax_numpy_rank_promotion", "raise")

SHARED = Path(os.environ.get("EDP_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "data"))


TESTS = count(1)


@pytest.fixture(autouse=True)
def few_programs():
    """JAX keeps compiled programs, mapped into memory, and a process has 65,530 mappings at most: after some seventy
    runs in one process, it dies. Let go of them before that. Counting many mappings takes time: not after each test."""
    yield
    maps = Path("/proc/self/maps")
    if next(TESTS) % 10 == 0 and maps.exists() and maps.read_bytes().count(b"\n") > 30_000:
        jax.clear_caches()
        PROGRAMS.clear()


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


@pytest.fixture(scope="session")
def whole(hopper_file, tmp_path_factory):
    """A small run that nothing happened to (see ``support.small_run``)."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    subprocess.run(small_run.command(*small_run.train(hopper_file, out)), check=True, capture_output=True)
    return out


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of the small run, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


@pytest.fixture
def fails(capsys):
    """Runs a wrong command. Returns the one line that it prints."""

    def run(*argv):
        capsys.readouterr()
        assert main([str(word) for word in argv]) == 2
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert len(lines) == 1, captured.err
        return lines[0]

    return run
