"""D4RL's AntMaze data: an ant that walks towards waypoints on the shortest way to its target.

Each episode has a start and a target, and lasts until its time limit. Rewards and terminals mark steps at the goal of
the evaluation, which may differ from the target.

The planner is D4RL's. It counts a cell as entered where the ant passes the cell's centre, so turns are wide. Its
waypoints lie beside the centres, at a distance that is drawn anew in every step.
"""

from collections import deque
from functools import cache

import gymnasium
import numpy as np

from edp.data.synthesis.behaviours import Arrays, SquashedGaussian
from edp.envs.antmaze import CELL, around, cells, centre

STRIDE = 10.0  # length of the vector that points the ant to its waypoint
ASIDE = 0.25 * CELL  # largest distance of waypoints and starts from the centres of their cells, in x and in y
Cell = tuple[int, int]


class WaypointAnt(SquashedGaussian):
    """An ant that sees its body and the direction of the next waypoint."""

    def __init__(self, arrays: Arrays, maze: str, starts: str = "R", targets: str = "G", goal_seed: int = 0):
        """``starts`` and ``targets`` are the kinds of cells that an episode may lead from and to."""
        super().__init__(arrays)
        self.maze, self.starts, self.targets = maze, cells(maze, starts), cells(maze, targets)
        (goal,) = cells(maze, "G")
        self.goal = around(goal, np.random.default_rng(goal_seed))

    def begin(self, env: gymnasium.Env, seed: int) -> tuple[np.ndarray, tuple[np.ndarray, np.random.Generator]]:
        rng = np.random.default_rng(seed)
        start, target = (options[rng.integers(len(options))] for options in (self.starts, self.targets))
        place = centre(start) if len(self.starts) == 1 else aside(start, rng)
        obs, _ = env.reset(seed=seed, options={"start": place, "goal": self.goal})
        return obs, (around(target, rng), rng)

    def inputs(self, obs: np.ndarray, aim: tuple[np.ndarray, np.random.Generator]) -> np.ndarray:
        ahead = waypoint(self.maze, obs[:2], *aim) - obs[:2]
        return np.concatenate([obs[2:], STRIDE * ahead / max(float(np.linalg.norm(ahead)), 1e-6)])

    def is_over(self, terminal: bool, timeout: bool) -> bool:
        return timeout


def cell_of(place: np.ndarray) -> Cell:
    """Return the (row, column) of the cell whose centre was passed last, in both directions."""
    column, row = (np.maximum(place, 0) // CELL).astype(int) + 1
    return int(row), int(column)


def aside(cell: Cell, rng: np.random.Generator) -> np.ndarray:
    """A random place beside the centre of a cell."""
    return centre(cell) + rng.uniform(0, ASIDE, 2)


def waypoint(maze: str, place: np.ndarray, goal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a place in the next cell on the shortest way to the goal; the goal itself if it is here or there."""
    here, there = cell_of(place), cell_of(goal)
    if here == there:
        return goal
    distance = distances(maze, there)
    following = min(neighbours(here), key=lambda cell: distance.get(cell, len(distance) + 1))
    return goal if following == there else aside(following, rng)


def neighbours(cell: Cell) -> list[Cell]:
    row, column = cell
    return [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]


@cache
def distances(maze: str, goal: Cell) -> dict[Cell, int]:
    """Return the distance of each free cell from the goal's cell."""
    free, distance, queue = set(cells(maze, " RG")), {goal: 0}, deque([goal])
    while queue:
        cell = queue.popleft()
        for other in neighbours(cell):
            if other in free and other not in distance:
                distance[other] = distance[cell] + 1
                queue.append(other)
    return distance
