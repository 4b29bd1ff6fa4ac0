"""A log of a heated room as CSV, the environment that it comes from, and options of a small run."""

from pathlib import Path

import gymnasium
import numpy as np

SMALL = [
    *("--steps", "40", "--epoch-steps", "20", "--eval-every", "20", "--batch-size", "32", "--episodes", "2"),
    *("--hidden", "16", "--critic-hidden", "16", "--calls", "3", "--eas", "2", "--policy-target-after", "0"),
    *("--preset", "edp"),  # without a decay of the learning rate, which depends on the number of steps
]

OPTIONS = {
    **{"steps": 40, "epoch_steps": 20, "eval_every": 20, "batch_size": 32, "hidden": (16,), "episodes": 2},
    **{"critic_hidden": (16,), "calls": 3, "eas": 2, "policy_target_after": 0},
}

COLUMNS = {
    "observation_columns": ("room_c", "outside_c"),
    "action_columns": ("flow_c", "valve_percent"),
    "reward_column": "comfort",
    "episode_column": "day",
}

LOW, HIGH = np.array([18.0, 0.0]), np.array([75.0, 100.0])


def write_csv(path: Path, days: int = 12, hours: int = 10) -> Path:
    rng = np.random.default_rng(0)
    lines = ["day,room_c,outside_c,flow_c,valve_percent,comfort,operator"]
    for day in range(days):
        room = rng.uniform(15, 22)
        for hour in range(hours):
            outside, flow, valve = 5 + 3 * np.sin(hour), rng.uniform(20, 70), rng.uniform(5, 95)
            lines.append(f"mon{day},{room:.3f},{outside:.3f},{flow:.3f},{valve:.3f},{-abs(room - 21):.3f},ann")
            room += 0.01 * (flow - room) * valve / 100
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def flags(columns):
    return [word for name, value in columns.items() for word in ("--" + name.replace("_", "-"), as_text(value))]


def as_text(value):
    return ",".join(value) if isinstance(value, tuple) else value


class Room(gymnasium.Env):
    """Observations of several parts, and actions in other units than [-1, 1]."""

    def __init__(self, goal=21.0):
        self.goal = goal
        box = gymnasium.spaces.Box
        self.observation_space = gymnasium.spaces.Dict({"room": box(0, 40, (1,)), "goal": box(0, 40, (2,))})
        self.action_space = box(np.float32(LOW), np.float32(HIGH))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room, self.step_number = self.np_random.uniform(15, 22), 0
        return self.seen, {}

    @property
    def seen(self):
        return {"room": np.float32([self.room]), "goal": np.float32([self.goal, 20.0])}

    def step(self, action):
        assert self.action_space.contains(np.asarray(action, np.float32)), action
        self.room += 0.01 * (action[0] - self.room) * action[1] / 100
        self.step_number += 1
        return self.seen, -abs(self.room - self.goal), False, False, {}


class Breaking(Room):
    def step(self, action):  # pyright: ignore
        return 1 / 0


class Wrong(Room):
    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample()


gymnasium.register("Room-v0", f"{__name__}:Room", max_episode_steps=15)

gymnasium.register("EndlessRoom-v0", f"{__name__}:Room")

gymnasium.register("Breaking-v0", f"{__name__}:Breaking", max_episode_steps=15, disable_env_checker=True)

gymnasium.register("Wrong-v0", f"{__name__}:Wrong", max_episode_steps=15, disable_env_checker=True)
