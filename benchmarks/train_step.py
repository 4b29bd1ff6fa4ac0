"""How fast training steps are, against the machine's own matmul rate, measured in turns in one process.

    python benchmarks/train_step.py [--only td3bc,iql] [--rounds 5] [--json results/train_step.json]

At walker2d's shapes (17 observations, 6 actions), batch 256: variants of the paper's TD3+BC (K = 1000, 100k rows, one
seed, where nothing else is said), and every algorithm with every policy. Only matmul FLOPs count.
"""

import argparse
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from edp.algorithms import ALGORITHMS
from edp.bench.variants import Case, build_parts, training_case
from edp.cli.bench import measure_with_status, print_rates
from edp.errors import UserError
from edp.files import write_json
from edp.policies import POLICIES


def variants() -> dict[str, Callable[[], Case]]:
    def td3bc(rows: int = 100_000, seeds: int = 1, **options: Any) -> Case:
        return training_case(*build_parts("td3bc", "diffusion", **options), rows, seeds)

    return {
        "td3bc, K = 100": lambda: td3bc(diffusion_steps=100),
        "td3bc, K = 5": lambda: td3bc(diffusion_steps=5),
        "td3bc, 10k rows": lambda: td3bc(10_000),
        "td3bc, 5M rows": lambda: td3bc(5_000_000),
        "td3bc, 5 seeds": lambda: td3bc(seeds=5),
        "td3bc, fast": lambda: training_case(*build_parts("td3bc", "diffusion", "fast")),
    }


def pairs() -> dict[str, Callable[[], Case]]:
    """Every algorithm with every policy that it goes with, at their own settings."""
    cases = {}
    for name, policy in product(ALGORITHMS, POLICIES):
        with suppress(UserError):
            cases[f"{name} + {policy}"] = partial(training_case, *build_parts(name, policy))
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="cases whose name begins with one of these, comma-separated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    begins = tuple((values.only or "").split(","))
    cases = {(name, "training"): make() for name, make in (pairs() | variants()).items() if name.startswith(begins)}
    console = Console(width=140)
    result = measure_with_status(cases, values.rounds, console)
    print_rates(result, console)
    if values.json:
        write_json(values.json, result)


if __name__ == "__main__":
    main()
