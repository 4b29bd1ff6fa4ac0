"""How quickly a policy acts in a control loop: one observation in, one action out, again and again.

    python benchmarks/act.py [--json results/act.json]

An EDP policy at walker2d's shapes (17 observations, 6 actions) as ``edp.load_policy`` gives it, NumPy to NumPy, with
15 network calls and with the recipe's 6, with EAS of 10 actions and without; a mean flow, which makes one call, and a
feed-forward policy; and the same matmuls at the machine's GEMM rate. Observations are checked against the training
data, except in one variant, and are arrays, except in another. A third variant has a deadline, so it computes in a
second thread.

Then the same policies exported: an ONNX model in onnxruntime with one thread, as in ``examples/export``, and a C file
with its own random numbers, compiled with ``cc -O2 -march=native``; beside them JAX without checks. Memory is the
largest resident size of a process that loads the policy and acts. The calls of all of them take turns. The last lines
are the ratios of onnxruntime to JAX (p50).
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import edp
from edp.acting import selection
from edp.acting.actors import Actors
from edp.acting.guard import Guard
from edp.acting.limits import HOLD, Limits
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
from edp.exporting.c_writer import pointer
from edp.files import write_json
from edp.networks import Critic
from edp.policies import POLICIES

EXAMPLE = Path(__file__).parents[1] / "examples" / "export"
sys.path.insert(0, str(EXAMPLE))

import act_onnx  # noqa: E402

OBS, ACT, CALLS = 17, 6, 1000
TASK = "walker2d-medium-v2"
NO_LIMITS, LONG_DEADLINE = Limits(), Limits(None, 1000.0, HOLD)
RECIPE = {"sampler": "dpm++", "calls": 6, "grid": "quadratic", "prediction": "v"}
SETTINGS: dict[str, dict[str, Any]] = {
    "15 calls, EAS of 10": {"eas": 10},
    "15 calls": {"eas": 1},
    "6 calls of dpm++, EAS of 10": {"eas": 10, **RECIPE},
    "6 calls of dpm++": {"eas": 1, **RECIPE},
    "meanflow, one call": {"eas": 1, "kind": "meanflow"},
    "feed-forward": {"eas": 1, "kind": "deterministic"},
}
PEAK = "VmHWM:"  # in /proc/self/status: the largest resident size, in kB
LOOP = """
#include <stdio.h>
#define POLICY_DECLARATIONS
#include "policy.c"
int main(void)
{
    float observation[POLICY_OBSERVATIONS] = {0.0f}, action[POLICY_ACTIONS];
    char line[200];
    policy_random random;
    FILE *status;
    int i;
    policy_seed(&random, 0);
    for (i = 0; i < 100; i++)
        if (policy_act_random(observation, &random, action))
            return 1;
    for (status = fopen("/proc/self/status", "r"); fgets(line, sizeof line, status);)
        fputs(line, stdout);
    return 0;
}
"""
SCRIPT = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(open("/proc/self/status").read())
"""


def policy(
    eas: int, checked: bool = True, limits: Limits = NO_LIMITS, kind: str = "diffusion", **options
) -> LoadedPolicy:
    task, classes = tasks.get_task(TASK), (TD3BC, POLICIES[kind], DataOptions, TrainOptions, EvalOptions)
    parts = resolve(classes, layers("td3bc", kind, task.domain, {}, None), {"eas": eas, **options}).parts
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
    return LoadedPolicy(spec, actors, spec.evaluation, draws=0, guard=guard, outside="ignore", limits=limits)


def flops_of(one: LoadedPolicy) -> int:
    inputs = jnp.zeros((1, 1, OBS)), jnp.zeros((1, 1)), jnp.zeros((1, 1), jnp.int32), jax.random.split(one._key, (1, 1))
    act = lambda *args: selection.act.__wrapped__(*args, one._actors.selection)  # noqa: E731  # pyright: ignore[reportAttributeAccessIssue]
    return matmul_flops(act, one._actors.policies, one._actors.critics, None, *inputs)


class ByName:
    """Acts on observations with names."""

    def __init__(self, one: LoadedPolicy):
        self.one, self.names = one, one.signals.observations

    def act(self, obs: np.ndarray) -> Any:
        return self.one.act(dict(zip(self.names, obs, strict=True)))


class CPolicy:
    """An exported C file as a shared library."""

    def __init__(self, folder: Path):
        compile_c(folder, "policy.so", "-shared", "-fPIC", "policy.c")
        self.library, self.random = ctypes.CDLL(str(folder / "policy.so")), (ctypes.c_uint32 * 4)()
        self.library.policy_seed(self.random, 0)

    def act(self, obs: np.ndarray) -> np.ndarray:
        obs, action = obs.astype(np.float32), np.empty(ACT, np.float32)
        if self.library.policy_act_random(pointer(obs), self.random, pointer(action)):
            raise ValueError("not finite")
        return action


def compile_c(folder: Path, out: str, *words: str) -> None:
    flags = ["-std=c99", "-O2", "-march=native"]
    subprocess.run(["cc", *flags, "-o", out, *words, "-lm"], cwd=folder, check=True)


def memory_of(*words: Any) -> float:
    """The largest resident size of a command that ends with the content of /proc/self/status, in megabytes."""
    said = subprocess.run([*map(str, words)], capture_output=True, text=True, check=True).stdout
    return int(said.split(PEAK)[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=SETTINGS, help="act a few times with one policy of JAX, and nothing else")
    values = parser.parse_args()
    if values.only:
        one = policy(**SETTINGS[values.only], checked=False)
        for _ in range(100):
            one.act(np.zeros(OBS))
        return
    loaded = {name: policy(**options) for name, options in SETTINGS.items()}
    unchecked = {name: policy(**options, checked=False) for name, options in SETTINGS.items()}
    actors = loaded | {"15 calls, unchecked": unchecked["15 calls"], "15 calls, by name": ByName(loaded["15 calls"])}
    actors["15 calls, with a deadline"] = policy(**SETTINGS["15 calls"], limits=LONG_DEADLINE)
    with tempfile.TemporaryDirectory() as folder:
        engines, exported = export_all(unchecked, Path(folder))
        times, rate = time_in_turns(actors)
        for name in SETTINGS:  # few at a time, as a control loop would find the caches
            times |= time_in_turns({key: one for key, one in engines.items() if key[0] == name})[0]
    ideal = {name: 1000 * flops_of(getattr(one, "one", one)) / rate for name, one in actors.items()}
    rows = {name: times[name] | {"ms_at_gemm_rate": ideal[name]} for name in actors}
    print(f"{'':<30}{'p50':>9}{'p99':>9}{'at GEMM rate':>14}{'ratio':>8}")
    for name, row in rows.items():
        row["ratio"] = row["p50_ms"] / ideal[name]
        print(f"{name:<30}{row['p50_ms']:>6.2f} ms{row['p99_ms']:>6.2f} ms{ideal[name]:>11.2f} ms{row['ratio']:>8.1f}")
    print(f"\n{'exported':<43}{'p50':>9}{'p99':>9}{'memory':>10}{'file':>9}")
    for name, engine in engines:
        row = exported[name][engine] = times[name, engine] | exported[name][engine]
        size = f"{row['file_mb']:>6.1f} MB" if "file_mb" in row else ""
        print(
            f"{name:<30}{engine:<13}{row['p50_ms']:>6.2f} ms{row['p99_ms']:>6.2f} ms{row['memory_mb']:>7.0f} MB{size}"
        )
    ratios = {name: row["onnxruntime"]["p50_ms"] / row["JAX"]["p50_ms"] for name, row in exported.items()}
    print("\nonnxruntime / JAX (p50)")
    for name, ratio in ratios.items():
        print(f"{name:<30}{ratio:.2f}")
    if values.json:
        content = {"about": describe_machine(), "gemm_gflops": rate / 1e9, "variants": rows, "exported": exported}
        content["onnxruntime_to_jax_p50"] = ratios
        write_json(values.json, content)


def export_all(policies: dict[str, LoadedPolicy], folder: Path) -> tuple[dict[tuple[str, str], Any], dict[str, Any]]:
    """Each policy in JAX, in onnxruntime and in C; and their memory and the sizes of their files."""
    actors: dict[tuple[str, str], Any] = {}
    sizes: dict[str, Any] = {}
    for number, (name, one) in enumerate(policies.items()):
        model = edp.export(one, folder / f"onnx{number}" / "policy.onnx")
        source = edp.export(one, folder / f"c{number}" / "policy.c")
        place = source.path.parent
        actors |= {(name, "JAX"): one, (name, "onnxruntime"): act_onnx.Policy(model.path, seed=0)}
        actors[name, "C"] = CPolicy(place)
        (place / "loop.c").write_text(LOOP)
        compile_c(place, "loop", "loop.c", "policy.c")
        script = [sys.executable, "-c", SCRIPT]
        example = [*script, EXAMPLE / "act_onnx.py", model.path, "--actions", "100"]
        library = (place / "policy.so").stat().st_size / 1e6
        sizes[name] = {
            "JAX": {"memory_mb": memory_of(*script, __file__, "--only", name)},
            "onnxruntime": {"memory_mb": memory_of(*example), "file_mb": model.size / 1e6},
            "C": {"memory_mb": memory_of(place / "loop"), "file_mb": library, "source_mb": source.size / 1e6},
        }
    return actors, sizes


def time_in_turns(actors: dict[Any, Any]) -> tuple[dict[Any, dict[str, float]], float]:
    """Percentiles of the milliseconds of a call, and the machine's GEMM rate meanwhile."""
    states, times = np.random.default_rng(0).standard_normal((CALLS, OBS)), {name: [] for name in actors}
    for one in actors.values():
        one.act(states[0])  # compiles
    multiply, rates = gemm(), []
    gemm_rate(*multiply)
    for i, state in enumerate(states):
        for name, one in actors.items():
            start = time.perf_counter()
            one.act(state)
            times[name].append(time.perf_counter() - start)
        if i % 50 == 0:
            rates.append(gemm_rate(*multiply))
    found = {
        name: {f"p{q}_ms": 1000 * float(np.percentile(taken, q)) for q in (50, 99)} for name, taken in times.items()
    }
    return found, float(np.median(rates))


if __name__ == "__main__":
    main()
