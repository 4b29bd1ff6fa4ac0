"""Steps of any Gymnasium environment, recorded while something acts in it."""

import json
import warnings
from collections.abc import Callable
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from edp.data.log import Log, Steps
from edp.envs.make import MOST_STEPS, action_range, import_here, is_endless, limited, make_env
from edp.errors import UserError, first_line

Policy = Callable[[np.ndarray], Any]


class Recorder(gymnasium.Wrapper):
    """Keeps every step that is made in an environment, by whomever; ``log()`` gives them.

    Observations and actions of many parts are kept as rows of numbers, in the order of ``gymnasium.spaces.flatten``.
    """

    def __init__(self, env: gymnasium.Env):
        if not isinstance(env.action_space, spaces.Box):
            raise UserError(f"{env}: its actions are {type(env.action_space).__name__}, and only numbers can be kept")
        super().__init__(env)
        self.steps: list[tuple] = []
        self.before: np.ndarray | None = None

    def reset(self, **options: Any) -> Any:
        if self.steps and not (self.steps[-1][3] or self.steps[-1][4]):
            self.steps[-1] = (*self.steps[-1][:4], True, self.steps[-1][5])  # it was left
        obs, info = self.env.reset(**options)
        self.before = self.flat(obs)
        return obs, info

    def step(self, action: Any) -> Any:
        obs, reward, terminal, timeout, info = self.env.step(action)
        after = self.flat(obs)
        taken = np.asarray(action, np.float32).ravel()
        self.steps.append((self.before, taken, float(reward), bool(terminal), bool(timeout), after))
        self.before = after
        return obs, reward, terminal, timeout, info

    def flat(self, obs: Any) -> np.ndarray:
        return np.asarray(spaces.flatten(self.env.observation_space, obs), np.float32)

    def lengths(self) -> list[int]:
        """Steps of each episode that has ended."""
        ends = [number for number, step in enumerate(self.steps, 1) if step[3] or step[4]]
        return [end - start for start, end in zip([0, *ends], ends, strict=False)]

    def outside(self) -> int:
        """How many actions were not in the environment's range."""
        actions, space = np.array([step[1] for step in self.steps]), cast(spaces.Box, self.action_space)
        low, high = (side.astype(np.float32).ravel() for side in (space.low, space.high))
        return int(((actions < low) | (actions > high)).any(axis=1).sum())

    def log(self) -> Log:
        if not self.steps:
            raise UserError("nothing has been recorded: reset the environment and step through it first")
        obs, actions, rewards, terminals, timeouts, after = zip(*self.steps, strict=True)
        timeouts = np.array(timeouts) & ~np.array(terminals)
        timeouts[-1] |= not terminals[-1]  # nothing comes after it
        columns = np.array(obs), np.array(actions), np.array(rewards), np.array(terminals), timeouts, np.array(after)
        steps, name = Steps(*columns), self.spec.id if self.spec else type(self.unwrapped).__name__
        low, high = action_range(self.env)
        env, options = name_and_options(self.env)
        return Log(name, lambda: iter([steps]), len(self.steps), env=env, env_options=options, low=low, high=high)


def name_and_options(env: gymnasium.Env) -> tuple[str, dict[str, Any]]:
    """What makes this environment again; nothing if its options cannot be written down."""
    if not env.spec:
        return "", {}
    options = {name: value for name, value in env.spec.kwargs.items() if name != "render_mode"}
    if env.spec.max_episode_steps and not is_endless(env):
        options["max_episode_steps"] = env.spec.max_episode_steps
    try:
        return env.spec.id, json.loads(json.dumps(options))
    except (TypeError, ValueError):
        return "", {}


def record(
    env: gymnasium.Env | str,
    policy: Policy | None = None,
    *,
    episodes: int = 10,
    seed: int = 0,
    max_steps: int | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
    on_note: Callable[[str], None] = warnings.warn,
) -> Log:
    """Whole episodes of a policy, any callable from observation to action; without one, of random actions.

    Episode ``i`` starts from ``seed + i``, and is cut off after ``max_steps`` (10,000, if neither that nor the
    environment sets a limit). A policy with a method ``reset`` is told where an episode begins.
    """
    recorder = Recorder(with_limit(env, max_steps))
    recorder.action_space.seed(seed)
    act = policy or (lambda obs: recorder.action_space.sample())
    begin = getattr(policy, "reset", None)
    for number in range(episodes):
        where = f"in episode {number}"
        obs, _ = told(f"the environment, {where}", recorder.reset, seed=seed + number)
        if callable(begin):
            told(f"the policy's reset, {where}", begin)
        over = False
        while not over:
            chosen = told(f"the policy, {where}", act, obs)
            action = checked_action(chosen, recorder.action_space, obs)
            obs, _, terminal, timeout, _ = told(f"the environment, {where}", recorder.step, action)
            over = terminal or timeout
        on_progress(number + 1)
    cut = recorder.lengths().count(MOST_STEPS) if is_endless(recorder) else 0
    if cut:
        on_note(
            f"{cut} of {episodes} episodes were cut off after {MOST_STEPS:,} steps, for the environment has no limit"
        )
    outside = recorder.outside()
    if outside:
        on_note(
            f"{outside:,} of {len(recorder.steps):,} actions are outside of the environment's range, and are recorded "
            "as they were given"
        )
    return recorder.log()


def told(who: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What the user's own code gives; what it raises is told in one line."""
    try:
        return call(*arguments, **options)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{who}: {type(error).__name__}: {first_line(error)}") from error


def with_limit(env: gymnasium.Env | str, max_steps: int | None) -> gymnasium.Env:
    if max_steps is None:
        return make_env(env) if isinstance(env, str) else limited(env)
    if max_steps < 1:
        raise UserError(f"max_steps must be at least 1, not {max_steps}")
    return make_env(env, max_episode_steps=max_steps) if isinstance(env, str) else TimeLimit(env, max_steps)


def checked_action(action: Any, space: Any, obs: Any) -> np.ndarray:
    try:
        found = np.asarray(action, space.dtype)
    except (TypeError, ValueError) as error:
        raise UserError(f"the policy gave no numbers ({first_line(error)})") from None
    if found.size != int(np.prod(space.shape)) or not np.isfinite(found).all():
        raise UserError(f"the policy gave {action!r} for {obs!r}, and an action is {space.shape} finite numbers")
    return found.reshape(space.shape)


def load_callable(name: str) -> Policy:
    """``module:function``, as the user names it; a class makes the policy when it is called without arguments."""
    module, _, attribute = name.partition(":")
    try:
        found = import_here(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        found = found() if isinstance(found, type) else found
    except Exception as error:  # it is the user's code
        raise UserError(f"--policy {name}: {type(error).__name__}: {first_line(error)}") from None
    if not callable(found):
        raise UserError(f"--policy {name}: not something that can be called with an observation")
    return found
