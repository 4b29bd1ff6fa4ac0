"""Record states, actions and the states one step later of every environment, as a reference for tests.

    python scripts/record_states.py tests/envs/recorded.npz

Only for MuJoCo 3.2.7 with the corrections that were checked against D4RL's own recordings: a test then finds out on any
machine, and with any version, whether the physics are still the same.
"""

import sys

import gymnasium
import numpy as np

import edp.envs  # noqa: F401

ENVS = {
    "hopper": "edp/hopper-d4rl-v2",
    "halfcheetah": "edp/halfcheetah-d4rl-v2",
    "walker2d": "edp/walker2d-d4rl-v2",
    "antmaze": "edp/antmaze-umaze-d4rl-v0",
    "pen": "edp/pen-d4rl-v1",
    "kitchen": "edp/kitchen-complete-d4rl-v0",
}
EVERY, COUNT = 5, 40  # a state is kept every few steps


def simulator(env):
    """What holds the model and its state."""
    inner = env.unwrapped
    return getattr(inner, "robot", inner)


def record(env_id: str) -> dict[str, np.ndarray]:
    env = gymnasium.make(env_id, disable_env_checker=True)
    env.reset(seed=0)
    data, rng, rows = simulator(env).data, np.random.default_rng(0), []
    for step in range(EVERY * COUNT):
        before = data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()
        _, _, terminal, timeout, _ = env.step(rng.uniform(-1, 1, env.action_space.shape).astype(np.float32))
        if step % EVERY == 0:
            rows.append((*before, data.ctrl.copy(), data.qpos.copy(), data.qvel.copy()))
        if terminal or timeout:
            env.reset()
    names = ("qpos", "qvel", "warmstart", "ctrl", "next_qpos", "next_qvel")
    return dict(zip(names, map(np.stack, zip(*rows, strict=True)), strict=True))


if __name__ == "__main__":
    columns = {f"{name}/{key}": value for name, env_id in ENVS.items() for key, value in record(env_id).items()}
    np.savez_compressed(sys.argv[1], **columns)
