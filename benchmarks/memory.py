"""What is on the device, and what it costs to have only a part of the data there.

    python benchmarks/memory.py [--json results/memory.json]

Training of TD3+BC at walker2d's shapes. Bytes: the compiled epoch's arguments, results and temporaries, beside those of
the data set and of the training state. Speed: epochs on 5 million transitions that are all on the device, and on blocks
of them streamed from a memory-mapped file, in turns.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path

import jax

from edp.algorithms import InitialState, Update
from edp.bench.flops import time_call
from edp.bench.variants import ACT, BATCH, OBS, build_parts, describe_machine, random_data
from edp.data.stream import Blocks
from edp.devices.seeds import replicate, seed_keys, seed_sharding
from edp.files import write_json
from edp.training import epoch
from edp.training.batch_source import make_batch_source

ROWS, BLOCK, STEPS, ROUNDS = 5_000_000, 262_144, 250, 7  # as many rows for each step as 1M rows for 1,000 steps


def size(tree) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree) if leaf is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    (algorithm, policy), keys = build_parts("td3bc", "diffusion"), seed_keys(range(1))
    states = epoch.init_states(InitialState(algorithm, policy, OBS, ACT), keys)
    step_keys = epoch.epoch_keys(keys, 1, STEPS)
    put = partial(replicate, like=seed_sharding(1))
    whole = put(make_batch_source(algorithm, policy, random_data(ROWS)))
    blocks = Blocks(make_batch_source(algorithm, policy, random_data(ROWS), on_disk=True), BLOCK, 0, put)  # pyright: ignore

    compiled = epoch.epoch.lower(algorithm.update, states, whole, step_keys, batch_size=BATCH).compile()
    found = compiled.memory_analysis()
    needed = found.argument_size_in_bytes + found.temp_size_in_bytes
    needed += found.output_size_in_bytes - found.alias_size_in_bytes
    bytes_ = {"data": size(whole), "state": size(states), "program": needed}
    times = (needed - bytes_["data"]) / bytes_["state"]
    print(
        f"data {bytes_['data'] / 1e6:.1f} MB, training state {bytes_['state'] / 1e6:.1f} MB, "
        f"all that an epoch needs {needed / 1e6:.1f} MB: the data and {times:.2f} times the state"
    )

    def run(data):
        nonlocal states
        states, metrics, _ = epoch.epoch(Update(algorithm), states, data, step_keys, batch_size=BATCH)
        return metrics

    rates: dict[str, list[float]] = {"whole": [], "blocks": []}
    run(whole), run(blocks(0))  # these compile
    for number in range(1, ROUNDS + 1):
        rates["whole"].append(STEPS / time_call(lambda: run(whole)))
        rates["blocks"].append(STEPS / time_call(lambda: run(blocks(number))))  # noqa: B023
    slower = [whole / part for whole, part in zip(rates["whole"], rates["blocks"], strict=True)]
    for name, found_rates in rates.items():
        print(f"{name:<8}{statistics.median(found_rates):6.1f} steps/s")
    print(f"blocks take {statistics.median(slower):.3f} of the time ({min(slower):.3f} to {max(slower):.3f})")
    if values.json:
        write_json(
            values.json,
            {
                "about": describe_machine(),
                "bytes": bytes_ | {"states_beside_data": times},
                "streaming": {"rows": ROWS, "block": BLOCK, "steps": STEPS, "steps_per_second": rates, "ratio": slower},
            },
        )


if __name__ == "__main__":
    main()
