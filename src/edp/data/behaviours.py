"""Behaviour policies kept as small ``.npz`` files: what data sets are made with."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from edp.errors import UserError, first_line

LOG_STD_RANGE = (-20.0, 2.0)
ARRAYS = ("w0", "b0", "w1", "b1", "w_mu", "b_mu", "w_ls", "b_ls")
BUILT_IN = Path(__file__).parent / "actors"


class SquashedGaussian:
    """A tanh-squashed Gaussian on a ReLU network of two hidden layers: the actor of SAC, TQC and their kin."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.arrays = {name: np.asarray(arrays[name], np.float32) for name in ARRAYS}

    @property
    def obs_dim(self) -> int:
        return self.arrays["w0"].shape[0]

    @property
    def act_dim(self) -> int:
        return self.arrays["w_mu"].shape[1]

    def __call__(self, obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One action for each row of ``obs``."""
        p = self.arrays
        hidden = np.maximum(obs.astype(np.float32) @ p["w0"] + p["b0"], 0)
        hidden = np.maximum(hidden @ p["w1"] + p["b1"], 0)
        std = np.exp(np.clip(hidden @ p["w_ls"] + p["b_ls"], *LOG_STD_RANGE))
        noise = rng.standard_normal(std.shape, dtype=np.float32)
        return np.tanh(hidden @ p["w_mu"] + p["b_mu"] + std * noise)


def load(path: Path) -> SquashedGaussian:
    if not path.exists():
        raise UserError(f"{path}: no such policy file")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = [name for name in ARRAYS if name not in arrays]
            if missing:
                raise UserError(f"{path}: not a squashed Gaussian policy: missing {', '.join(missing)}")
            policy = SquashedGaussian(arrays)
    except (OSError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: not a policy file ({first_line(error)})") from None
    check_shapes(policy, path)
    return policy


def check_shapes(policy: SquashedGaussian, path: Path) -> None:
    """Every layer takes what the one before it gives."""
    shapes = [policy.arrays[name].shape for name in ARRAYS]
    if [len(shape) for shape in shapes] == [2, 1] * 4:
        (obs, first), (_, second), (_, act) = shapes[0], shapes[2], shapes[4]
        layers = [(obs, first), (first, second), (second, act), (second, act)]
        if shapes == [part for layer in layers for part in (layer, layer[1:])]:
            return
    raise UserError(f"{path}: not a policy file (its layers do not fit together: {shapes})")


def path(name: str) -> Path:
    return BUILT_IN / f"{name}.npz"


def built_in(name: str) -> SquashedGaussian:
    return load(path(name))
