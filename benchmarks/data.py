"""What reading a large file costs beyond its bytes, and what making data costs beyond its environment steps.

    python benchmarks/data.py [--json results/data.json]

Reading: two million random transitions at Hopper's shapes, each reader in a separate process. Making: episodes of the
built-in Hopper policies, against the bare environment stepped through the same kind of episodes, in turns on one core.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from edp.data.synthesis.jobs import worker_environment

ROWS, OBS, ACT, ROUNDS = 2_000_000, 11, 3, 5
EPISODES = 20
KEYS = ("observations", "actions", "rewards", "terminals", "timeouts")

# Each of these runs alone, and prints seconds and the growth of its largest memory.
CHILD = """
import resource, sys, time
from pathlib import Path
import h5py, numpy as np
from edp.data.dataset import read_dataset
from edp.data.formats.hdf5 import open_hdf5
def raw(path):
    with h5py.File(path) as file:
        return [file[key][()] for key in file]
before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
start = time.perf_counter()
kept = {"raw": raw, "edp": lambda path: read_dataset(open_hdf5(path))}[sys.argv[1]](Path(sys.argv[2]))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""


def write_large(path: Path, with_next: bool) -> int:
    """A file as D4RL has them, and the bytes of its arrays."""
    rng = np.random.default_rng(0)
    arrays = {
        "observations": rng.standard_normal((ROWS, OBS), np.float32),
        "actions": rng.uniform(-1, 1, (ROWS, ACT)).astype(np.float32),
        "rewards": rng.standard_normal(ROWS, np.float32),
        "terminals": rng.random(ROWS) < 0.001,
        "timeouts": np.arange(ROWS) % 1000 == 999,
    }
    if with_next:
        arrays["next_observations"] = rng.standard_normal((ROWS, OBS), np.float32)
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            file.create_dataset(key, data=array, compression="gzip", compression_opts=1)
    return sum(array.nbytes for array in arrays.values())


def reading(folder: Path) -> dict:
    found = {}
    for name, with_next in (("with next_observations", True), ("without", False)):
        path = folder / f"{with_next}.hdf5"
        size, seconds, peaks = write_large(path, with_next), {"raw": [], "edp": []}, []
        for _ in range(ROUNDS):
            for reader in seconds:
                command = [sys.executable, "-c", CHILD, reader, str(path)]
                answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
                seconds[reader].append(float(answer[0]))
                if reader == "edp":
                    peaks.append(float(answer[1]) / size)
        found[name] = {
            "raw_seconds": statistics.median(seconds["raw"]),
            "seconds": statistics.median(seconds["edp"]),
            "peak_memory_over_arrays": max(peaks),
        }
    return found


def making() -> dict:
    from edp.data.synthesis import behaviours
    from edp.data.synthesis.make import SHARD, STYLE, Behaviour, roll_out
    from edp.envs.make import make_env

    actor = behaviours.load_built_in("hopper-medium")
    envs = [make_env("edp/hopper-d4rl-v2") for _ in range(STYLE.parallel)]
    env, rng = make_env("edp/hopper-d4rl-v2"), np.random.default_rng(0)

    def recorded(seed: int) -> list[np.ndarray]:
        actions, (obs, _), over = [], env.reset(seed=seed), False
        while not over:
            actions.append(actor(obs[None], rng)[0])
            obs, _, terminal, timeout, _ = env.step(actions[-1])
            over = terminal or timeout
        return actions

    episodes = [recorded(seed) for seed in range(EPISODES)]

    def bare(episode: int) -> tuple[int, float]:
        start, actions = time.perf_counter(), episodes[episode % EPISODES]
        env.reset(seed=episode % EPISODES)
        for action in actions:
            env.step(action)
        return len(actions), time.perf_counter() - start

    def round_of(seed: int) -> tuple[float, float]:
        """Both rates, with a bare episode whenever one or two were made: the machine's own speed keeps changing."""
        alone = []
        start = time.perf_counter()
        roll_out(
            Behaviour("hopper", actor),
            envs,
            SHARD,
            np.random.SeedSequence(seed),
            lambda _: alone.append(bare(len(alone))),
        )
        steps, seconds = map(sum, zip(*alone, strict=True))
        return steps / seconds, SHARD / (time.perf_counter() - start - seconds)

    rates = [round_of(seed) for seed in range(ROUNDS)]
    ratios = [made / bare for bare, made in rates]
    return {
        "bare_steps_per_second": statistics.median(bare for bare, _ in rates),
        "made_steps_per_second": statistics.median(made for _, made in rates),
        "share_of_bare": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
    }


def in_worker(*words: str) -> str:
    """What this script prints in a process like those that make data."""
    command = [sys.executable, __file__, *words]
    variables = os.environ | worker_environment(narrow=True)
    return subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--making", action="store_true", help="the second half alone, as JSON")
    values = parser.parse_args()
    if values.making:
        print(json.dumps(making()))
        return
    with tempfile.TemporaryDirectory() as folder:
        result = {
            "about": {"machine": platform.machine(), "cores": os.cpu_count(), "rows": ROWS},
            "reading": reading(Path(folder)),
            "making": json.loads(in_worker("--making")),
        }
    for name, row in result["reading"].items():
        print(
            f"reading {ROWS:,} transitions {name}: {row['seconds']:.2f} s (raw: {row['raw_seconds']:.2f} s), "
            f"peak memory {row['peak_memory_over_arrays']:.2f} x the arrays"
        )
    row = result["making"]
    print(
        f"making: {row['made_steps_per_second']:,.0f} steps/s on one core, "
        f"{row['share_of_bare']:.0%} of the bare environment ({row['spread'][0]:.0%} to {row['spread'][1]:.0%})"
    )
    if values.json:
        values.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
