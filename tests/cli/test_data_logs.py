"""edp data convert."""

import os
import signal

import gymnasium
import numpy as np
import pytest

import edp
import support.own_data  # noqa: F401  (registers Room-v0)
from edp.cli import main
from edp.data import formats
from edp.data.dataset import read_dataset


@pytest.fixture
def minari_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


STORAGE = "minari.dataset._storages.hdf5_storage.HDF5Storage.update_episodes"


@pytest.mark.parametrize(("to", "writer"), [("minari:a/b/c-v0", STORAGE), ("c.npz", "numpy.savez_compressed")])
def test_a_conversion_that_is_ended_leaves_nothing_behind(to, writer, minari_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = edp.write(edp.record("Room-v0", episodes=2), "a.hdf5")
    with monkeypatch.context() as patch:
        patch.setattr(writer, lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(SystemExit) as ended:
            main(["data", "convert", file, to])
    assert ended.value.code == 143
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / file]
    assert main(["data", "convert", file, to]) == 0
    assert read_dataset(formats.open_log(to)).obs.shape == (30, 3)


def test_a_killed_conversion_leaves_nothing_that_minari_lists(minari_folder, tmp_path):
    log = edp.record("Room-v0", episodes=2)
    (tmp_path / "minari" / ".edp-killed" / "mine" / "room-v0" / "data").mkdir(parents=True)
    assert main(["data", "convert", edp.write(log, tmp_path / "a.hdf5"), "minari:mine/room-v0"]) == 0
    import minari

    assert list(minari.list_local_datasets()) == ["mine/room-v0"]
    assert minari.load_dataset("mine/room-v0").total_steps == 30


@pytest.mark.parametrize("to", ["minari:mine/copy-v0", "copy.hdf5"])
def test_a_copy_keeps_the_environment_with_its_options(to, minari_folder, tmp_path, monkeypatch):
    import minari

    monkeypatch.chdir(tmp_path)
    env = minari.DataCollector(gymnasium.make("Room-v0", goal=19.0, max_episode_steps=7))
    env.reset(seed=0)
    while not env.step(env.action_space.sample())[3]:
        pass
    env.create_dataset("mine/room-v1", ref_min_score=-60.0, ref_max_score=0.0)
    assert main(["data", "convert", "minari:mine/room-v1", to]) == 0
    first, copy = formats.open_log("minari:mine/room-v1"), formats.open_log(to)
    assert first.env_options == {"goal": 19.0, "max_episode_steps": 7}
    assert (copy.env, copy.env_options, copy.reference) == (first.env, first.env_options, first.reference)
    assert gymnasium.spec("Room-v0").kwargs == {}


def test_a_format_without_a_place_for_the_environment_says_so(tmp_path, capsys):
    recorder = edp.Recorder(gymnasium.make("Room-v0", goal=19.0))
    recorder.reset(seed=0)
    recorder.step(np.float32([30.0, 50.0]))
    file = edp.write(recorder.log(), tmp_path / "a.hdf5")
    assert formats.open_log(file).env_options == {"goal": 19.0, "max_episode_steps": 15}
    assert main(["data", "convert", file, str(tmp_path / "a.csv")]) == 0
    assert "a.csv: the environment Room-v0 is not stored" in capsys.readouterr().err


def test_an_environment_that_minari_cannot_know_is_said(minari_folder, tmp_path, capsys):
    rows = np.zeros((3, 2)), np.zeros((3, 1)), np.zeros(3), np.array([False, False, True])
    file = edp.write(edp.from_arrays(*rows, env="Elsewhere-v0"), tmp_path / "a.hdf5")
    assert main(["data", "convert", file, "minari:mine/elsewhere-v0"]) == 0
    assert "the environment Elsewhere-v0 is not stored: it is not registered here" in capsys.readouterr().err
