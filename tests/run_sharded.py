"""Run with four virtual devices: seeds are spread over them, and give the numbers that they give alone."""

import jax
import numpy as np

from edp import train
from test_contract import make_data, setup

update, init = setup("td3bc", "diffusion")
data = make_data()


def run(seeds: range):
    keys = train.seed_keys(seeds)
    placed = train.on_devices(data, train.seed_sharding(len(seeds)))
    states = train.init_states(init, keys)
    return train.epoch(update, states, placed, train.epoch_keys(keys, 1, 3), batch_size=16)[0]


assert jax.device_count() == 4
alone = jax.tree.leaves(run(range(1)))
for seeds, devices in ((4, 4), (6, 3)):
    together = jax.tree.leaves(run(range(seeds)))
    for one, many in zip(alone, together, strict=True):
        assert len(many.sharding.device_set) == devices, many.sharding
        np.testing.assert_allclose(np.asarray(many)[0], np.asarray(one)[0], rtol=2e-4, atol=2e-5)
