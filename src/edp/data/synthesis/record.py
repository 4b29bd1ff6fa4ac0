"""Recording the steps of any Gymnasium environment."""

import json
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from edp.data.log import Log, Steps
from edp.envs.make import MOST_STEPS, action_range, import_user_module, is_endless, make_env, with_time_limit
from edp.errors import UserError, first_line

Policy = Callable[[np.ndarray], Any]


class Recorder(gymnasium.Wrapper):
    """A wrapper that records every step of an environment; ``log()`` returns them.

    Observations and actions of several parts are recorded as rows of numbers, in the order of
    ``gymnasium.spaces.flatten``.
    """

    def __init__(self, env: gymnasium.Env):
        if not isinstance(env.action_space, spaces.Box):
            raise UserError(f"{env}: its actions are {type(env.action_space).__name__}, and only Box is supported")
        super().__init__(env)
        self.steps: list[tuple] = []
        self.before: np.ndarray | None = None

    def reset(self, **options: Any) -> Any:
        if self.steps and not (self.steps[-1][3] or self.steps[-1][4]):
            self.steps[-1] = (*self.steps[-1][:4], True, self.steps[-1][5])  # the episode was left
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
        """Return the number of steps of each episode that has ended."""
        ends = [number for number, step in enumerate(self.steps, 1) if step[3] or step[4]]
        return [end - start for start, end in zip([0, *ends], ends, strict=False)]

    def log(self) -> Log:
        if not self.steps:
            raise UserError("nothing has been recorded: reset the environment and step through it first")
        obs, actions, rewards, terminals, timeouts, after = zip(*self.steps, strict=True)
        timeouts = np.array(timeouts) & ~np.array(terminals)
        timeouts[-1] |= not terminals[-1]  # the recording ends here
        columns = np.array(obs), np.array(actions), np.array(rewards), np.array(terminals), timeouts, np.array(after)
        steps, name = Steps(*columns), self.spec.id if self.spec else type(self.unwrapped).__name__
        low, high = action_range(self.env)
        env, options = name_and_options(self.env)
        return Log(name, lambda: iter([steps]), len(self.steps), env=env, env_options=options, low=low, high=high)


def name_and_options(env: gymnasium.Env) -> tuple[str, dict[str, Any]]:
    """Return the id and the options of an environment, or nothing if the options cannot be written as JSON."""
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
    clip: bool = False,
    on_progress: Callable[[int], None] = lambda done: None,
    on_note: Callable[[str], None] = warnings.warn,
) -> Log:
    """Record whole episodes of a policy (any callable from observation to action), or of random actions without one.

    Episode ``i`` starts with the seed ``seed + i``. It is cut off after ``max_steps``, by default the environment's
    limit or 10,000 steps. If the policy has a method ``reset``, it is called before each episode. With ``clip``,
    actions are brought into the environment's range before they are taken: training refuses actions outside of it.
    """
    recorder = Recorder(open_env(env, max_steps))
    recorder.action_space.seed(seed)
    act = policy or (lambda obs: recorder.action_space.sample())
    begin = getattr(policy, "reset", None)
    outside = 0
    for number in range(episodes):
        where = f"in episode {number}"
        obs, _ = call_user_code(f"the environment, {where}", recorder.reset, seed=seed + number)
        if callable(begin):
            call_user_code(f"the policy's reset, {where}", begin)
        over = False
        while not over:
            chosen = call_user_code(f"the policy, {where}", act, obs)
            action = checked_action(chosen, recorder.action_space, obs)
            within = clipped(action, recorder.action_space)
            outside += bool((within != action).any())
            action = within if clip else action
            obs, _, terminal, timeout, _ = call_user_code(f"the environment, {where}", recorder.step, action)
            over = terminal or timeout
        on_progress(number + 1)
    cut = recorder.lengths().count(MOST_STEPS) if is_endless(recorder) else 0
    if cut:
        what = "1 episode was" if episodes == 1 else f"{cut} of {episodes} episodes were"
        on_note(f"{what} cut off after {MOST_STEPS:,} steps: the environment has no limit")
    if outside:
        which = f"{outside:,} of {len(recorder.steps):,} actions were outside of the environment's range"
        what = "clipped" if clip else "recorded as they were given: training refuses them, and `clip` clips them"
        on_note(f"{which}, and {what}")
    return recorder.log()


def call_user_code(who: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call the user's code, and report an exception in one line."""
    try:
        return call(*arguments, **options)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{who}: {type(error).__name__}: {first_line(error)}") from error


def open_env(env: gymnasium.Env | str, max_steps: int | None) -> gymnasium.Env:
    if max_steps is None:
        return make_env(env) if isinstance(env, str) else with_time_limit(env)
    if max_steps < 1:
        raise UserError(f"max_steps must be at least 1, not {max_steps}")
    return make_env(env, max_episode_steps=max_steps) if isinstance(env, str) else TimeLimit(env, max_steps)


def checked_action(action: Any, space: Any, obs: Any) -> np.ndarray:
    try:
        numbers = np.asarray(action, space.dtype)
    except (TypeError, ValueError) as error:
        raise UserError(f"the policy did not return numbers ({first_line(error)})") from None
    if numbers.size != int(np.prod(space.shape)) or not np.isfinite(numbers).all():
        raise UserError(f"the policy returned {action!r} for {obs!r}, and an action is {space.shape} finite numbers")
    return numbers.reshape(space.shape)


def clipped(action: np.ndarray, space: Any) -> np.ndarray:
    """Bring an action into the range of its space; a range may be infinite."""
    return np.clip(action, space.low, space.high)


def load_callable(name: str) -> Policy:
    """Import ``module:function``. A class is called without arguments to make the policy."""
    module, _, attribute = name.partition(":")
    try:
        policy = import_user_module(module)
        for part in attribute.split("."):
            policy = getattr(policy, part)
        policy = policy() if isinstance(policy, type) else policy
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"`policy={name}`: {type(error).__name__}: {first_line(error)}") from None
    if not callable(policy):
        raise UserError(f"`policy={name}`: not something that can be called with an observation")
    return policy
