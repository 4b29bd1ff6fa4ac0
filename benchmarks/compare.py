"""Every algorithm, with the diffusion policy and with a feed-forward one, on one task and one budget.

    python benchmarks/compare.py [--out runs/compare] [--json results/compare.json]

Each pair is one ``edp train``; pairs whose run has ended are not run again, so that it can be interrupted (remove
the folder of a run that was cut off). Prints the table of docs/results.md.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from edp.runs.directory import Run

TASK = "local/hopper-medium-expert"
# For ten thousand steps rather than two million: larger steps, and targets that follow faster.
BUDGET = ["--steps", "10000", "--lr", "0.001", "--tau", "0.05"]
SHORT = [*BUDGET, "--seeds", "2"]
CHEAP = ["--sampler", "dpm++", "--calls", "5", "--act-sampler", "dpm", "--act-calls", "15"]
DIRECT = ["--loss-weight", "0.1"]  # values that are still being learned count less against the diffusion loss
SHORT_BUDGET = [*BUDGET, *DIRECT]
FEW = ["--samples", "4"]

ROWS = {
    "BC": (["--algo", "bc"], "gaussian"),
    "10 %-BC": (["--preset", "bc-10"], "gaussian"),
    "TD3+BC": (["--algo", "td3bc"], "deterministic"),
    "CRR": (["--algo", "crr"], "gaussian"),
    "IQL": (["--algo", "iql"], "gaussian"),
    "AWAC": (["--algo", "awac"], "gaussian"),
    "AWR": (["--algo", "awr"], "gaussian"),
    "OneStep": (["--algo", "onestep"], "gaussian"),
    "CQL": (["--algo", "cql", *FEW], "gaussian"),
}


def jobs() -> dict[tuple[str, str], list[str]]:
    """The options of each pair."""
    pairs = {}
    for name, (options, feed_forward) in ROWS.items():
        direct = DIRECT if name in ("TD3+BC", "CQL") else []
        options = options if "--preset" in options else [*options, "--preset", "edp"]
        pairs[name, "diffusion"] = [*options, *direct, "--policy", "diffusion", *SHORT, *CHEAP]
        pairs[name, feed_forward] = [*options, "--policy", feed_forward, *SHORT]
    return pairs | {("DT", "transformer"): ["--algo", "dt", "--preset", "edp", *SHORT]}


def scores(folder: Path, options: list[str]) -> np.ndarray | None:
    """(seeds, episodes) at the end of the run, if it has ended."""
    if not (folder / "config.json").exists() or (run := Run.open(folder)).status["state"] != "finished":
        return None
    command = run.config["command"]
    if command[3 : 3 + len(options)] != options:
        sys.exit(f"{folder} was made with other options ({' '.join(command)}): remove it, or choose another --out")
    return np.array(run.evaluations()[0]["scores"])


def train(task: str, options: list[str], folder: Path) -> np.ndarray:
    """The scores of a run, which is started or resumed unless it has finished."""
    if scores(folder, options) is None:
        started = ["--resume", str(folder)] if (folder / "config.json").exists() else None
        words = started or [task, *options, "--out", str(folder)]
        subprocess.run([sys.executable, "-m", "edp", "train", *words], check=True)
    found = scores(folder, options)
    assert found is not None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/compare"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--finished", action="store_true", help="report what is finished, and train nothing")
    args = parser.parse_args()
    results = []
    for (name, policy), options in jobs().items():
        folder = args.out / f"{name}_{policy}".replace(" ", "").replace("%", "").replace("+", "").lower()
        if args.finished and scores(folder, options) is None:
            continue
        found = train(TASK, options, folder)
        row = {
            "algorithm": name,
            "policy": policy,
            "seeds": found.mean(axis=1).round(1).tolist(),
            "episodes": found.shape[1],
            "last_metrics": json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])[
                "metrics"
            ],
            "command": ["edp", "train", TASK, *options],
        }
        results.append(row)
        if args.json:
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(table(results))


def table(results: list[dict]) -> str:
    lines = ["| algorithm | diffusion | feed-forward |", "| --- | --- | --- |"]
    cells = {(row["algorithm"], row["policy"] == "diffusion"): cell(row["seeds"]) for row in results}
    for name in dict.fromkeys(row["algorithm"] for row in results):
        lines.append(f"| {name} | {cells.get((name, True), '–')} | {cells.get((name, False), '–')} |")
    return "\n".join(lines)


def cell(seeds: list[float]) -> str:
    return f"{np.mean(seeds):.1f} ({', '.join(f'{seed:.1f}' for seed in seeds)})"


if __name__ == "__main__":
    main()
