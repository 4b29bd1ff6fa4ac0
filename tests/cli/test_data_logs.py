"""edp data check, convert and record."""

import os
import signal
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import edp
from edp.cli import main
from edp.data import formats
from edp.data.dataset import read_dataset
from support.own_data import COLUMNS, write_csv


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


@pytest.fixture
def room_csv(tmp_path, monkeypatch):
    """A CSV file of the user, and a file that says what its columns mean."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{name} = {list(value) if isinstance(value, tuple) else value!r}" for name, value in COLUMNS.items()]
    Path("columns.toml").write_text("\n".join(lines), encoding="utf-8")
    return write_csv(Path("room.csv"))


def test_the_file_that_is_read_is_never_replaced(room_csv, fails):
    before = room_csv.read_bytes()
    Path("soft.csv").symlink_to(room_csv)
    Path("hard.csv").hardlink_to(room_csv)
    for to in ("room.csv", "./room.csv", "soft.csv", "hard.csv"):
        for more in ([], ["--overwrite"]):
            said = fails("data", "convert", room_csv, to, "--columns", "columns.toml", *more)
            assert "is being read, and cannot be replaced" in said
    log = edp.open_log(room_csv, COLUMNS)
    with pytest.raises(edp.UserError, match="is being read"):
        edp.write(log, "hard.csv", overwrite=True)
    assert room_csv.read_bytes() == before


def test_the_file_with_the_meaning_of_columns_is_not_replaced(room_csv, fails):
    Path("columns.toml").rename("columns.csv")
    before = Path("columns.csv").read_bytes()
    said = fails("data", "convert", room_csv, "columns.csv", "--columns", "columns.csv", "--overwrite")
    assert "columns.csv: is being read, and cannot be replaced" in said
    assert Path("columns.csv").read_bytes() == before


def test_no_file_of_a_folder_is_replaced_or_added(room_csv, fails):
    Path("logs").mkdir()
    room_csv.rename("logs/a.csv")
    Path("logs/b.csv").symlink_to(write_csv(Path("b.csv"), days=3).absolute())
    for to, why in (("logs/a.csv", "is in logs"), ("logs/new.csv", "is in logs"), ("b.csv", "is being read")):
        assert why in fails("data", "convert", "logs", to, "--columns", "columns.toml", "--overwrite")
    assert sorted(path.name for path in Path("logs").iterdir()) == ["a.csv", "b.csv"]
    assert main(["data", "convert", "logs", "all.csv", "--columns", "columns.toml"]) == 0
    assert len(Path("all.csv").read_text(encoding="utf-8").splitlines()) == 1 + 150


@pytest.mark.parametrize("to", ["mine.csv", "mine.npz", "mine.hdf5", "mine.parquet"])
def test_files_are_replaced_only_if_the_user_says_so(to, room_csv, fails):
    Path(to).write_text("mine", encoding="utf-8")
    convert = ["data", "convert", str(room_csv), to, "--columns", "columns.toml"]
    record = ["data", "record", to, "--env", "Room-v0", "--episodes", "1"]
    for words in (convert, record):
        assert f"{to}: already exists; choose another name, or replace it with --overwrite" in fails(*words)
    with pytest.raises(edp.UserError, match=r"already exists.*`overwrite`"):
        edp.write(edp.open_log(room_csv, COLUMNS), to)
    assert Path(to).read_text(encoding="utf-8") == "mine"
    assert main([*convert, "--overwrite"]) == 0
    assert read_dataset(formats.open_log(to)).obs.shape[1] == 2
    assert main([*record, "--overwrite"]) == 0
    assert read_dataset(formats.open_log(to)).obs.shape[1] == 3


def test_data_sets_of_minari_are_replaced_as_a_whole(room_csv, minari_folder, fails, monkeypatch):
    words = ["data", "convert", str(room_csv), "minari:mine/room-v0", "--columns", "columns.toml"]
    assert main(words) == 0
    assert "already exists" in fails(*words)
    assert "is being read" in fails("data", "convert", "minari:mine/room-v0", "minari:mine/room-v0", "--overwrite")
    write_csv(room_csv, days=5)
    with monkeypatch.context() as patch:
        patch.setattr(STORAGE, lambda *_, **__: 1 / 0)
        assert main([*words, "--overwrite"]) == 2
    assert read_dataset(formats.open_log("minari:mine/room-v0")).obs.shape == (12 * 9, 2)
    assert main([*words, "--overwrite"]) == 0
    assert read_dataset(formats.open_log("minari:mine/room-v0")).obs.shape == (5 * 9, 2)
    assert [path.name for path in Path("minari").iterdir()] == ["mine"]


def test_pages_of_a_check_are_replaced_and_other_pictures_are_not(room_csv, fails, monkeypatch):
    words = ["data", "check", "room.csv", "--columns", "columns.toml"]
    first, page = main(words), Path("room-check.png")
    assert main(words) == first  # its own page, under its usual name
    assert "room-check.png: already exists" in fails(*words, "--out", page)
    page.write_text("mine", encoding="utf-8")
    monkeypatch.setattr("edp.data.health.examine_log", lambda *_: pytest.fail("it reads before the refusal"))
    assert "room-check.png: already exists" in fails(*words)
    assert page.read_text(encoding="utf-8") == "mine"


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
