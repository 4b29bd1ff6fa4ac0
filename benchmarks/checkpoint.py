"""What checkpoints cost, as a share of training time at the default interval.

    python benchmarks/checkpoint.py [--json results/checkpoint.json]

TD3+BC with a diffusion policy at walker2d's shapes: blocks of steps in turns, with a checkpoint at the beginning (it is
written in the background while they run) and without. What the blocks with one take longer is its cost. Before each
checkpoint, the rows of the logs are written to the disk (fsync); the time of that is given, too.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import jax

from edp.algorithms import InitialState, Update
from edp.bench.variants import ACT, BATCH, OBS, build_parts, describe_machine, random_data
from edp.config.spec import TrainOptions
from edp.devices.seeds import seed_keys
from edp.files import write_json
from edp.runs.checkpoints import Checkpoints
from edp.runs.directory import Run
from edp.training import epoch
from edp.training.batch_source import make_batch_source

STEPS, ROUNDS = 100, 12
EVERY = TrainOptions().checkpoint_every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    (algorithm, policy), keys = build_parts("td3bc", "diffusion"), seed_keys(range(1))
    data = jax.tree.map(jax.numpy.asarray, make_batch_source(algorithm, policy, random_data()))
    states = epoch.init_states(InitialState(algorithm, policy, OBS, ACT), keys)
    step_keys = epoch.epoch_keys(keys, 1, STEPS)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(states))
    times, blocked, synced = {True: [], False: []}, [], []
    with tempfile.TemporaryDirectory() as folder:
        checkpoints, run = Checkpoints(Path(folder) / "checkpoints", total=2 * ROUNDS), Run(Path(folder))
        for block in range(-1, 2 * ROUNDS):  # the first one compiles
            saves = block >= 0 and block % 2 == 0
            start = time.perf_counter()
            if saves:
                rows = run.tallies()
                synced.append(time.perf_counter() - start)
                checkpoints.save(block + 1, states, {"logs": rows})
                blocked.append(time.perf_counter() - start)
            states, metrics, _ = epoch.epoch(Update(algorithm), states, data, step_keys, batch_size=BATCH)
            jax.block_until_ready(metrics)
            run.log_metrics({"step": block + 1, "metrics": {name: [float(v[0])] for name, v in metrics.items()}})
            run.log_evaluation({"step": block + 1, "kind": "training", "scores": [[0.0] * 10]})
            if saves:
                checkpoints.finish()
            if block >= 0:
                times[saves].append(time.perf_counter() - start)
        checkpoints.close()
    without = statistics.median(times[False])
    cost = statistics.median(times[True]) - without
    result = {
        "about": describe_machine(),
        "megabytes": size / 1e6,
        "seconds_each": cost,
        "seconds_blocked": statistics.median(blocked),
        "seconds_synced": statistics.median(synced),
        "steps_per_second": STEPS / without,
        "every_steps": EVERY,
        "share": cost / (EVERY / STEPS * without),
    }
    print(f"a checkpoint of {size / 1e6:.0f} MB costs {cost:.3f} s ({result['seconds_blocked']:.3f} s of them waiting)")
    share = result["seconds_synced"] / cost
    print(f"writing the rows before it to the disk takes {result['seconds_synced']:.4f} s, {share:.1%} of that")
    print(f"every {EVERY:,} steps ({EVERY / STEPS * without:.0f} s of training): {result['share']:.2%} of the time")
    if values.json:
        write_json(values.json, result)


if __name__ == "__main__":
    main()
