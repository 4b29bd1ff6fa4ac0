"""Corrections that make a new MuJoCo simulate like the version that D4RL was recorded with."""

# pyright: reportAttributeAccessIssue=false
import warnings
from functools import cache

import mujoco
import numpy as np

REFERENCE = "3.2.7"  # the version with which every environment was checked against recordings
CHECKED = {(3, 2), (3, 10)}  # minor versions that pass the same tests, with the corrections below


INSTALLED = int(mujoco.__version__.split(".")[0]), int(mujoco.__version__.split(".")[1])


def correct_contacts(model: mujoco.MjModel, version: tuple[int, int] = INSTALLED) -> None:
    """Make this version of MuJoCo treat contacts as the reference version does."""
    if version >= (3, 3):  # a new algorithm for contacts of convex shapes
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_NATIVECCD
    if version >= (3, 5):  # the margins of two geoms add up, where the larger one counted
        model.geom_margin[:] /= 2
        if hasattr(mujoco.mjtDisableBit, "mjDSBL_MULTICCD"):
            model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MULTICCD
        else:
            model.opt.enableflags &= ~mujoco.mjtEnableBit.mjENBL_MULTICCD
    if version not in CHECKED:
        warn_once(version)


@cache
def warn_once(version: tuple[int, int]) -> None:
    warnings.warn(
        f"MuJoCo {version[0]}.{version[1]} was not checked against D4RL's recordings: scores may differ "
        f"(pip install mujoco=={REFERENCE} for the version that was)",
        stacklevel=3,
    )


def use_cylinder_inertias(model: mujoco.MjModel, density: float, total_mass: float | None = None) -> None:
    """Replace the inertial frame of every body by that of the old compiler."""
    for body in range(1, model.nbody):
        first, count = model.body_geomadr[body], model.body_geomnum[body]
        if count:
            set_body_inertia(model, body, [geom_inertia(model, g, density) for g in range(first, first + count)])
    # The compiler marks frames that coincide with its inertial frames, and aligns bounding volumes with them. The
    # frames are different now: without this, contacts are computed in wrong frames or missed.
    model.body_sameframe[:] = model.geom_sameframe[:] = model.site_sameframe[:] = 0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
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
