"""Evaluation environments that behave as in D4RL. Importing this package registers them with Gymnasium.

``edp/hopper-d4rl-v2``, ``edp/halfcheetah-d4rl-v2``, ``edp/walker2d-d4rl-v2``; ``edp/antmaze-umaze-d4rl-v0``, and for
``medium`` and ``large``; ``edp/pen-d4rl-v1``; ``edp/kitchen-complete-d4rl-v0``, and for ``partial`` and ``mixed``.
"""

import gymnasium

LIMITS = {"umaze": 700, "medium": 1000, "large": 1000}


def register(env_id: str, entry_point: str, steps: int, **options) -> None:
    gymnasium.register(f"edp/{env_id}", f"edp.envs.{entry_point}", max_episode_steps=steps, kwargs=options)


for _name in ("hopper", "halfcheetah", "walker2d"):
    register(f"{_name}-d4rl-v2", "locomotion:make", 1000, name=_name)
for _maze, _steps in LIMITS.items():
    register(f"antmaze-{_maze}-d4rl-v0", "antmaze:AntMaze", _steps, maze=_maze)
for _variant in ("complete", "partial", "mixed"):
    register(f"kitchen-{_variant}-d4rl-v0", "kitchen:Kitchen", 280, variant=_variant)
register("pen-d4rl-v1", "pen:make", 100)
