"""Behaviour policies that make data sets, kept as small ``.npz`` files."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from edp.data.formats.npz import read_npz
from edp.errors import UserError, first_line

LOG_STD_RANGE = (-20.0, 2.0)
BUILT_IN = Path(__file__).parent / "actors"
Arrays = Mapping[str, np.ndarray]


class Actor:
    """A policy that acts in an episode that is being recorded."""

    obs_dim: int
    act_dim: int

    def __call__(self, inputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one action in [-1, 1] for each row of ``inputs``."""
        raise NotImplementedError

    def begin(self, env: gymnasium.Env, seed: int) -> tuple[np.ndarray, Any]:
        """Start an episode; return its first observation, and the actor's goal in it."""
        return env.reset(seed=seed)[0], None

    def inputs(self, obs: np.ndarray, aim: Any) -> np.ndarray:
        """Return the part of an observation that the actor sees."""
        return obs

    def is_over(self, terminal: bool, timeout: bool) -> bool:
        return terminal or timeout


class SquashedGaussian(Actor):
    """A tanh-squashed Gaussian on a ReLU network of two hidden layers: the actor of SAC and TQC.

    It is deterministic if the file has no layer for the log-std.
    """

    MEAN, LOG_STD = ("w0", "b0", "w1", "b1", "w_mu", "b_mu"), ("w_ls", "b_ls")

    def __init__(self, arrays: Arrays):
        self.random = any(name in arrays for name in self.LOG_STD)
        names = self.MEAN + self.LOG_STD if self.random else self.MEAN
        self.arrays = {name: finite_array(arrays, name) for name in names}
        layers = [(self.arrays[name], self.arrays[name.replace("w", "b")]) for name in names[::2]]
        self.obs_dim, self.act_dim = network_dims([*layers[:2], layers[2]])
        if self.random:
            network_dims([*layers[:2], layers[3]])

    def __call__(self, inputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        p = self.arrays
        hidden = np.maximum(inputs.astype(np.float32) @ p["w0"] + p["b0"], 0)
        hidden = np.maximum(hidden @ p["w1"] + p["b1"], 0)
        mean = hidden @ p["w_mu"] + p["b_mu"]
        if not self.random:
            return np.tanh(mean)
        std = np.exp(np.clip(hidden @ p["w_ls"] + p["b_ls"], *LOG_STD_RANGE))
        noise = rng.standard_normal(std.shape, dtype=np.float32)
        return np.tanh(mean + std * noise)


class ScaledGaussian(Actor):
    """A Gaussian of constant std, clipped, on a tanh network of two hidden layers: the actor of hand_dapg's experts."""

    LAYERS, SCALES = ("l0", "l1", "l2"), ("in_shift", "in_scale", "out_shift", "out_scale", "log_std")

    def __init__(self, arrays: Arrays):
        take = {name: finite_array(arrays, name) for name in self.SCALES}
        self.layers = [
            (finite_array(arrays, f"{name}_weight").T, finite_array(arrays, f"{name}_bias")) for name in self.LAYERS
        ]
        self.obs_dim, self.act_dim = network_dims(self.layers)
        widths = {"in_shift": self.obs_dim, "in_scale": self.obs_dim}
        for name, array in take.items():
            if array.shape != (widths.get(name, self.act_dim),):
                raise ValueError(f"{name} has shape {array.shape}")
        if not take["in_scale"].all():
            raise ValueError("in_scale has zeros, by which it divides")
        self.in_shift, self.in_scale, self.out_shift, self.out_scale, self.log_std = take.values()

    def __call__(self, inputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        (w0, b0), (w1, b1), (w2, b2) = self.layers
        hidden = np.tanh((inputs.astype(np.float32) - self.in_shift) / self.in_scale @ w0 + b0)
        mean = (np.tanh(hidden @ w1 + b1) @ w2 + b2) * self.out_scale + self.out_shift
        noise = rng.standard_normal(mean.shape, dtype=np.float32)
        return np.clip(mean + np.exp(self.log_std) * noise, -1, 1)


def finite_array(arrays: Arrays, name: str) -> np.ndarray:
    """Return an array of a policy in float32, after checking that its numbers are finite."""
    if arrays[name].dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {arrays[name].dtype}, not numbers")
    with np.errstate(over="ignore"):
        array = np.asarray(arrays[name], np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN, Inf or too large a number")
    return array


def network_dims(layers: list[tuple[np.ndarray, np.ndarray]]) -> tuple[int, int]:
    """Return a network's input and output size, after checking that its layers fit together."""
    shapes = [(weight.shape, bias.shape) for weight, bias in layers]
    if any(len(weight) != 2 or bias != weight[1:] for weight, bias in shapes) or any(
        before[1] != after[0] for (before, _), (after, _) in pairwise(shapes)
    ):
        raise ValueError(f"its layers do not fit together: {shapes}")
    return shapes[0][0][0], shapes[-1][0][1]


LAYOUTS = {"w0": SquashedGaussian, "l0_weight": ScaledGaussian}


def load_actor(path: Path) -> Actor:
    arrays, _ = read_npz(path, "policy file")
    for first, layout in LAYOUTS.items():
        if first in arrays:
            return build_actor(layout, arrays, path)
    raise UserError(f"{path}: not a policy file (no {' or '.join(LAYOUTS)} in it)")


def build_actor(layout: Any, arrays: Arrays, path: Path, *options: Any) -> Any:
    """Build an actor of this layout; raise an error of one line if the arrays do not fit it."""
    try:
        return layout(arrays, *options)
    except KeyError as error:
        raise UserError(f"{path}: not a {layout.__name__} policy: missing {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: not a policy file ({first_line(error)})") from None


def built_in_path(name: str) -> Path:
    return BUILT_IN / f"{name}.npz"


def built_in_names(env_id: str = "") -> list[str]:
    """The names of the built-in policies, or of those that act in an environment."""
    names = sorted(path.stem for path in BUILT_IN.glob("*.npz"))
    return [name for name in names if env_id.rpartition("/")[2].startswith(name.partition("-")[0])] if env_id else names


def policy_path(name: Path) -> Path:
    """Return the file of a policy: this one, or the built-in policy of this name."""
    return built_in_path(str(name)) if not name.exists() and str(name) in built_in_names() else name


def load_built_in(name: str) -> Actor:
    return load_actor(built_in_path(name))
