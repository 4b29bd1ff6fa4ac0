"""Programs are compiled once: in a process, and, thanks to the cache, on a machine."""

import os
import subprocess
import sys

import jax
import pytest

from edp.cli import main
from edp.training.loop import Experiment

COMPILED = "/jax/core/compile/backend_compile_duration"
SMALL = ["--hidden", "16", "--critic-hidden", "16", "--calls", "2", "--eas", "2", "--episodes", "2"]


@pytest.fixture
def compilations():
    """How many programs have been compiled (or read from the cache) since."""
    count = [0]

    def listen(name, seconds, **_):
        count[0] += name == COMPILED

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield count
    jax.monitoring.unregister_event_duration_listener(listen)


def words(hopper_file, out):
    steps = ["--steps", "80", "--epoch-steps", "10", "--eval-every", "20"]
    return ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(out), *steps, *SMALL]


def test_after_the_first_evaluation_nothing_is_compiled(hopper_file, tmp_path, monkeypatch, compilations):
    seen, run = [], Experiment.run

    def watched(self, *args, **kwargs):
        for event in run(self, *args, **kwargs):
            seen.append((type(event).__name__, compilations[0]))
            yield event

    monkeypatch.setattr(Experiment, "run", watched)
    assert main(words(hopper_file, tmp_path / "run")) == 0
    counts = [count for name, count in seen if name == "Evaluation"]
    assert [name for name, _ in seen].count("Compiled") == 1
    assert len(counts) == 4
    assert counts[0] > 0
    assert seen[-1][1] == counts[0]


def test_a_second_process_compiles_nothing_large(hopper_file, tmp_path):
    """Every program that took long enough to be worth keeping was kept, and under the same name."""
    cache = tmp_path / "compiled"
    env = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    kept = [set(), set()]
    for run in range(2):
        command = [sys.executable, "-m", "edp", *words(hopper_file, tmp_path / str(run))]
        subprocess.run(command, check=True, capture_output=True, env=env)
        kept[run] = {entry.name for entry in cache.iterdir() if not entry.name.endswith("-atime")}
    assert any(name.startswith("jit_epoch") for name in kept[0])
    assert kept[1] == kept[0]
