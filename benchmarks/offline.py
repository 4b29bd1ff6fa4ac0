"""How well fitted Q evaluation, from the data alone, ranks policies that differ in everything.

    python benchmarks/offline.py RUN … [--json results/offline.json]

The runs must be of one task (those that benchmarks/compare.py leaves in runs/compare, say). Every seed of every run is
a policy; its true score is the run's last evaluation. Prints both and Spearman's rank correlation.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from edp.acting import fqe
from edp.acting.actors import Actors
from edp.data.locate import find_task_file
from edp.runs import load
from edp.runs.directory import Run
from edp.runs.scores import curve_from_evaluations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    options, problem, rows = fqe.FQEOptions(), None, []
    for path in values.runs:
        folder = Run.open(path)
        spec, found = load.load_checkpoint(folder)
        if spec.policy.reads_histories:
            print(f"{path.name}: a policy that reads histories, passed over", file=sys.stderr)
            continue
        if problem is None:
            problem = fqe.prepare_problem(
                load.read_run_data(folder, spec, load.locate_run_data(folder, spec, find_task_file)), options
            )
        start = time.perf_counter()
        found_values = fqe.value_policies(Actors.from_states(spec, spec.evaluation, found.tree), problem, options)
        curve = curve_from_evaluations(folder.training_evaluations())
        assert curve is not None
        scores = curve.scores[-1]
        config = folder.config
        for i, (value, score) in enumerate(zip(found_values, scores, strict=True)):
            best = f", best {spec.data.best:.0%}" if spec.data.best < 1 else ""
            name = f"{config['algorithm']['name']} + {config['policy']['name']}{best}"
            rows.append({"method": name, "seed": spec.training.seed + i, "score": score, "value": float(value)})
            print(f"{name:<32} seed {i}  score {score:6.1f}  value {value:8.1f}", flush=True)
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    pairs = np.array([(row["score"], row["value"]) for row in rows])
    result = {
        "task": spec.task.name,  # pyright: ignore[reportPossiblyUnboundVariable]
        "options": asdict(options),
        "rank_correlation": float(spearmanr(*pairs.T)[0]),
        "best_by_value": float(pairs[np.argmax(pairs[:, 1]), 0]),
        "best": float(pairs[:, 0].max()),
        "mean": float(pairs[:, 0].mean()),
        "policies": sorted(rows, key=lambda row: row["score"]),
    }
    print(f"rank correlation {result['rank_correlation']:.2f} over {len(rows)} policies")
    if values.json:
        values.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
