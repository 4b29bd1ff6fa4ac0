"""Files made as D4RL made its own."""

import json

import h5py
import numpy as np
import pytest

from edp.data import locate, tasks
from edp.data.synthesis import behaviours, demonstrations, lookalikes
from edp.data.synthesis.make import Behaviour, make_dataset
from edp.errors import UserError
from support.logs import read_hdf5

ACTOR = behaviours.built_in_path("hopper-medium")


def look_alike(name, path, policies=(), logs=None, transitions=300, noise=0.0, seed=0):
    task = tasks.get_task(name)
    lookalikes.make_look_alike(
        task, path, [(p, 1.0) for p in policies], logs, transitions, noise, seed, 1, lambda _: None
    )
    return read_hdf5(path, task.episode_limit, task.episode_return)


def test_a_look_alike_says_so_and_is_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("EDP_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("EDP_CACHE", str(tmp_path / "cache"))
    task = tasks.get_task("hopper-medium-v2")
    path = locate.look_alike_path(task)
    assert look_alike(task.name, path, [ACTOR]).regenerated == task.name
    assert locate.file_on_disk(task) is None
    assert locate.find_task_file(task) == locate.look_alike_on_disk(task) == path
    genuine = tmp_path / "own" / task.file
    genuine.parent.mkdir()
    genuine.touch()
    assert locate.find_task_file(task) == genuine


def test_what_a_task_is_made_from(tmp_path):
    refused = {
        ("hopper-medium-v2", 0, False): "one or more `policy=FILE",
        ("hopper-medium-v2", 1, True): "one or more `policy=FILE",
        ("kitchen-mixed-v0", 1, False): "`logs=FILE`",
        ("antmaze-large-play-v0", 0, True): "an ant that walks",
        ("kitchen-complete-v0", 0, True): "human demonstrations",
        ("pen-human-v1", 1, False): "human demonstrations",
    }
    for (name, policies, logs), message in refused.items():
        with pytest.raises(UserError, match=message):
            look_alike(name, tmp_path / "a.hdf5", [ACTOR] * policies, tmp_path / "logs.npz" if logs else None)
    assert list(tmp_path.iterdir()) == []


def test_noise_is_added_to_the_actions(tmp_path):
    """The first actions come from the same draws; what differs is the noise, of the std asked for, clipped."""
    made = []
    for noise in (0.0, 0.2):
        path = tmp_path / f"{noise}.hdf5"
        make_dataset(
            path,
            "edp/hopper-d4rl-v2",
            [Behaviour("one", behaviours.load_built_in("hopper-medium"), 1.0, noise)],
            2000,
            0,
        )
        made.append(read_hdf5(path))
    clean, noisy = made
    np.testing.assert_array_equal(clean.obs[0], noisy.obs[0])
    first = noisy.action[0] - clean.action[0]
    assert (first != 0).all()
    assert np.abs(first).max() < 1
    assert np.abs(noisy.action).max() <= 1


def test_d4rls_hopper_policy_returns_what_d4rls_file_does(reference, tmp_path):
    """1422 on average, give or take 90 (of 65 episodes; the standard error is 50)."""
    policy = reference("policies/hopper__d4rl_medium-v2_sac.npz")
    data = look_alike("hopper-medium-v2", tmp_path / "a.hdf5", [policy], transitions=30_000)
    assert data.returns[:-1].mean() == pytest.approx(1422, abs=90)


def test_pen_is_made_from_a_clone_and_an_expert(reference, tmp_path):
    """The expert scores about 100."""
    clone, expert = (reference(f"policies/pen__{name}.npz") for name in ("d4rl_cloned-v1_bc", "hand_dapg_expert"))
    path = tmp_path / "a.hdf5"
    data = look_alike("pen-cloned-v1", path, [clone, expert], transitions=2000)
    scores = [tasks.get_task("pen-cloned-v1").score(part.mean_return) for part in data.behaviours]
    assert [part.transitions for part in data.behaviours] == [1000, 1000]
    assert 10 < scores[0] < scores[1]
    assert scores[1] > 80


def test_a_deterministic_policy_needs_no_log_std(rng, tmp_path):
    arrays = dict(np.load(ACTOR))
    del arrays["w_ls"], arrays["b_ls"]
    np.savez(tmp_path / "mean.npz", **arrays)
    policy, obs = behaviours.load_actor(tmp_path / "mean.npz"), rng.standard_normal((5, 11))
    np.testing.assert_array_equal(policy(obs, rng), policy(obs, rng))
    np.savez(tmp_path / "half.npz", **arrays, w_ls=np.zeros((256, 3)))
    with pytest.raises(UserError, match="missing b_ls"):
        behaviours.load_actor(tmp_path / "half.npz")


def test_demonstrations_replay_as_d4rl_recorded_them(reference, tmp_path):
    """A genuine episode of kitchen-complete, from the log that is behind it: equal up to the noise of both."""
    genuine = reference("kitchen/mini_kitchen_microwave_kettle_light_slider-v0.hdf5")
    demos = demonstrations.load_demonstrations(reference("kitchen/relay_kitchen_demos_skip40.npz"))
    with h5py.File(genuine) as file:
        obs, actions, rewards, terminals = (file[key][:] for key in ("observations", "actions", "rewards", "terminals"))
    length = int(np.argmax(terminals)) + 1  # pyright: ignore
    (demo,) = [d for d in demos if d.rows == length and np.abs(d.qpos - obs[0, :30]).max() < 0.02]
    part = demonstrations.Replay("edp/kitchen-complete-d4rl-v0", [demo], [0])(lambda _: None)
    replayed = part.columns
    assert np.abs(replayed["observations"] - obs[:length]).max() < 0.03  # twice the largest noise is 0.02
    assert np.abs(replayed["actions"] - actions[:length]).mean() < 0.1  # noise of 0.01 is 0.06 of an action
    np.testing.assert_array_equal(replayed["rewards"].max(), 4)
    assert np.abs(replayed["rewards"] - rewards[:length]).sum() <= 4  # a task may be done a step sooner or later
    np.testing.assert_array_equal(np.flatnonzero(replayed["terminals"]), [length - 1])


def random_logs(path, lengths=(3, 4), **changed):
    rows = sum(lengths)
    arrays = {"qpos": np.zeros((rows, 30)), "qvel": np.zeros((rows, 29)), "ctrl": np.zeros((rows, 9))}
    np.savez(path, **(arrays | {"length": np.array(lengths)} | changed))
    return path


def test_logs_become_a_marked_file(tmp_path):
    """One episode for each demonstration, a row shorter than its log."""
    data = look_alike("kitchen-mixed-v0", tmp_path / "a.hdf5", logs=random_logs(tmp_path / "logs.npz"))
    assert data.regenerated == "kitchen-mixed-v0"
    assert len(data.obs) == 5
    np.testing.assert_array_equal(np.flatnonzero(data.not_done == 0), [1, 4])
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert json.loads(file.attrs["behaviours"])[0]["name"] == "logs"


def test_bad_logs_are_refused(tmp_path):
    path = tmp_path / "logs.npz"
    for changed, message in (
        ({"ctrl": np.zeros((7, 8))}, "do not fit together"),
        ({"length": np.array([3, 5])}, "do not fit together"),
        ({"length": np.array([6, 1])}, "do not fit together"),
        ({"length": np.array([[7]])}, "do not fit together"),
        ({"length": np.array([3.0, 4.0])}, "do not fit together"),
    ):
        with pytest.raises(UserError, match=message):
            demonstrations.load_demonstrations(random_logs(path, **changed))
    np.savez(path, qpos=np.zeros(3))
    with pytest.raises(UserError, match="missing qvel, ctrl, length"):
        demonstrations.load_demonstrations(path)
    with pytest.raises(UserError, match="no such log of demonstrations"):
        demonstrations.load_demonstrations(tmp_path / "none.npz")
