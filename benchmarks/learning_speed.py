"""How fast one seed of each run in results/recipe trains when it has the whole machine.

    python benchmarks/learning_speed.py [--steps 4000] [--rounds 2] [--json results/learning_speed.json]

Each run's own command is started again with one seed and few steps. The speed is the median over its epochs, and the
rounds go through all runs in turn. Wants an idle machine, and the runs' data.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from edp.files import write_json
from edp.runs.provenance import provenance

ROOT = Path(__file__).parent.parent
CHANGED = ("--steps", "--seeds", "--eval-every", "--out")  # options of the runs that this benchmark sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, default=ROOT / "results" / "learning_speed.json")
    values = parser.parse_args()
    configs = {
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "results" / "recipe").glob("*/config.json"))
    }
    speeds: dict[str, list[float]] = {name: [] for name in configs}
    for _ in range(values.rounds):
        for name, config in configs.items():
            speeds[name].append(train(config["command"], values.steps))
            print(f"{name:<12} {speeds[name][-1]:7.1f} steps/s", flush=True)
    about = {"cores": len(os.sched_getaffinity(0)), "steps": values.steps} | provenance()
    write_json(values.json, {"about": about, "steps_per_second": speeds})


def train(command: list[str], steps: int) -> float:
    """The median speed over the epochs of a short run."""
    words = without_options(command[2:])  # of "edp train …"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        options = ["--steps", str(steps), "--eval-every", str(steps), "--episodes", "1", "--out", str(out)]
        run = subprocess.run([sys.executable, "-m", "edp", "train", *words, *options], capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{shlex.join(words)}: {run.stderr.strip()}")
        rows = [json.loads(line) for line in (out / "times.jsonl").read_text(encoding="utf-8").splitlines()]
    return statistics.median(row["steps_per_second"] for row in rows if "steps_per_second" in row)


def without_options(words: list[str]) -> list[str]:
    """The words of a command without the options in ``CHANGED`` and their values."""
    kept, skip = [], False
    for word in words:
        if not skip and word not in CHANGED:
            kept.append(word)
        skip = not skip and word in CHANGED
    return kept


if __name__ == "__main__":
    main()
