"""Evaluation environments. Importing this package registers them with Gymnasium as ``edp/NAME-d4rl-v2``."""

import gymnasium

from edp.envs import locomotion

for _name in locomotion.MODELS:
    gymnasium.register(
        id=f"edp/{_name}-d4rl-v2",
        entry_point="edp.envs.locomotion:make",
        kwargs={"name": _name},
        max_episode_steps=1000,
    )
