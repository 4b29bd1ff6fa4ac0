"""AntMaze, pen and kitchen against D4RL's recordings, and all environments against states that we recorded."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
import sys
from pathlib import Path

import gymnasium
import h5py
import mujoco
import numpy as np
import pytest

import edp.envs  # noqa: F401
from edp.envs import antmaze, physics
from edp.envs.kitchen import TASKS

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from record_states import ENVS, simulator


def make(env_id):
    return gymnasium.make(env_id, disable_env_checker=True)


def load(path, *keys):
    with h5py.File(path) as file:
        return [file[key][()] for key in keys]


@pytest.mark.parametrize(("maze", "name"), [("umaze", "antmaze-umaze-v0"), ("medium", "antmaze-medium-play-v0")])
def test_antmaze_steps_as_recorded(reference, maze, name):
    """A row holds the state before the step in its observation, and the one after it in its infos."""
    path = reference(f"fixtures/{name}.hdf5")
    obs, actions, qvel = load(path, "observations", "actions", "infos/qvel")
    env = make(f"edp/antmaze-{maze}-d4rl-v0").unwrapped
    env.reset(seed=0)
    errors = []
    for before, action, after in zip(obs.astype(float), actions, qvel, strict=True):
        env.set_state(before[:15], before[15:])
        env.do_simulation(action, env.frame_skip)
        errors.append(np.abs(env.data.qvel - after).max())
    assert np.median(errors) < 4e-7
    assert np.sum(np.array(errors) > 1e-4) <= 4  # of 1,402 and of 1,998 rows


@pytest.mark.parametrize("name", ["pen-human-v1", "pen-cloned-v1"])
def test_pen_observes_and_rewards_as_recorded(reference, name):
    path = reference(f"fixtures/{name}.hdf5")
    obs, actions, rewards, ends = load(path, "observations", "actions", "rewards", "timeouts")
    states = load(path, "infos/qpos", "infos/qvel", "infos/desired_orien")
    env = make("edp/pen-d4rl-v1").unwrapped
    env.reset(seed=0)
    for t in np.flatnonzero(~ends)[:-1]:
        qpos, qvel, orientation = (column[t].astype(float) for column in states)
        env.set_env_state({"qpos": qpos, "qvel": qvel, "desired_orien": orientation})
        after, reward, *_ = env.step(actions[t])
        np.testing.assert_allclose(after, obs[t + 1], atol=5e-6)
        assert reward == pytest.approx(rewards[t], abs=1e-5)


def test_recorded_kitchen_episodes_complete_all_tasks(reference):
    """When each control starts from the recorded, noisy positions, as it did."""
    path = reference("kitchen/mini_kitchen_microwave_kettle_light_slider-v0.hdf5")
    obs, actions, terminals, timeouts = load(path, "observations", "actions", "terminals", "timeouts")
    env = make("edp/kitchen-complete-d4rl-v0").unwrapped
    np.testing.assert_allclose(obs[0, 30:], env.goal, atol=1e-6)
    done, start = [], 0
    for end in np.flatnonzero(terminals.astype(bool) | timeouts.astype(bool)):
        env.reset(seed=0)
        total = 0.0
        for t in range(start, end + 1):
            env.robot._last_robot_qpos = obs[t, :9].astype(float)
            _, reward, over, _, _ = env.step(actions[t])
            total += reward
            if over:
                break
        done.append(total)
        start = end + 1
    assert done == [4.0] * 19


@pytest.mark.parametrize("name", ENVS)
def test_one_step_from_our_own_recorded_states(name):
    """Other machines and versions of MuJoCo are compared with the version that was checked."""
    if name == "kitchen" and physics.INSTALLED != (3, 2):
        pytest.skip("other versions step the kitchen a little differently (but complete the recorded episodes)")
    with np.load(Path(__file__).with_name("recorded.npz")) as file:
        columns = {key.split("/")[1]: file[key] for key in file.files if key.startswith(f"{name}/")}
    env = make(ENVS[name])
    env.reset(seed=0)
    robot, errors = simulator(env), []
    for row in range(len(columns["qpos"])):
        robot.set_state(columns["qpos"][row], columns["qvel"][row])
        robot.data.qacc_warmstart[:] = columns["warmstart"][row]
        robot.do_simulation(columns["ctrl"][row], robot.frame_skip)
        errors.append(np.abs(robot.data.qvel - columns["next_qvel"][row]).max())
    assert np.median(errors) < 1e-9
    assert np.max(errors) < 1e-5


@pytest.mark.parametrize("maze", antmaze.MAZES)
def test_antmaze_goals_and_ends(maze):
    env = make(f"edp/antmaze-{maze}-d4rl-v0")
    assert env.spec.max_episode_steps == (700 if maze == "umaze" else 1000)
    inner = env.unwrapped
    goals = []
    for seed in (0, 0, 1):
        obs, _ = env.reset(seed=seed)
        assert np.abs(obs[:2]).max() < 0.2
        goals.append(inner.goal)
    np.testing.assert_array_equal(goals[0], goals[1])
    assert (goals[0] != goals[2]).any()
    env.reset()
    np.testing.assert_array_equal(inner.goal, goals[2])  # drawn once for an environment
    (cell,) = antmaze.cells(maze, "G")
    offset = goals[0] - antmaze.centre(cell)
    assert (offset >= 0).all() and (offset <= 1.5).all()
    qpos = inner.data.qpos.copy()
    qpos[:2] = inner.goal + np.array([0.3, 0.0])
    inner.set_state(qpos, inner.data.qvel.copy())
    _, reward, terminal, _, _ = env.step(np.zeros(8))
    assert (reward, terminal) == (1.0, True)


def test_the_pen_ends_when_it_is_dropped():
    env = make("edp/pen-d4rl-v1")
    env.reset(seed=0)
    inner = env.unwrapped
    assert not env.step(np.zeros(24))[2]
    inner.data.qpos[-6] += 0.3  # the pen's way down
    mujoco.mj_forward(inner.model, inner.data)
    assert env.step(np.zeros(24))[2]


@pytest.mark.parametrize("variant", TASKS)
def test_kitchen_resets_alike_and_rewards_each_task_once(variant):
    env = make(f"edp/kitchen-{variant}-d4rl-v0")
    first, _ = env.reset(seed=0)
    for _ in range(10):
        env.step(env.action_space.sample())
    again, _ = env.reset(seed=0)
    np.testing.assert_array_equal(first, again)
    inner = env.unwrapped
    near = inner.goal.copy()
    near[:9] = first[:9]
    assert inner.done(near) == set(TASKS[variant])
    assert inner.done(first) == set()
    assert env.observation_space.shape == (60,)


def test_a_version_that_was_not_checked_warns_once():
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    physics.warn_once.cache_clear()
    with pytest.warns(UserWarning, match=r"MuJoCo 3.1 was not checked"):
        physics.correct_contacts(model, (3, 1))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        physics.correct_contacts(model, (3, 1))
        physics.correct_contacts(model, (3, 2))
