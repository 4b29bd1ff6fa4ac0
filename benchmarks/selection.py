"""How ways of selecting actions score on checkpoints of trained runs, from early to late ones.

    python benchmarks/selection.py RUN … [--steps 10000,50000] [--ways none,raw,relative] [--episodes 20] [--json FILE]

Every way acts with the same checkpoints from the same start states. Rows are added to the JSON file, in which each row
is one checkpoint and one way, with the mean score of every seed.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from edp.acting.evaluator import Evaluator
from edp.files import write_json
from edp.runs import load
from edp.runs.checkpoints import Checkpoints
from edp.runs.directory import Run

WAYS: dict[str, dict[str, Any]] = {
    "none": {"eas": 1},
    "raw": {"eas": 10, "eas_energy": "raw", "eas_temperature": 1.0},
    "raw-best": {"eas": 10, "eas_energy": "raw", "eas_temperature": 0.0},
    "relative": {"eas": 10, "eas_energy": "relative", "eas_temperature": 1.0},
    "relative-0.5": {"eas": 10, "eas_energy": "relative", "eas_temperature": 0.5},
    "relative-0.2": {"eas": 10, "eas_energy": "relative", "eas_temperature": 0.2},
    "relative-best": {"eas": 10, "eas_energy": "relative", "eas_temperature": 0.0},
    "relative-50": {"eas": 50, "eas_energy": "relative", "eas_temperature": 0.5},
    "online": {"eas": 1, "act_with": "online"},
    "still": {"eas": 1, "initial_noise": 0.0},
}
START = 10_000  # the first start state: none of those that training evaluates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--steps", default="", help="checkpoints, by comma (default: all)")
    parser.add_argument("--ways", default="none,raw,relative", help=", ".join(WAYS))
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    rows = json.loads(values.json.read_text(encoding="utf-8")) if values.json and values.json.exists() else []
    for path in values.runs:
        run = Run.open(path)
        spec = load.read_spec(run)
        steps = [int(step) for step in values.steps.split(",") if step] or Checkpoints(run.checkpoints).steps()
        shared = {"episodes": values.episodes, "env_seed": START, "act_with": "average"}
        for way in values.ways.split(","):
            evaluator = Evaluator(spec, spec.evaluation.with_values(**(shared | WAYS[way])))
            for step in steps:
                _, found = load.load_checkpoint(run, step)
                start = time.perf_counter()
                scores = spec.task.score(evaluator.roll_out(found.tree).returns)
                means = np.nanmean(scores, axis=1)
                row = {"run": path.name, "task": spec.task.name, "algorithm": spec.names[0], "step": step, "way": way}
                error = scores.std() / np.sqrt(scores.size)
                rows.append(row | {"episodes": values.episodes, "seeds": means.round(2).tolist()})
                seconds = time.perf_counter() - start
                print(f"{path.name:<20} {step:>8,}  {way:<14} {means.mean():6.1f} ± {error:4.1f}  ({seconds:.0f} s)")
                if values.json:
                    write_json(values.json, rows)


if __name__ == "__main__":
    main()
