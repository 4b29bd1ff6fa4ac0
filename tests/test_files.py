"""Files are replaced as a whole, and errors of writing are one line."""

from pathlib import Path

import pytest

from edp.errors import UserError
from edp.files import cache_folder, check_writable, is_inside, remove_temporary, replacing, write_json, write_text


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_content_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as part:
        part.write_text("half", encoding="utf-8")
        raise RuntimeError
    assert path.read_text(encoding="utf-8") == "old"
    write_json(path, {"new": 1})
    assert path.read_text(encoding="utf-8") == '{\n  "new": 1\n}\n'
    assert names(tmp_path) == ["a.txt"]


def test_the_temporary_file_has_the_suffix_of_the_target(tmp_path):
    """Libraries choose the format by it."""
    with replacing(tmp_path / "a.npz") as part:
        assert part.suffix == ".npz"
        assert part.parent == tmp_path


def test_what_a_crash_left_is_removed_and_nothing_else(tmp_path):
    (tmp_path / ".config.json.x7.tmp.json").touch()
    (tmp_path / ".lock").touch()
    (tmp_path / "a.tmp").touch()
    remove_temporary(tmp_path)
    assert names(tmp_path) == [".lock", "a.tmp"]


def test_errors_name_the_file(tmp_path):
    with pytest.raises(UserError, match=r"a/b\.txt: cannot write here \(No such file or directory\)"):
        write_text(tmp_path / "a" / "b.txt", "")
    with pytest.raises(UserError, match="is a directory"):
        check_writable(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write here"):
        check_writable(tmp_path / "file" / "below.txt")
    check_writable(tmp_path / "new" / "c.txt")
    assert names(tmp_path / "new") == []


def test_files_that_exist_are_refused(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link.txt"
    path.touch()
    link.symlink_to("nowhere")
    for each in (path, link):
        with pytest.raises(UserError, match=r"\.txt: already exists; choose another name, or replace it with `overw"):
            check_writable(each)
        check_writable(each, overwrite=True)


def test_what_is_being_read_is_refused_under_all_of_its_names(tmp_path):
    folder, new = tmp_path / "folder", tmp_path / "new.csv"
    folder.mkdir()
    source = folder / "a.csv"
    source.touch()
    (tmp_path / "hard.csv").hardlink_to(source)
    (tmp_path / "soft.csv").symlink_to(source)
    (folder / "elsewhere.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").touch()
    names = (source, tmp_path / "hard.csv", tmp_path / "soft.csv", folder / ".." / "folder" / "a.csv")
    for path in names:
        for reading in (source, folder):
            with pytest.raises(UserError, match="is being read, and cannot be replaced"):
                check_writable(path, overwrite=True, reading=[reading])
    with pytest.raises(UserError, match="is being read"):
        check_writable(tmp_path / "b.csv", overwrite=True, reading=[folder])
    check_writable(tmp_path / "b.csv", overwrite=True, reading=[source])
    check_writable(new, reading=[source, folder, tmp_path / "nothing"])


def test_what_is_inside_of_a_folder(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert is_inside(tmp_path / "link" / "b" / "new", tmp_path / "a")
    assert is_inside(tmp_path / "a" / "not" / "yet", tmp_path / "link")
    assert not is_inside(tmp_path / "a", tmp_path / "a")
    assert not is_inside(tmp_path / "a" / ".." / "c", tmp_path / "a")


def test_the_cache_folder(tmp_path, monkeypatch):
    assert cache_folder().is_relative_to(Path.home())
    monkeypatch.setenv("EDP_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
