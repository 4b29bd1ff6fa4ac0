"""D4RL's AntMaze data: an ant that walks towards waypoints on the shortest way to its target.

Each episode has a start and a target, and lasts until its time limit. Rewards and terminals mark steps at the goal of
the evaluation, which may differ from the target.
"""

from collections import deque
from functools import cache

import gymnasium
import numpy as np

from edp.data.synthesis.behaviours import Arrays, SquashedGaussian
from edp.envs.antmaze import CELL, around, cells, centre

STRIDE = 10.0  # length of the vector that points the ant to its waypoint
Cell = tuple[int, int]


class WaypointAnt(SquashedGaussian):
    """An ant that sees its body and the direction of the next waypoint."""

    def __init__(self, arrays: Arrays, maze: str, starts: str = "R", targets: str = "G", goal_seed: int = 0):
        """``starts`` and ``targets`` are the kinds of cells that an episode may lead from and to."""
        super().__init__(arrays)
        self.maze, self.starts, self.targets = maze, cells(maze, starts), cells(maze, targets)
        (goal,) = cells(maze, "G")
        self.goal = around(goal, np.random.default_rng(goal_seed))

    def begin(self, env: gymnasium.Env, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        start, target = (options[rng.integers(len(options))] for options in (self.starts, self.targets))
        obs, _ = env.reset(seed=seed, options={"start": centre(start), "goal": self.goal})
        return obs, around(target, rng)

    def inputs(self, obs: np.ndarray, aim: np.ndarray) -> np.ndarray:
        ahead = waypoint(self.maze, obs[:2], aim) - obs[:2]
        return np.concatenate([obs[2:], STRIDE * ahead / max(float(np.linalg.norm(ahead)), 1e-6)])

    def is_over(self, terminal: bool, timeout: bool) -> bool:
        return timeout


def cell_of(place: np.ndarray) -> Cell:
    """Return the (row, column) of the cell that a place lies in."""
    column, row = np.round(np.asarray(place) / CELL).astype(int) + 1
    return int(row), int(column)


def waypoint(maze: str, place: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the centre of the next cell on the shortest way to the goal, or the goal if it is in this cell."""
    here, there = cell_of(place), nearest_free(maze, cell_of(goal))
    if here == there:
        return goal
    distance = distances(maze, there)
    return centre(min(neighbours(here), key=lambda cell: distance.get(cell, len(distance) + 1)))


def neighbours(cell: Cell) -> list[Cell]:
    row, column = cell
    return [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]


@cache
def nearest_free(maze: str, cell: Cell) -> Cell:
    """Return the nearest free cell. Goals may lie on the border of a wall."""
    free = cells(maze, " RG")
    return min(free, key=lambda other: (other[0] - cell[0]) ** 2 + (other[1] - cell[1]) ** 2)


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
