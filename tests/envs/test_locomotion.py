"""Our physics against D4RL's."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
import gymnasium
import h5py
import mujoco
import numpy as np
import pytest

import edp.envs  # noqa: F401
from edp.envs.physics import use_cylinder_inertias


def make(name):
    return gymnasium.make(f"edp/{name}-d4rl-v2", disable_env_checker=True)


def test_hopper_masses_are_the_old_compilers():
    masses = make("hopper").unwrapped.model.body_mass
    np.testing.assert_allclose(masses[1:], [3.5343, 3.9270, 2.7143, 5.0894], atol=1e-4)


def test_halfcheetah_is_rescaled():
    assert make("halfcheetah").unwrapped.model.body_mass.sum() == pytest.approx(14.0)


@pytest.mark.parametrize("name", ["hopper", "halfcheetah", "walker2d"])
def test_episodes_are_reproducible_and_cut_at_1000_steps(name):
    env = make(name)
    assert env.spec.max_episode_steps == 1000
    ends = []
    for _ in range(2):
        obs, _ = env.reset(seed=3)
        rng = np.random.default_rng(0)
        for _ in range(20):
            obs, *_ = env.step(rng.uniform(-1, 1, env.action_space.shape))
        ends.append(obs)
    np.testing.assert_array_equal(*ends)


def test_inertia_of_one_capsule_by_hand():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><freejoint/><geom type="capsule" size="0.1 0.3" pos="1 0 0"/></body>'
        "</worldbody></mujoco>"
    )
    use_cylinder_inertias(model, 1000.0)
    length = 0.7  # 2 · 0.3 + 0.1
    mass = 1000 * np.pi * 0.1**2 * length
    assert model.body_mass[1] == pytest.approx(mass)
    transverse = mass * (3 * 0.1**2 + length**2) / 12
    np.testing.assert_allclose(np.sort(model.body_inertia[1]), np.sort([mass * 0.1**2 / 2, transverse, transverse]))
    np.testing.assert_allclose(model.body_ipos[1], [1, 0, 0])


def recorded(path):
    with h5py.File(path) as file:
        keys = ("infos/qpos", "infos/qvel", "actions", "rewards", "terminals", "timeouts")
        return [file[key][:] for key in keys]


def test_one_step_parity_with_recorded_hopper_states(reference):
    qpos, qvel, actions, _, terminals, timeouts = recorded(reference("fixtures/hopper_medium-v2.hdf5"))
    env = make("hopper").unwrapped
    env.reset(seed=0)
    errors = []
    for t in np.flatnonzero(~(terminals | timeouts))[:-1]:
        if max(np.abs(qvel[t]).max(), np.abs(qvel[t + 1]).max()) >= 10:
            continue  # recorded velocities are clipped there
        env.set_state(qpos[t], qvel[t])
        env.do_simulation(actions[t], env.frame_skip)
        errors.append(np.abs(env.data.qvel - qvel[t + 1]).max())
    assert len(errors) > 500
    assert np.median(errors) < 5e-7
    assert np.max(errors) < 2e-6


def test_recorded_hopper_episodes_replay_open_loop(reference):
    qpos, qvel, actions, rewards, terminals, timeouts = recorded(reference("fixtures/hopper_medium-v2.hdf5"))
    env, start = make("hopper"), 0
    for end in np.flatnonzero(terminals | timeouts):
        env.reset(seed=0)
        env.unwrapped.set_state(qpos[start], qvel[start])
        total = sum(env.step(action)[1] for action in actions[start : end + 1])
        assert total == pytest.approx(rewards[start : end + 1].sum(), abs=0.5)
        start = end + 1
