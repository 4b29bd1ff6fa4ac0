"""Franka Kitchen with the observations, the noise and the rewards of D4RL's ``kitchen-v0``."""

# pyright: reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false
import gymnasium
import numpy as np

from edp.envs import physics, robotics

NOISE = 0.1
OBJECT_NOISE = NOISE * np.repeat([0.005, 0.0005, 0.005, 0.1, 0.005, 0.1, 0.005], [2, 6, 3, 3, 3, 3, 1])
NEAR = 0.3  # distance from its goal at which a task is done
# task: (where its objects are in the observation, where they should be)
GOALS = {
    "bottom burner": (slice(11, 13), [-0.88, -0.01]),
    "light switch": (slice(17, 19), [-0.69, -0.05]),
    "slide cabinet": (slice(19, 20), [0.37]),
    "microwave": (slice(22, 23), [-0.75]),
    "kettle": (slice(23, 30), [-0.23, 0.75, 1.62, 0.99, 0.0, 0.0, -0.06]),
}
TASKS = {
    "complete": ("microwave", "kettle", "light switch", "slide cabinet"),
    "partial": ("microwave", "kettle", "light switch", "slide cabinet"),
    "mixed": ("microwave", "kettle", "bottom burner", "light switch"),
}


def goal_vector(tasks: tuple[str, ...]) -> np.ndarray:
    """The goal in every observation: zero except for the objects of the tasks."""
    goal = np.zeros(30)
    for where, value in (GOALS[task] for task in tasks):
        goal[where] = value
    return goal


class Kitchen(gymnasium.Env):
    """Four tasks, a reward of 1 for each when it is first done; the episode ends with the last."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array"], "render_fps": 12}  # noqa: RUF012

    def __init__(self, variant: str, **options):
        self.tasks = TASKS[variant]
        self.kitchen = robotics.import_robotics("franka_kitchen").KitchenEnv(
            object_noise_ratio=0.0, robot_noise_ratio=NOISE, **options
        )
        self.robot, self.start = self.kitchen.robot_env, self.kitchen.robot_env.init_qpos.copy()
        physics.correct_contacts(self.robot.model)
        self.render_mode = self.kitchen.render_mode
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (9,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (60,), np.float64)
        self.goal, self.left = goal_vector(self.tasks), set(self.tasks)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed, options=options)
        self.robot.reset(seed=seed)
        self.robot.set_state(self.start, np.zeros(self.robot.model.nv))
        self.left = set(self.tasks)
        return self.observe(self.robot._get_obs()), {}

    def observe(self, robot: np.ndarray) -> np.ndarray:
        """The robot's noisy joints (on which the next control builds), the objects with their noise, and the goal."""
        noise = OBJECT_NOISE * self.np_random.uniform(-1, 1, 21)
        return np.concatenate([robot[:9], self.robot.data.qpos[9:] + noise, self.goal])

    def done(self, obs: np.ndarray) -> set[str]:
        """The tasks that are satisfied in this observation."""
        return {task for task in self.tasks if np.linalg.norm(obs[GOALS[task][0]] - GOALS[task][1]) < NEAR}

    def step(self, action):
        robot, *_ = self.robot.step(action)
        obs = self.observe(robot)
        completed = self.done(obs) & self.left
        self.left -= completed
        return obs, float(len(completed)), not self.left, False, {"completed": sorted(completed)}

    def render(self):
        return self.kitchen.render()

    def close(self):
        self.kitchen.close()
