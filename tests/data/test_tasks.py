"""The registry against D4RL's own names and numbers, and the paper's tables against themselves."""

import gymnasium
import numpy as np
import pytest

import edp.envs  # noqa: F401
from edp.config.defaults import DOMAINS
from edp.data import tasks
from edp.errors import UserError
from edp.report import published
from support.logs import read_hdf5


def test_tasks_know_d4rls_scores_and_file_names():
    hopper = tasks.get("hopper-medium-replay-v2")
    assert hopper.score(np.array([-20.272305, 3234.3])) == pytest.approx([0, 100])
    assert hopper.file == "hopper_medium_replay-v2.hdf5"
    with pytest.raises(UserError, match="did you mean 'hopper-medium-v2'"):
        tasks.get("hoper-medium-v2")


PAPER = published.TABLES

PUBLISHED = [task for task in tasks.TASKS.values() if not task.local]

# What the paper prints, where it is not the mean of its own rows: (table, domain, column): (printed, recomputed).
SLIPS = {
    ("best_and_average", "kitchen", "TD3 best"): (96.0, 82.47),
    ("best_and_average", "adroit", "TD3 best"): (77.9, 62.0),
    ("best_and_average", "antmaze", "TD3 best"): (80.5, 84.8),
    ("best_and_average", "antmaze", "IQL best"): (89.2, 80.83),
}


def test_the_papers_twenty_tasks_are_here():
    assert len(PAPER["overall"]["rows"]) == len(PAPER["reproduce"]["rows"]) == 20
    for table in ("overall", "reproduce", "best_and_average", "td3_eas", "action_approximation"):
        assert PAPER[table]["rows"].keys() <= tasks.TASKS.keys()


@pytest.mark.parametrize("task", PUBLISHED, ids=lambda task: task.name)
def test_every_task_is_complete(task):
    assert task.domain in DOMAINS
    assert task.url.endswith(task.file)
    assert gymnasium.spec(task.env).max_episode_steps <= 1000
    assert task.score(task.min_return) == 0
    assert task.score(task.max_return) == pytest.approx(100)


def test_files_have_d4rls_own_names():
    names = {name: tasks.get(name).url for name in tasks.TASKS}
    assert names["hopper-medium-replay-v2"] == "gym_mujoco_v2/hopper_medium_replay-v2.hdf5"
    prefix = "ant_maze_new/Ant_maze_"
    assert names["antmaze-umaze-v0"] == f"{prefix}u-maze_noisy_multistart_False_multigoal_False_sparse.hdf5"
    assert names["antmaze-umaze-diverse-v0"] == f"{prefix}u-maze_noisy_multistart_False_multigoal_True_sparse.hdf5"
    assert names["antmaze-medium-play-v0"] == f"{prefix}big-maze_noisy_multistart_True_multigoal_False_sparse.hdf5"
    assert names["antmaze-large-diverse-v0"] == f"{prefix}hardest-maze_noisy_multistart_True_multigoal_True_sparse.hdf5"


@pytest.mark.parametrize("table", PAPER)
def test_the_papers_averages_are_those_of_its_rows_but_for_the_known_slips(table):
    rows, columns = PAPER[table]["rows"], PAPER[table]["columns"]
    for domain, averages in PAPER[table]["averages"].items():
        members = [values for name, values in rows.items() if tasks.get(name).domain == domain]
        for column, printed in enumerate(averages):
            numbers = [values[column] for values in members]
            if None in numbers or printed is None:
                continue
            known = SLIPS.get((table, domain, columns[column]))
            if known:
                assert (printed, round(float(np.mean(numbers)), 2)) == known
            else:
                assert np.mean(numbers) == pytest.approx(printed, abs=0.06), (domain, columns[column])


def test_genuine_kitchen_data_scores_a_hundred(reference):
    """All 19 episodes end with four tasks done, whatever the file's own rewards add up to."""
    task = tasks.get("kitchen-complete-v0")
    dataset = read_hdf5(reference(f"kitchen/{task.file}"), task.episode_limit, task.episode_return)
    assert len(dataset.returns) == 19
    assert task.score(dataset.returns.mean()) == 100
    assert dataset.obs.shape == (3680, 60)


def test_the_papers_scores_of_a_pair():
    """Where its table of best scores has slipped, those of the table that it repeats wrongly."""
    assert published.scores(tasks.get("hopper-medium-v2"), "td3bc", "diffusion") == (81.9, 98.6)
    assert published.scores(tasks.get("kitchen-complete-v0"), "iql", "diffusion") == (75.5, 95.0)
    assert published.scores(tasks.get("hopper-medium-v2"), "crr", "gaussian") == (None, None)
    assert published.scores(tasks.get("hopper-medium-v2"), "awr", "diffusion") == (None, None)
    assert published.scores(tasks.get("local/hopper-medium-expert"), "td3bc", "diffusion") == (None, None)
    best = PAPER["reproduce"]["columns"].index("EDP")
    for name, row in PAPER["reproduce"]["rows"].items():
        assert published.scores(tasks.get(name), "td3bc", "diffusion").oms == row[best]
