"""What a sweep costs beside its trials: trials with Ray, one at a time, against `edp train` one after another.

    python benchmarks/sweep_overhead.py --json results/sweep_overhead.json

Wants an idle machine. Each trial is a run of the default settings on the built-in data. Both ways train the same
settings in the same order, with all cores, after one run that fills the cache of compiled programs. Ray is started
before the clock.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from edp.files import keep_compiled_programs
from edp.sweeps.engines import open_ray
from edp.sweeps.plan import read_plan
from edp.sweeps.run import run_sweep, start_sweep

TRAIN = {"task": "local/hopper-medium-expert", "eval_every": 1_000_000, "episodes": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4000, help="of a trial: about 60 s on two cores")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    keep_compiled_programs()
    rates = [round(1e-3 * 0.9**number, 8) for number in range(options.trials)]
    with tempfile.TemporaryDirectory() as folder:
        train(1e-3, options.steps, Path(folder) / "first")
        start = time.perf_counter()
        each = [train(rate, options.steps, Path(folder) / f"run{rate}") for rate in rates]
        one_by_one = time.perf_counter() - start
        plan = read_plan(
            {
                "train": TRAIN | {"steps": options.steps},
                "space": {"lr": rates},
                "search": {"confirm": 0},
                "resources": {"cpus": os.cpu_count()},
            }
        )
        start = time.perf_counter()
        with open_ray(plan.resources.__dict__) as engine:
            started = time.perf_counter() - start
            start = time.perf_counter()
            results = run_sweep(plan, start_sweep(plan, Path(folder) / "sweep"), engine)
            with_ray = time.perf_counter() - start
    assert all(result.state == "finished" for result in results)
    content = {
        "trials": options.trials,
        "steps": options.steps,
        "cores": os.cpu_count(),
        "seconds_of_a_run": [round(seconds, 1) for seconds in each],
        "one_after_another_seconds": round(one_by_one, 1),
        "ray_start_seconds": round(started, 1),
        "with_ray_seconds": round(with_ray, 1),
        "ratio": round(with_ray / one_by_one, 3),
    }
    options.json.write_text(json.dumps(content, indent=2) + "\n")
    print(json.dumps(content, indent=2))


def train(rate: float, steps: int, out: Path) -> float:
    """The seconds of one command."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in TRAIN.items() if name != "task"]
    start = time.perf_counter()
    command = [sys.executable, "-m", "edp", "train", TRAIN["task"], *words]
    subprocess.run([*command, f"--lr={rate}", f"--steps={steps}", f"--out={out}", "--quiet"], check=True, stdout=-3)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
