"""Whether six network calls a sample (--preset fast) score as fifteen (--preset edp) do, in training and in acting.

    python benchmarks/fast.py TASK … [--out runs/fast] [--seeds 3] [--json results/fast.json]

TD3+BC with each preset on each task, at a short budget; the files of the tasks, or look-alikes, must be there. Runs
that have ended are not run again. The interval is of the mean difference over tasks and seeds (Student's t, paired by
seed: both presets begin with the same networks and see the same batches).
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats

from compare import SHORT_BUDGET, cell, train
from edp.files import write_json

PRESETS = ("edp", "fast")
EPISODES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("runs/fast"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows, differences = [], []
    print("| task | edp (15 calls) | fast (6 calls) | difference |\n| --- | --- | --- | --- |")
    for task in args.tasks:
        found = {}
        for preset in PRESETS:
            options = ["--preset", preset, *SHORT_BUDGET, "--seeds", str(args.seeds), "--episodes", str(EPISODES)]
            folder = args.out / f"{task.replace('/', '-')}_{preset}"
            found[preset] = train(task, options, folder).mean(axis=1).round(2).tolist()
            rows.append({"task": task, "preset": preset, "seeds": found[preset], "episodes": EPISODES})
            rows[-1]["command"] = ["edp", "train", task, *options]
        differences.append(np.subtract(found["fast"], found["edp"]))
        print(f"| {task} | {cell(found['edp'])} | {cell(found['fast'])} | {differences[-1].mean():+.1f} |", flush=True)
    every = np.concatenate(differences)
    low, high = stats.t.interval(0.95, len(every) - 1, every.mean(), stats.sem(every))
    print(f"fast less edp: {every.mean():+.1f} [{low:+.1f}, {high:+.1f}] over {len(every)} pairs of seeds")
    if args.json:
        write_json(args.json, {"difference": every.mean(), "interval": [low, high], "rows": rows})


if __name__ == "__main__":
    main()
