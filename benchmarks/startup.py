"""How long `edp train` takes from its start to its first training step, with an empty cache and with a warm one.

    python benchmarks/startup.py [--json results/startup.json]

TD3+BC with the paper's networks on 100,000 transitions of Hopper's shapes in a file of D4RL's layout.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from edp.bench.variants import describe_machine
from edp.data.formats.hdf5 import write_hdf5
from edp.files import write_json

ROWS, OBS, ACT, WARM = 100_000, 11, 3, 5


def make(path: Path) -> None:
    rng = np.random.default_rng(0)
    ends = np.arange(1, ROWS + 1) % 1000 == 0
    arrays = {"observations": rng.standard_normal((ROWS, OBS), np.float32), "rewards": rng.random(ROWS, np.float32)}
    arrays |= {"actions": rng.uniform(-1, 1, (ROWS, ACT)).astype(np.float32)}
    write_hdf5(path, arrays | {"terminals": np.zeros(ROWS, bool), "timeouts": ends}, {})


def start(data: Path, out: Path, cache: Path) -> float:
    """Seconds to the line that says that the program is compiled; the first step begins then."""
    words = ["train", "hopper-medium-v2", "--preset", "edp", "--data", str(data), "--out", str(out)]
    command = [sys.executable, "-m", "edp", *words]
    env = os.environ | {"EDP_CACHE": str(cache), "PYTHONUNBUFFERED": "1"}
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("compiled"):
                took = time.perf_counter() - began
                process.kill()
                return took
    raise RuntimeError("edp train ended before its first step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "data.hdf5")
        times = [start(folder / "data.hdf5", folder / f"run{i}", folder / "cache") for i in range(1 + WARM)]
    cold, warm = times[0], times[1:]
    print(f"to the first step: {cold:.1f} s, from then on {statistics.median(warm):.1f} s", end=" ")
    print(f"({min(warm):.1f} to {max(warm):.1f})")
    if values.json:
        write_json(values.json, {"about": describe_machine(), "cold_seconds": cold, "warm_seconds": warm})


if __name__ == "__main__":
    main()
