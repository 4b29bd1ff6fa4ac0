"""Gymnasium environments with flat observations and actions."""

import importlib
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation, TimeLimit, TransformAction

import edp.envs  # noqa: F401  (registers ours)
from edp.envs import robotics
from edp.errors import UserError, first_line

MOST_STEPS = 10_000  # of an episode, in environments without a time limit


class Endless(TimeLimit):
    """A time limit for an environment that has none, whose episodes might never end."""


def make_env(env_id: str, /, **options: Any) -> gymnasium.Env:
    """The environment, with observations and actions flattened in the order of ``gymnasium.spaces.flatten``."""
    try:
        env = gymnasium.make(env_id, disable_env_checker=True, **options)
    except gymnasium.error.Error as error:
        raise UserError(f"environment {env_id!r}: {first_line(error)}") from None
    except Exception as error:  # third-party code may raise anything
        raise UserError(f"environment {env_id!r}: {type(error).__name__}: {first_line(error)}") from error
    env = with_time_limit(env)
    if not is_flat(env.observation_space):
        env = FlattenObservation(env)
    acted = env.action_space
    if not isinstance(acted, spaces.Box):
        raise UserError(f"environment {env_id!r}: its actions are {type(acted).__name__}, and only Box is supported")
    if not is_flat(acted):
        flat: Any = spaces.flatten_space(acted)
        env = TransformAction(env, lambda action: np.reshape(action, acted.shape), flat)
    return env


def import_user_module(module: str) -> Any:
    """Import a module that the user names; it may be in the current folder."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(folder)


def import_env(env_id: str) -> None:
    """Import the module of ``module:ID``, which registers the environment."""
    module, colon, _ = env_id.partition(":")
    if colon:
        try:
            import_user_module(module)
        except Exception as error:  # user code may raise anything
            raise UserError(f"environment {env_id!r}: {type(error).__name__}: {first_line(error)}") from None


def with_time_limit(env: gymnasium.Env) -> gymnasium.Env:
    return env if env.spec and env.spec.max_episode_steps else Endless(env, MOST_STEPS)


def is_endless(env: Any) -> bool:
    """Whether the environment has no time limit except ``MOST_STEPS``."""
    while isinstance(env, gymnasium.Wrapper) and not isinstance(env, Endless):
        env = env.env
    return isinstance(env, Endless)


def is_registered(env_id: str) -> bool:
    """Whether the environment is registered without importing the module in its name."""
    if ":" in env_id:
        return False
    for registers in (lambda: None, robotics.import_robotics):
        registers()
        with suppress(gymnasium.error.Error, ImportError):
            gymnasium.spec(env_id)
            return True
    return False


def is_flat(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def action_range(env: gymnasium.Env) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The lowest and highest actions; empty if they are unbounded."""
    space: Any = env.action_space
    if not np.isfinite([space.low, space.high]).all():
        return (), ()
    return tuple(space.low.tolist()), tuple(space.high.tolist())
