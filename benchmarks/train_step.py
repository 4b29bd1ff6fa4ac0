"""How fast training steps are, against the machine's own matmul rate, measured in turns in one process.

    python benchmarks/train_step.py [--json results/train_step.json]

At walker2d's shapes (17 observations, 6 actions), batch 256. Only matmul FLOPs count.
"""

import argparse
import json
import os
import platform
import statistics
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

from edp import train
from edp.algorithms import TD3BC
from edp.policies import DeterministicConfig, DiffusionConfig
from edp.types import Transitions
from flops import gemm, matmul_flops, seconds

OBS, ACT, BATCH, STEPS, ROUNDS = 17, 6, 256, 50, 7


def data(rows: int) -> Transitions:
    keys = jax.random.split(jax.random.key(0), 4)
    obs, next_obs = jax.random.normal(keys[0], (rows, OBS)), jax.random.normal(keys[1], (rows, OBS))
    action = jax.random.uniform(keys[2], (rows, ACT), minval=-1, maxval=1)
    return Transitions(obs, action, jax.random.normal(keys[3], (rows,)), next_obs, jnp.ones(rows))


def case(policy, rows: int, seeds: int = 1):
    """A function that runs STEPS training steps, and their matmul FLOPs."""
    algorithm, transitions, keys = TD3BC(), data(rows), train.seed_keys(range(seeds))
    init = lambda key: algorithm.init(policy.build(OBS, ACT, key), OBS, ACT, key)  # noqa: E731
    states = train.init_states(init, keys)
    batch = jax.tree.map(lambda column: column[:BATCH], transitions)
    flops = seeds * matmul_flops(algorithm.update, jax.tree.map(lambda leaf: leaf[0], states), batch, keys[0])

    def run():
        nonlocal states
        states, metrics = train.epoch(algorithm.update, states, transitions, keys, steps=STEPS, batch_size=BATCH)
        return metrics

    return run, STEPS * flops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    edp = partial(DiffusionConfig, calls=15)
    cases = {
        "GEMM 256³": gemm(),
        "edp K=1000, 100k rows": case(edp(diffusion_steps=1000), 100_000),
        "edp K=100, 100k rows": case(edp(diffusion_steps=100), 100_000),
        "edp K=5, 100k rows": case(edp(diffusion_steps=5), 100_000),
        "edp K=1000, 10k rows": case(edp(diffusion_steps=1000), 10_000),
        "edp K=1000, 2M rows": case(edp(diffusion_steps=1000), 2_000_000),
        "edp K=1000, 5 seeds": case(edp(diffusion_steps=1000), 100_000, seeds=5),
        "edp, 5 calls of dpm++": case(DiffusionConfig(sampler="dpm++", calls=5), 100_000),
        "feed-forward TD3+BC": case(DeterministicConfig(), 100_000),
    }
    times = {name: [] for name in cases}
    for run, _ in cases.values():
        seconds(run)  # compiles
    for _ in range(ROUNDS):
        for name, (run, _) in cases.items():
            times[name].append(seconds(run))
    rates = {name: cases[name][1] / statistics.median(times[name]) for name in cases}
    machine = rates["GEMM 256³"]
    results = {}
    print(f"{'':<24}{'GFLOP/step':>12}{'steps/s':>10}{'GFLOP/s':>10}{'of GEMM':>9}   spread of the times")
    for name, (_, flops) in cases.items():
        median, low, high = statistics.median(times[name]), min(times[name]), max(times[name])
        steps = STEPS if "GEMM" not in name else 200
        row = {
            "gflop_per_step": flops / steps / 1e9,
            "steps_per_second": steps / median,
            "gflop_per_second": rates[name] / 1e9,
            "share_of_gemm": rates[name] / machine,
            "spread": [low / median, high / median],
        }
        results[name] = row
        print(
            f"{name:<24}{row['gflop_per_step']:>12.3f}{row['steps_per_second']:>10.1f}{row['gflop_per_second']:>10.1f}"
            f"{row['share_of_gemm']:>9.0%}   {row['spread'][0]:.2f} to {row['spread'][1]:.2f}"
        )
    if args.json:
        about = {
            "jax": jax.__version__,
            "machine": platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
        }
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"about": about, "cases": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
