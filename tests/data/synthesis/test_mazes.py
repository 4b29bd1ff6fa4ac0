import h5py
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
    (goal,), rng = cells(maze, "G"), np.random.default_rng(0)
    found = distances(maze, goal)
    assert set(found) == set(cells(maze, " RG"))
    for cell in found:
        assert cell_of(centre(cell)) == cell
        if cell != goal:
            following = cell_of(waypoint(maze, centre(cell), centre(goal), rng))
            assert found[following] == found[cell] - 1


def test_the_umaze_is_walked_around():
    """From the start right, down, and back left: six steps. The ant turns where it has passed the centre of a cell."""
    (start,), (goal,), rng = cells("umaze", "R"), cells("umaze", "G"), np.random.default_rng(0)
    near = centre(goal) + 0.7
    assert distances("umaze", goal)[start] == 6

    def points(place: list[float]) -> np.ndarray:
        return np.array([waypoint("umaze", np.array(place), near, rng) for _ in range(200)])

    for place, cell in (
        ([-0.3, -0.2], [4, 0]),
        ([3.9, 1.0], [4, 0]),
        ([7.9, 1.0], [8, 0]),
        ([8.1, 1.0], [8, 4]),
        ([8.5, 4.2], [8, 8]),
        ([8.5, 8.1], [4, 8]),
    ):
        aside = points(place) - np.array(cell)
        assert aside.min() >= 0 and 0.9 < aside.max() <= 1, place
    assert (points([7.5, 8.5]) == near).all() and (points([0.5, 8.5]) == near).all()


def test_recorded_ants_turn_where_this_planner_turns(reference):
    """In D4RL's own file, the ant passes x = 8 before it goes up, and y = 8 before it goes left."""
    with h5py.File(reference("fixtures/antmaze-umaze-v0.hdf5")) as file:
        places = np.asarray(file["observations"])[:, :2]
    for episode in (places[:701], places[701:]):
        up = np.argmax(episode[:, 1] > 3.5)
        left = up + np.argmax(episode[up:, 0] < 7.5)
        assert episode[:up, 0].max() > 8.5
        assert episode[up:left, 1].max() > 8


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
