"""Hopper, HalfCheetah and Walker2d with the physics that D4RL's data was recorded on.

D4RL simulated Gym's ``-v2`` models with a 2019 MuJoCo, whose compiler treated every capsule as a solid
cylinder. The current compiler computes other masses and inertias, so the dynamics differ. Everything else in
Gymnasium's ``-v4`` environments (observation, reward, termination, reset noise) is what D4RL used.
"""

# pyright: reportAttributeAccessIssue=false
import importlib

import gymnasium
import mujoco

from edp.envs import physics

DENSITY = 1000.0  # MuJoCo's default, used by all three models

# name: (module, class, total mass the old compiler rescaled the model to)
MODELS = {
    "hopper": ("hopper_v4", "HopperEnv", None),
    "halfcheetah": ("half_cheetah_v4", "HalfCheetahEnv", 14.0),
    "walker2d": ("walker2d_v4", "Walker2dEnv", None),
}


def make(name: str, **options) -> gymnasium.Env:
    """The Gymnasium environment ``name`` with D4RL's masses and inertias."""
    module, cls, total_mass = MODELS[name]
    env = getattr(importlib.import_module(f"gymnasium.envs.mujoco.{module}"), cls)(**options)
    physics.use_cylinder_inertias(env.model, DENSITY, total_mass)
    physics.correct_contacts(env.model)
    mujoco.mj_setConst(env.model, env.data)
    return env
