"""How fast training steps are, against the machine's own matmul rate, measured in turns in one process.

    python benchmarks/train_step.py [--json results/train_step.json]

At walker2d's shapes (17 observations, 6 actions), batch 256: variants of the paper's TD3+BC (K = 1000, 100k rows, one
seed, where nothing else is said), and every algorithm with every policy. Only matmul FLOPs count.
"""

import argparse
import json
import os
import platform
import statistics
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from edp import settings, train
from edp.algorithms import ALGORITHMS
from edp.data import d4rl, episodes
from edp.errors import UserError
from edp.flops import gemm, matmul_flops, seconds
from edp.policies import POLICIES

OBS, ACT, BATCH, STEPS, ROUNDS = 17, 6, 256, 50, 5


@cache
def dataset(rows: int) -> d4rl.Dataset:
    """Random data in episodes of 100 steps."""
    rng = np.random.default_rng(0)
    obs, next_obs = rng.standard_normal((2, rows, OBS), np.float32)
    action, reward = rng.uniform(-1, 1, (rows, ACT)).astype(np.float32), rng.standard_normal(rows, np.float32)
    ones, episode = np.ones(rows, np.float32), np.arange(rows) // 100
    return d4rl.Dataset(obs, action, reward, next_obs, ones, episode, np.zeros(0), [])


def case(name: str = "td3bc", policy_name: str = "diffusion", rows: int = 100_000, seeds: int = 1, **options):
    """A function that runs STEPS training steps, and their matmul FLOPs."""
    layers = settings.layers(name, policy_name, "locomotion", {}, None)
    algorithm, policy = settings.resolve((ALGORITHMS[name], POLICIES[policy_name]), layers, options).parts
    algorithm.check(policy)
    data = {
        "transitions": lambda: episodes.transitions(dataset(rows)),
        "tails": lambda: episodes.transitions(dataset(rows), episodes.tails(dataset(rows), 0.99)),
        "windows": lambda: episodes.sequences(dataset(rows), policy.context, 1.0),
    }[algorithm.learns_from]()
    data, keys = jax.tree.map(jnp.asarray, data), train.seed_keys(range(seeds))
    init = lambda key: algorithm.init(policy.build(OBS, ACT, key), OBS, ACT, key)  # noqa: E731
    states, step_keys = train.init_states(init, keys), train.epoch_keys(keys, 1, STEPS)
    one = jax.tree.map(lambda leaf: leaf[0], states)
    flops = seeds * matmul_flops(algorithm.update, one, data.draw(keys[0], BATCH), keys[0])

    def run():
        nonlocal states
        states, metrics, _ = train.epoch(algorithm.update, states, data, step_keys, batch_size=BATCH)
        return metrics

    return run, STEPS * flops


def pairs() -> dict:
    """Every algorithm with every policy that it goes with, at their own settings."""
    cases = {}
    for name, policy in product(ALGORITHMS, POLICIES):
        with suppress(UserError):
            cases[f"{name} + {policy}"] = case(name, policy)
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    cases = {
        "GEMM 256³": gemm(),
        "td3bc, K = 100": case(diffusion_steps=100),
        "td3bc, K = 5": case(diffusion_steps=5),
        "td3bc, 10k rows": case(rows=10_000),
        "td3bc, 2M rows": case(rows=2_000_000),
        "td3bc, 5 seeds": case(seeds=5),
        "td3bc, 5 calls of dpm++": case(sampler="dpm++", calls=5),
        **pairs(),
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
    print(f"{'':<26}{'GFLOP/step':>12}{'steps/s':>10}{'GFLOP/s':>10}{'of GEMM':>9}   spread of the times")
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
            f"{name:<26}{row['gflop_per_step']:>12.3f}{row['steps_per_second']:>10.1f}{row['gflop_per_second']:>10.1f}"
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
