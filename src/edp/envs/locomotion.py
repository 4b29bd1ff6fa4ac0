"""Hopper, HalfCheetah and Walker2d with the physics that D4RL's data was recorded on.

D4RL simulated Gym's ``-v2`` models with a 2019 MuJoCo, whose compiler took every capsule for a solid cylinder.
Today's compiler gives the same model files other masses and inertias, and with them other dynamics. Everything else in
Gymnasium's ``-v4`` environments (observation, reward, termination, reset noise) is what D4RL used.
"""

# pyright: reportAttributeAccessIssue=false
import importlib

import gymnasium
import mujoco
import numpy as np

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
    use_cylinder_inertias(env.model, DENSITY, total_mass)
    mujoco.mj_setConst(env.model, env.data)
    return env


def use_cylinder_inertias(model: mujoco.MjModel, density: float, total_mass: float | None = None) -> None:
    """Overwrite the inertial frame of every body with the old compiler's."""
    for body in range(1, model.nbody):
        first, count = model.body_geomadr[body], model.body_geomnum[body]
        if count:
            set_body_inertia(model, body, [geom_inertia(model, g, density) for g in range(first, first + count)])
    # The compiler marked frames that coincided with the inertial frames it computed; ours are others.
    model.body_sameframe[:] = model.geom_sameframe[:] = model.site_sameframe[:] = 0
    if total_mass is not None:
        scale = total_mass / model.body_mass.sum()
        model.body_mass[:] *= scale
        model.body_inertia[:] *= scale


def geom_inertia(model: mujoco.MjModel, geom: int, density: float):
    """Mass, centre and inertia tensor (in the body's axes, about that centre) of one sphere or capsule."""
    radius, half_length = model.geom_size[geom, :2]
    kind = model.geom_type[geom]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        mass = density * 4 / 3 * np.pi * radius**3
        moments = np.full(3, 0.4 * mass * radius**2)
    elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        length = 2 * half_length + radius
        mass = density * np.pi * radius**2 * length
        transverse = mass * (3 * radius**2 + length**2) / 12
        moments = np.array([transverse, transverse, mass * radius**2 / 2])
    else:
        raise ValueError(f"geom {geom}: only spheres and capsules are known here, not type {kind}")
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    rotation = rotation.reshape(3, 3)
    return mass, model.geom_pos[geom].copy(), rotation @ np.diag(moments) @ rotation.T


def set_body_inertia(model: mujoco.MjModel, body: int, geoms: list) -> None:
    """Combine its geoms' inertias about the common centre of mass, and store them along the principal axes."""
    mass = sum(m for m, _, _ in geoms)
    centre = sum(m * x for m, x, _ in geoms) / mass
    offsets = [(m, x - centre, tensor) for m, x, tensor in geoms]
    inertia = sum(tensor + m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d, tensor in offsets)
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.linalg.det(axes)  # a rotation, not a reflection
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, axes.ravel())
    model.body_mass[body], model.body_inertia[body] = mass, moments
    model.body_ipos[body], model.body_iquat[body] = centre, quat
