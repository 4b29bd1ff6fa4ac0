import numpy as np
import pytest

import edp.envs  # noqa: F401
from edp.data import tasks
from edp.data.synthesis import lookalikes
from edp.data.synthesis.mazes import cell_of, distances, waypoint
from edp.envs.antmaze import MAZES, cells, centre
from support.logs import read_hdf5


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


def test_d4rls_ant_reaches_the_goal_of_the_umaze(reference, monkeypatch, tmp_path):
    """In at least 60 % of the episodes of a look-alike, which go on to their limit."""
    path = tmp_path / "umaze.hdf5"
    policy = reference("policies/antmaze__d4rl_ant_hierarch_goal_policy.npz")
    make_look_alike("antmaze-umaze-v0", path, policy, transitions=8400)
    data = read_hdf5(path, 700, "reached")
    assert data.regenerated == "antmaze-umaze-v0"
    assert len(data.returns) == 12
    assert data.returns.mean() >= 0.6
    assert data.reward.sum() == (1 - data.not_done).sum() > data.returns.sum()  # it stays where it arrived


def make_look_alike(name, path, policy, transitions):
    task = tasks.get_task(name)
    noise = lookalikes.default_noise(task)
    lookalikes.make_look_alike(task, path, [(policy, 1.0)], None, transitions, noise, 0, 1, lambda _: None)
