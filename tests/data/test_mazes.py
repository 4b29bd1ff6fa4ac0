import gymnasium
import numpy as np
import pytest

import edp.envs  # noqa: F401
from edp.data.mazes import WaypointAnt, cell_of, distances, waypoint
from edp.envs.antmaze import MAZES, cells, centre


@pytest.mark.parametrize("maze", MAZES)
def test_every_free_cell_has_a_way_to_the_goal(maze):
    (goal,) = cells(maze, "G")
    found = distances(maze, goal)
    assert set(found) == set(cells(maze, " RG"))
    for cell in found:
        assert cell_of(centre(cell)) == cell
        if cell != goal:
            following = cell_of(waypoint(maze, centre(cell), centre(goal)))
            assert found[following] == found[cell] - 1


def test_the_umaze_is_walked_around():
    """From the start right, down, and back left: six steps."""
    (start,), (goal,) = cells("umaze", "R"), cells("umaze", "G")
    assert distances("umaze", goal)[start] == 6
    np.testing.assert_array_equal(waypoint("umaze", np.zeros(2), centre(goal)), [4, 0])
    np.testing.assert_array_equal(waypoint("umaze", np.array([8.2, 0.4]), centre(goal)), [8, 4])
    near = centre(goal) + 0.7
    np.testing.assert_array_equal(waypoint("umaze", centre(goal), near), near)


def test_d4rls_ant_reaches_the_goal_of_the_umaze(reference):
    """In at least 60 % of episodes (in about 90 %)."""
    with np.load(reference("policies/antmaze__d4rl_ant_hierarch_goal_policy.npz"), allow_pickle=False) as arrays:
        ant = WaypointAnt(arrays)
    envs = [gymnasium.make("edp/antmaze-umaze-d4rl-v0", disable_env_checker=True) for _ in range(10)]
    obs, rng = [env.reset(seed=i)[0] for i, env in enumerate(envs)], np.random.default_rng(0)
    running, reached = list(range(10)), 0.0
    while running:
        actions = ant(np.stack([ant.inputs(obs[i], envs[i]) for i in running]), rng)
        for i, action in zip(list(running), actions, strict=True):
            obs[i], reward, terminal, timeout, _ = envs[i].step(action)
            reached += reward
            if terminal or timeout:
                running.remove(i)
    assert reached >= 6
