"""Data sets made by rolling out behaviour policies."""

import json

import h5py
import numpy as np
import pytest

from edp.data import tasks
from edp.data.synthesis import behaviours
from edp.data.synthesis.behaviours import SquashedGaussian
from edp.data.synthesis.make import Behaviour, make_dataset
from edp.errors import UserError
from support.logs import (
    read_hdf5,
)


def actor(seed=0, obs=11, act=3, width=8):
    rng = np.random.default_rng(seed)
    shapes = {"w0": (obs, width), "w1": (width, width), "w_mu": (width, act), "w_ls": (width, act)}
    weights = {name: rng.standard_normal(shape) * 0.1 for name, shape in shapes.items()}
    biases = {name.replace("w", "b"): np.zeros(shape[1]) for name, shape in shapes.items()}
    return SquashedGaussian(weights | biases)


def make_set(path, seed=0, count=300):
    make_dataset(
        path, "edp/hopper-d4rl-v2", [Behaviour("one", actor(0), 2.0), Behaviour("two", actor(1), 1.0)], count, seed
    )
    return path


def test_a_made_set_has_exactly_the_rows_asked_for_and_reads_back(tmp_path):
    path = make_set(tmp_path / "a.hdf5")
    data = read_hdf5(path)
    assert data.obs.shape == (300, 11)
    assert data.action.shape == (300, 3)
    with h5py.File(path) as file:
        ends = file["terminals"][:] | file["timeouts"][:]
        obs, next_obs = file["observations"][:], file["next_observations"][:]
        made = json.loads(file.attrs["behaviours"])
        assert {"mujoco_version", "gymnasium_version", "edp_version", "seed", "env"} <= set(file.attrs)
    assert [entry["transitions"] for entry in made] == [200, 100]
    assert ends[199] and ends[299]
    inside = ~ends[:-1]
    np.testing.assert_array_equal(next_obs[:-1][inside], obs[1:][inside])
    assert (next_obs[:-1][~inside] != obs[1:][~inside]).any(axis=1).all()  # pyright: ignore


def test_the_same_seed_makes_the_same_set_and_another_seed_another(tmp_path):
    one, same, other = (read_hdf5(make_set(tmp_path / f"{i}.hdf5", seed)) for i, seed in enumerate((0, 0, 1)))
    np.testing.assert_array_equal(one.action, same.action)
    assert not np.array_equal(one.action, other.action)


def test_the_number_of_processes_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr("edp.data.synthesis.make.SHARD", 120)
    made, seen = [], []
    for processes in (1, 3):
        path = tmp_path / f"{processes}.hdf5"
        pair = [Behaviour("one", actor(0)), Behaviour("two", actor(1))]
        make_dataset(path, "edp/hopper-d4rl-v2", pair, 500, 0, seen.append, processes=processes)
        made.append(read_hdf5(path))
    for a, b in zip(made[0][:6], made[1][:6], strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(made[0].obs) == 500
    assert max(seen) <= 500
    assert len(np.unique(made[0].obs[::120], axis=0)) == len(made[0].obs[::120])  # each shard has its own seeds


def test_a_policy_of_the_wrong_size_is_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(UserError, match="maps 17 observations to 6 actions"):
        make_dataset(tmp_path / "a.hdf5", "edp/hopper-d4rl-v2", [Behaviour("walker", actor(obs=17, act=6))], 100, 0)
    with pytest.raises(UserError, match="environment 'edp/hoper-d4rl-v2'"):
        make_dataset(tmp_path / "a.hdf5", "edp/hoper-d4rl-v2", [Behaviour("one", actor())], 100, 0)
    assert list(tmp_path.iterdir()) == []


def test_bad_policy_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="no such policy file"):
        behaviours.load_actor(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello", encoding="utf-8")
    with pytest.raises(UserError, match="not a policy file"):
        behaviours.load_actor(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", w0=np.zeros(3))
    with pytest.raises(UserError, match="missing b0"):
        behaviours.load_actor(tmp_path / "other.npz")
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    with pytest.raises(UserError, match="no w0 or l0_weight in it"):
        behaviours.load_actor(tmp_path / "other.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(UserError, match="not a policy file"):
        behaviours.load_actor(tmp_path / "array.npy")
    good = actor().arrays
    for name, shape in (("w_mu", (8,)), ("w1", (8, 9)), ("b0", (7,))):
        np.savez(tmp_path / "misfit.npz", **(good | {name: np.zeros(shape)}))
        with pytest.raises(UserError, match="do not fit together"):
            behaviours.load_actor(tmp_path / "misfit.npz")
    np.savez(tmp_path / "pickle.npz", **{name: np.array([{}], object) for name in SquashedGaussian.MEAN})
    with pytest.raises(UserError, match="not a policy file"):
        behaviours.load_actor(tmp_path / "pickle.npz")


@pytest.mark.parametrize("name", [name for name, task in tasks.TASKS.items() if task.local])
def test_the_built_in_behaviours_are_small_and_fit_their_environment(name):
    for actor_name, _ in tasks.get_task(name).behaviours:
        assert (behaviours.BUILT_IN / f"{actor_name}.npz").stat().st_size <= 300_000
        policy = behaviours.load_built_in(actor_name)
        assert (policy.obs_dim, policy.act_dim) == (11, 3)


def test_a_cut_off_episode_does_not_count_as_a_whole_one(tmp_path):
    make_dataset(
        tmp_path / "a.hdf5",
        "edp/hopper-d4rl-v2",
        [Behaviour("one", behaviours.load_built_in("hopper-expert"))],
        1100,
        0,
    )
    (made,) = read_hdf5(tmp_path / "a.hdf5").behaviours
    assert made.episodes == 1
    assert made.mean_return > 3000
