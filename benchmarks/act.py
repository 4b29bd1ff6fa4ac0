"""How quickly a policy acts in a control loop: one observation in, one action out, again and again.

    python benchmarks/act.py [--json results/act.json]

An EDP policy at walker2d's shapes (17 observations, 6 actions) as ``edp.load_policy`` gives it, NumPy to NumPy, with
15 network calls and with 5, with EAS of 10 actions and without; and the same matmuls at the machine's GEMM rate.
Observations are checked against the training data, except in one variant, and are arrays, except in another.
The calls of all variants take turns.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting import selection
from edp.acting.actors import Actors
from edp.acting.guard import Guard
from edp.acting.policy import LoadedPolicy
from edp.acting.reference import ROWS, Reference
from edp.algorithms.td3bc import TD3BC
from edp.bench.flops import gemm, gemm_rate, matmul_flops
from edp.bench.variants import describe_machine
from edp.config.defaults import layers, resolve
from edp.config.spec import DataOptions, EvalOptions, Spec, TrainOptions
from edp.data import tasks
from edp.data.signals import Encoding, name_signals
from edp.data.units import identity_units
from edp.files import write_json
from edp.networks import Critic
from edp.policies import DiffusionConfig

OBS, ACT, CALLS = 17, 6, 1000
TASK = "walker2d-medium-v2"


def policy(eas: int, checked: bool = True, **options) -> LoadedPolicy:
    task, classes = tasks.get_task(TASK), (TD3BC, DiffusionConfig, DataOptions, TrainOptions, EvalOptions)
    parts = resolve(classes, layers("td3bc", "diffusion", task.domain, {}, None), {"eas": eas, **options}).parts
    signals = name_signals((), (), Encoding(), task.dims)
    signals = replace(signals, low=(-5.0,) * OBS, high=(5.0,) * OBS, distance=1.0)
    spec = Spec(task, *parts, units=identity_units(*task.dims), signals=signals)
    keys = jax.random.split(jax.random.key(0), 1)
    rows = np.random.default_rng(1).standard_normal((ROWS, OBS)).astype(np.float32)
    guard = Guard(signals, Reference(rows, normalised=True)) if checked else None
    actors = Actors(
        jax.vmap(lambda key: spec.policy.build(OBS, ACT, key))(keys),
        jax.vmap(lambda key: Critic(OBS, ACT, (256, 256, 256), key))(keys),
        selection.selection_of(spec.evaluation),
    )
    return LoadedPolicy(spec, actors, spec.evaluation, draws=0, guard=guard, outside="ignore")


def flops_of(one: LoadedPolicy) -> int:
    inputs = jnp.zeros((1, 1, OBS)), jnp.zeros((1, 1)), jnp.zeros((1, 1), jnp.int32), jax.random.split(one._key, (1, 1))
    act = lambda *args: selection.act.__wrapped__(*args, one._actors.selection)  # noqa: E731  # pyright: ignore[reportAttributeAccessIssue]
    return matmul_flops(act, one._actors.policies, one._actors.critics, None, *inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    variants = {
        "15 calls, EAS of 10": policy(10),
        "15 calls": policy(1),
        "5 calls of dpm++, EAS of 10": policy(10, sampler="dpm++", calls=5),
        "5 calls of dpm++": policy(1, sampler="dpm++", calls=5),
        "15 calls, unchecked": policy(1, checked=False),
        "15 calls, by name": policy(1),
    }
    states, times = np.random.default_rng(0).standard_normal((CALLS, OBS)), {name: [] for name in variants}
    for one in variants.values():
        one.act(states[0])  # compiles
    multiply = gemm()
    gemm_rate(*multiply)
    rates = []
    for i, state in enumerate(states):
        for name, one in variants.items():
            obs = dict(zip(one.signals.observations, state, strict=True)) if "by name" in name else state
            start = time.perf_counter()
            one.act(obs)
            times[name].append(time.perf_counter() - start)
        if i % 50 == 0:
            rates.append(gemm_rate(*multiply))
    rate, rows = float(np.median(rates)), {}
    print(f"{'':<30}{'p50':>9}{'p99':>9}{'at GEMM rate':>14}{'ratio':>8}")
    for name, one in variants.items():
        p50, p99 = (1000 * float(np.percentile(times[name], q)) for q in (50, 99))
        ideal = 1000 * flops_of(one) / rate
        rows[name] = {"p50_ms": p50, "p99_ms": p99, "ms_at_gemm_rate": ideal, "ratio": p50 / ideal}
        print(f"{name:<30}{p50:>6.2f} ms{p99:>6.2f} ms{ideal:>11.2f} ms{p50 / ideal:>8.1f}")
    if values.json:
        write_json(values.json, {"about": describe_machine(), "gemm_gflops": rate / 1e9, "variants": rows})


if __name__ == "__main__":
    main()
