"""The registry against D4RL's own names and numbers."""

from dataclasses import asdict
from hashlib import sha256

import gymnasium
import numpy as np
import pytest

import edp.envs  # noqa: F401
from edp.config.defaults import DOMAINS
from edp.data import tasks
from edp.data.log import Log
from edp.data.published_files import FILES
from edp.errors import UserError
from support.logs import read_hdf5

PUBLISHED = [task for task in tasks.TASKS.values() if not task.local]


def test_tasks_know_d4rls_scores_and_file_names():
    hopper = tasks.get_task("hopper-medium-replay-v2")
    assert hopper.score(np.array([-20.272305, 3234.3])) == pytest.approx([0, 100])
    assert hopper.file == "hopper_medium_replay-v2.hdf5"
    with pytest.raises(UserError, match="did you mean 'hopper-medium-v2'"):
        tasks.get_task("hoper-medium-v2")


@pytest.mark.parametrize("task", PUBLISHED, ids=lambda task: task.name)
def test_every_task_is_complete(task):
    assert task.domain in DOMAINS
    assert task.url.endswith(task.file)
    assert task.size and len(task.sha256) == 64
    assert gymnasium.spec(task.env).max_episode_steps <= 1000
    assert task.score(task.min_return) == 0
    assert task.score(task.max_return) == pytest.approx(100)


def test_files_have_d4rls_own_names():
    names = {name: tasks.get_task(name).url for name in tasks.TASKS}
    assert names["hopper-medium-replay-v2"] == "gym_mujoco_v2/hopper_medium_replay-v2.hdf5"
    prefix = "ant_maze_new/Ant_maze_"
    assert names["antmaze-umaze-v0"] == f"{prefix}u-maze_noisy_multistart_False_multigoal_False_sparse.hdf5"
    assert names["antmaze-umaze-diverse-v0"] == f"{prefix}u-maze_noisy_multistart_True_multigoal_True_sparse.hdf5"
    assert names["antmaze-medium-play-v0"] == f"{prefix}big-maze_noisy_multistart_True_multigoal_False_sparse.hdf5"
    assert names["antmaze-large-diverse-v0"] == f"{prefix}hardest-maze_noisy_multistart_True_multigoal_True_sparse.hdf5"


def test_the_published_size_and_sum_are_those_of_a_genuine_file(reference):
    task = tasks.get_task("kitchen-complete-v0")
    content = reference(f"kitchen/{task.file}").read_bytes()
    assert (len(content), sha256(content).hexdigest()) == (task.size, task.sha256)
    assert set(FILES) == {task.url for task in PUBLISHED}


def test_genuine_kitchen_data_scores_a_hundred(reference):
    """All 19 episodes end with four tasks done, whatever the sum of the file's rewards is."""
    task = tasks.get_task("kitchen-complete-v0")
    dataset = read_hdf5(reference(f"kitchen/{task.file}"), task.episode_limit, task.episode_return)
    assert len(dataset.returns) == 19
    assert task.score(dataset.returns.mean()) == 100
    assert dataset.obs.shape == (3680, 60)


@pytest.mark.parametrize("name", ["hopper-medium-v2", "walker2d-medium-v2", "antmaze-umaze-v0", "pen-human-v1"])
def test_sizes_are_those_of_the_environment(name):
    task = tasks.get_task(name)
    env = task.make_env()
    assert task.dims == (*env.observation_space.shape, *env.action_space.shape)


def test_every_task_has_its_sizes():
    assert all(min(task.dims) > 0 for task in tasks.TASKS.values())
    assert tasks.get_task("kitchen-mixed-v0").dims == (60, 9)
    assert tasks.get_task("halfcheetah-medium-v2").dims == (17, 6)


def test_a_task_of_an_older_version_has_no_sizes():
    content = asdict(tasks.own_task("a.csv", Log("a.csv", lambda: iter([])), ""))
    assert tasks.own_task_from_json(content).dims == (0, 0)
    assert tasks.own_task_from_json({key: value for key, value in content.items() if key != "dims"}).dims == (0, 0)
