"""How D4RL collected its AntMaze data: an ant that walks towards waypoints on the shortest way to its goal."""

from collections import deque
from functools import cache

import gymnasium
import numpy as np

from edp.data.behaviours import SquashedGaussian
from edp.envs.antmaze import CELL, cells, centre

STRIDE = 10.0  # length of the vector that points the ant to its waypoint


class WaypointAnt(SquashedGaussian):
    """A goal-reaching ant: it sees its own body, and where to go."""

    def inputs(self, obs: np.ndarray, env: gymnasium.Env) -> np.ndarray:
        maze = env.unwrapped
        ahead = waypoint(maze.maze, obs[:2], maze.goal) - obs[:2]  # pyright: ignore
        return np.concatenate([obs[2:], STRIDE * ahead / max(float(np.linalg.norm(ahead)), 1e-6)])


def cell_of(place: np.ndarray) -> tuple[int, int]:
    """(row, column) of the cell that a place lies in."""
    column, row = np.round(np.asarray(place) / CELL).astype(int) + 1
    return int(row), int(column)


def waypoint(maze: str, place: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The centre of the next cell on the shortest way to the goal, or the goal itself in its own cell."""
    here, there = cell_of(place), nearest_free(maze, cell_of(goal))
    if here == there:
        return goal
    distance = distances(maze, there)
    return centre(min(neighbours(here), key=lambda cell: distance.get(cell, len(distance) + 1)))


def neighbours(cell: tuple[int, int]) -> list[tuple[int, int]]:
    row, column = cell
    return [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]


def nearest_free(maze: str, cell: tuple[int, int]) -> tuple[int, int]:
    """The cell, or, if it is a wall (goals may lie on the border), the free one that is nearest."""
    free = cells(maze, " RG")
    return min(free, key=lambda other: (other[0] - cell[0]) ** 2 + (other[1] - cell[1]) ** 2)


@cache
def distances(maze: str, goal: tuple[int, int]) -> dict[tuple[int, int], int]:
    """How many cells each free cell is away from the goal's."""
    free, found, queue = set(cells(maze, " RG")), {goal: 0}, deque([goal])
    while queue:
        cell = queue.popleft()
        for other in neighbours(cell):
            if other in free and other not in found:
                found[other] = found[cell] + 1
                queue.append(other)
    return found
