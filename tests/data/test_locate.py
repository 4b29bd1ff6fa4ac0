"""Where the files of tasks are found."""

from dataclasses import replace
from pathlib import Path

import pytest

import edp.envs  # noqa: F401
from edp.data import locate, tasks
from edp.errors import UserError
from support.logs import read_hdf5


def test_a_built_in_set_is_made_anew_when_its_recipe_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("EDP_CACHE", str(tmp_path))
    small = replace(tasks.get_task("local/hopper-medium-expert"), transitions=100)
    path = locate.find_task_file(small)
    first = path.read_bytes()
    assert locate.find_task_file(small).read_bytes() == first
    assert len(read_hdf5(locate.find_task_file(replace(small, transitions=120))).obs) == 120


def test_missing_files_say_where_they_were_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("EDP_DATA", str(tmp_path))
    with pytest.raises(UserError, match=str(tmp_path)):
        locate.find_task_file(tasks.get_task("walker2d-medium-v2"))
    (tmp_path / "walker2d_medium-v2.hdf5").touch()
    assert locate.find_task_file(tasks.get_task("walker2d-medium-v2")) == tmp_path / "walker2d_medium-v2.hdf5"


def test_files_are_looked_for_in_order(tmp_path, monkeypatch):
    task = tasks.get_task("pen-human-v1")
    monkeypatch.setenv("EDP_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("EDP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert locate.file_on_disk(task) is None
    for folder in reversed(locate.data_folders()):
        folder.mkdir(parents=True)
        (folder / task.file).touch()
        assert locate.file_on_disk(task) == folder / task.file
    assert locate.download_path(task) == tmp_path / "own" / task.file
    monkeypatch.delenv("EDP_DATA")
    assert locate.download_path(task) == tmp_path / "cache" / "d4rl" / task.file
