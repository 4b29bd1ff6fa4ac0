"""The paper's efficiency figure: how fast its variants train and act, compared with the machine's GEMM rate.

Shapes are those of walker2d (17 observations, 6 actions; batches of 256), and the data is random.
"""

import os
import platform
import statistics
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.actors import Actors
from edp.acting.rollout import Pool, roll_out_policies
from edp.algorithms import ALGORITHMS, InitialState, Update
from edp.bench.flops import gemm, matmul_flops, time_call
from edp.config import defaults
from edp.data.dataset import Dataset
from edp.devices.seeds import seed_keys
from edp.envs.make import make_env
from edp.policies import POLICIES
from edp.runs.provenance import provenance
from edp.training.batch_source import make_batch_source
from edp.training.epoch import epoch, epoch_keys, init_states

OBS, ACT, BATCH, ROWS = 17, 6, 256, 100_000
GEMM, LARGE_GEMM = "GEMM 256³", "GEMM 1024³"
ENV = "edp/walker2d-d4rl-v2"
BLOCK_FLOPS = 1e11  # of training in one measurement, which takes about a second
K100 = {"diffusion_steps": 100}

# Names as in the paper. Where every noise level is a network call, K is 100.
VARIANTS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "dql": ("diffusion", "dql", {**K100, "schedule": "linear"}),
    "edp-without-dpm": ("diffusion", "edp-without-dpm", {}),
    "edp-without-ap": ("diffusion", "edp-without-ap", {}),
    "edp": ("diffusion", "edp", {}),
    "edp, fast": ("diffusion", "fast", {}),
    "feed-forward": ("deterministic", None, {}),
}


class Case(NamedTuple):
    """A block of steps to measure."""

    run: Callable[[], Any]  # a block of steps
    steps: int  # in a block
    flops: int  # of a step


@cache
def random_data(rows: int = ROWS) -> Dataset:
    """Make random transitions in episodes of 100 steps."""
    rng = np.random.default_rng(0)
    obs, next_obs = rng.standard_normal((2, rows, OBS), np.float32)
    action, reward = rng.uniform(-1, 1, (rows, ACT)).astype(np.float32), rng.standard_normal(rows, np.float32)
    return Dataset(obs, action, reward, next_obs, np.ones(rows, np.float32), np.arange(rows) // 100, np.zeros(0), [])


def build_parts(algorithm: str, policy: str, preset: str | None = None, **options: Any) -> tuple[Any, Any]:
    """Make an algorithm and its policy with the paper's settings for locomotion."""
    classes = ALGORITHMS[algorithm], POLICIES[policy]
    preset_values = defaults.PRESETS.get(preset or "", {})
    chosen = {key: value for key, value in preset_values.items() if not key.startswith(("eas", "act"))}
    layers = defaults.layers(algorithm, policy, "locomotion", {}, None)
    made = tuple(defaults.resolve(classes, layers, chosen | options).parts)
    made[0].check(made[1])
    return made  # pyright: ignore


def training_case(algorithm: Any, policy: Any, rows: int = ROWS, seeds: int = 1) -> Case:
    """Make the case of training steps of all seeds in one program."""
    data = jax.tree.map(jnp.asarray, make_batch_source(algorithm, policy, random_data(rows)))
    keys = seed_keys(range(seeds))
    states = init_states(InitialState(algorithm, policy, OBS, ACT), keys)
    one = jax.tree.map(lambda leaf: leaf[0], states)
    flops = matmul_flops(algorithm.update, one, data.draw(keys[0], BATCH), keys[0])
    steps = int(np.clip(BLOCK_FLOPS // flops, 2, 100))  # of each seed, so that seeds are compared at equal lengths
    step_keys = epoch_keys(keys, 1, steps)

    def run():
        nonlocal states
        states, metrics, _ = epoch(Update(algorithm), states, data, step_keys, batch_size=BATCH)
        return metrics

    return Case(run, steps, seeds * flops)


def acting_case(policy: Any, steps: int = 100, episodes: int = 10) -> Case:
    """Make the case of steps of ten environments in parallel, with one sampled action each (no EAS)."""
    policies = jax.vmap(lambda key: policy.build(OBS, ACT, key))(seed_keys(range(1)))
    endless = partial(make_env, ENV, max_episode_steps=steps, terminate_when_unhealthy=False)
    pool = Pool(endless, episodes)
    one = jax.tree.map(lambda leaf: leaf[0], policies)
    flops = matmul_flops(lambda policy, obs, key: policy.act(obs, key), one, jnp.zeros((1, OBS)), jax.random.key(0))
    run = partial(roll_out_policies, Actors(policies, None), [pool], episodes=episodes, seed=0)
    return Case(run, steps * episodes, flops)


def variant_parts(name: str) -> tuple[Any, Any]:
    """Make the algorithm and the policy of one of the paper's variants."""
    policy, preset, options = VARIANTS[name]
    return build_parts("td3bc", policy, preset, **options)


def variant_cases(names: list[str]) -> dict[tuple[str, str], Case]:
    cases = {}
    for name in names:
        algorithm, policy = variant_parts(name)
        cases |= {(name, "training"): training_case(algorithm, policy), (name, "acting"): acting_case(policy)}
    return cases


def measure(cases: dict[tuple[str, str], Case], rounds: int) -> Iterator[str | dict]:
    """Measure the cases and GEMMs of two sizes in turns. Yields texts of progress, and at last the result."""
    gemms = {(GEMM, "training"): Case(*gemm()), (LARGE_GEMM, "training"): Case(*gemm(1024, 5))}
    compiled = {}
    for (name, what), case in (gemms | cases).items():
        yield f"compiling {name}, {what}"
        first, again = time_call(case.run), time_call(case.run)
        compiled[name, what] = max(0.0, first - again)
    rates: dict[tuple[str, str], list[float]] = {key: [] for key in gemms | cases}
    for number in range(1, rounds + 1):
        for (name, what), case in (gemms | cases).items():
            yield f"round {number} of {rounds}: {name}, {what}"
            rates[name, what].append(case.steps / time_call(case.run))
    flops = {name: [rate * case.flops for rate in rates[name, what]] for (name, what), case in gemms.items()}
    # The machine's speed varies over minutes: rates are compared within each round.
    share = lambda key, name: median_ratio(np.multiply(rates[key], cases[key].flops), flops[name])  # noqa: E731
    firsts = {what: rates[name, what] for name, what in reversed(cases)}
    yield {
        "about": describe_machine(),
        "gemm_gflops": statistics.median(flops[GEMM]) / 1e9,
        "large_gemm_gflops": statistics.median(flops[LARGE_GEMM]) / 1e9,
        "variants": [
            {
                "name": name,
                "what": what,
                "steps_per_second": statistics.median(rates[name, what]),
                "spread": [min(rates[name, what]), max(rates[name, what])],
                "times_first": median_ratio(rates[name, what], firsts[what]),
                "gflop_per_step": case.flops / 1e9,
                "share_of_gemm": share((name, what), GEMM),
                "share_of_large_gemm": share((name, what), LARGE_GEMM),
                "compile_seconds": compiled[name, what],
                "rounds": rates[name, what],
            }
            for (name, what), case in cases.items()
        ],
    }


def median_ratio(rates: Any, base_rates: Any) -> float:
    """Compute the median over rounds of one rate as a multiple of another."""
    return float(np.median(np.divide(rates, base_rates)))


def describe_machine() -> dict[str, str | int | None]:
    """Describe the packages and the machine that a measurement was made with."""
    processor, info = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if info.exists():
        named = (
            line.split(":")[1].strip()
            for line in info.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        )
        processor = next(named, processor)
    device = {"device": jax.devices()[0].device_kind, "devices": jax.device_count()}
    return provenance()["packages"] | device | {"processor": processor, "cores": os.cpu_count()}
