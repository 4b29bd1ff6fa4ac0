"""Run with eight virtual devices: seeds are spread over them, and give the numbers that they give alone."""

import sys
from pathlib import Path

import jax
import numpy as np
from test_contract import make_data, setup

from edp.cli import main
from edp.devices.seeds import replicate, seed_keys, seed_sharding
from edp.runs.directory import Run
from edp.runs.load import load_checkpoint
from edp.training import epoch

update, init = setup("td3bc", "diffusion")
data = make_data()


def run(seeds: range):
    keys = seed_keys(seeds)
    placed = replicate(data, seed_sharding(len(seeds)))
    states = epoch.init_states(init, keys)
    return epoch.epoch(update, states, placed, epoch.epoch_keys(keys, 1, 3), batch_size=16)[0]


assert jax.device_count() == 8
alone = jax.tree.leaves(run(range(1)))
for seeds, devices in ((8, 8), (12, 6)):
    together = jax.tree.leaves(run(range(seeds)))
    for one, many in zip(alone, together, strict=True):
        assert len(many.sharding.device_set) == devices, many.sharding
        np.testing.assert_allclose(np.asarray(many)[0], np.asarray(one)[0], rtol=2e-4, atol=2e-5)

# A whole run: trained, evaluated, written, resumed.
file, folder = sys.argv[1:]
small = ["--epoch-steps", "10", "--eval-every", "20", "--hidden", "16", "--critic-hidden", "16"]
small += ["--batch-size", "32", "--calls", "2", "--eas", "2", "--episodes", "1"]
# The preset has no decay of the learning rate, which depends on the number of steps.
many = ["train", "hopper-medium-v2", "--data", file, "--seeds", "8", "--preset", "edp", *small]
assert main([*many, "--steps", "40", "--out", f"{folder}/many"]) == 0
assert main([*many, "--steps", "20", "--out", f"{folder}/resumed"]) == 0
assert main(["train", "--resume", f"{folder}/resumed", "--steps", "40"]) == 0
states = [jax.tree.leaves(load_checkpoint(Run.open(Path(folder, name)))[1].tree) for name in ("many", "resumed")]
for one, other in zip(*states, strict=True):
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
