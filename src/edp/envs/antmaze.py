"""AntMaze with the physics and the mazes of D4RL's ``-v0`` sets, on Gymnasium's ant."""

# pyright: reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs.mujoco import mujoco_env

from edp.envs import physics

MAZES = {
    "umaze": "#####/#R  #/### #/#G  #/#####",
    "medium": "########/#R ##  #/#  #   #/##   ###/#  #   #/# #  # #/#   # G#/########",
    "large": (
        "############/#R   #     #/# ## # # # #/#      #   #/# #### ### #/#  # #     #/## # # # ###/#  #   # G #/"
        "############"
    ),
}
DENSITY = 5.0
CELL, HEIGHT = 4.0, 2.0  # of the boxes that walls are made of
REACHED = 0.5  # distance from the goal that ends an episode
MODEL = Path(mujoco_env.__file__).parent / "assets" / "ant.xml"


def cells(maze: str, kinds: str) -> list[tuple[int, int]]:
    """(row, column) of the cells of these kinds."""
    rows = MAZES[maze].split("/")
    return [(i, j) for i, row in enumerate(rows) for j, kind in enumerate(row) if kind in kinds]


def centre(cell: tuple[int, int]) -> np.ndarray:
    """The x and y of a cell's centre. The start cell is the origin."""
    row, column = cell
    return CELL * np.array([column - 1.0, row - 1.0])


def around(cell: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """A goal in the cell, as D4RL draws it."""
    return centre(cell) + rng.uniform(0, 1, 2) + rng.uniform(0, 0.5, 2)


def xml(maze: str) -> str:
    """Gymnasium's ant with D4RL's time step, gears and contacts, among walls."""
    root = ElementTree.parse(MODEL).getroot()
    (option,), (geom,), (world,) = (root.findall(path) for path in ("option", "default/geom", "worldbody"))
    option.set("timestep", "0.02")
    geom.attrib |= {"solref": ".02 1", "solimp": ".8 .8 .01"}
    for motor in root.iter("motor"):
        motor.set("gear", "30")
    for cell in cells(maze, "#"):
        x, y = centre(cell)
        ElementTree.SubElement(
            world,
            "geom",
            name=f"wall_{cell[0]}_{cell[1]}",
            type="box",
            pos=f"{x} {y} {HEIGHT / 2}",
            size=f"{CELL / 2} {CELL / 2} {HEIGHT / 2}",
            contype="1",
            conaffinity="1",
            rgba="0.7 0.5 0.3 1",
        )
    return ElementTree.tostring(root, encoding="unicode")


class AntMaze(mujoco_env.MujocoEnv):
    """An ant in a maze: the reward is 1 where it reaches the goal, which ends the episode."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, maze: str, **options):
        self.maze, self.start, self.goal = maze, np.zeros(2), np.full(2, np.nan)  # drawn at the first reset
        space = gymnasium.spaces.Box(-np.inf, np.inf, (29,), np.float64)
        super().__init__(str(MODEL), frame_skip=5, observation_space=space, **options)

    def _initialize_simulation(self):
        model = mujoco.MjModel.from_xml_string(xml(self.maze))
        physics.use_cylinder_inertias(model, DENSITY)
        physics.correct_contacts(model)
        data = mujoco.MjData(model)
        mujoco.mj_setConst(model, data)
        return model, data

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """``options`` may give the x and y of a "start" (for this episode) and of a "goal" (from now on)."""
        options = options or {}
        if "goal" in options:
            self.goal = np.asarray(options["goal"], float)
        elif seed is not None:
            self.goal = np.full(2, np.nan)  # a new seed draws a new goal
        self.start = np.asarray(options.get("start", (0, 0)), float)
        return super().reset(seed=seed)

    def reset_model(self):
        """D4RL's noise around the start; a goal is drawn once for the environment."""
        if np.isnan(self.goal).any():
            (cell,) = cells(self.maze, "G")
            self.goal = around(cell, self.np_random)
        qpos = self.init_qpos + self.np_random.uniform(-0.1, 0.1, self.model.nq)
        qpos[:2] += self.start
        self.set_state(qpos, self.init_qvel + 0.1 * self.np_random.standard_normal(self.model.nv))
        return self.observe()

    def observe(self) -> np.ndarray:
        return np.concatenate([self.data.qpos, self.data.qvel])

    def step(self, action):
        self.do_simulation(action, self.frame_skip)
        obs = self.observe()
        reached = bool(np.linalg.norm(obs[:2] - self.goal) <= REACHED)
        if self.render_mode == "human":
            self.render()
        return obs, float(reached), reached, False, {"goal": self.goal.copy()}
