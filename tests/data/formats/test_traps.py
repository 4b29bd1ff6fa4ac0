"""Files that are made to do harm: bombs, pipes, links to other files, options that name files to open."""

import io
import json
import os
import socket
import zipfile
from dataclasses import asdict, replace

import h5py
import numpy as np
import pytest

import edp
from edp import memory
from edp.cli import main
from edp.data import formats, tasks
from edp.data.dataset import read_dataset
from edp.data.environments import is_plain
from edp.data.formats.columns import read_toml
from edp.data.synthesis.behaviours import load_actor
from edp.errors import UserError
from support.malformed import npy, small_log, write_members


def write_bomb(path, name="observations", rows=10**9):
    """Write a small file with an array whose header claims many rows."""
    found = small_log() | {"infos": np.zeros(3)}
    write_members(path, {f"{key}.npy": npy(array) for key, array in found.items() if key != name})
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (rows, 100)})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.npy", header.getvalue() + bytes(800))
    return path


def patch_sizes(path, name, size):
    """Change the size of a member that the directory of an archive declares."""
    content = path.read_bytes()
    start = content.rindex(b"PK\x01\x02", 0, content.rindex(f"{name}.npy".encode()))
    path.write_bytes(content[: start + 24] + size.to_bytes(4, "little") + content[start + 28 :])


def refused(call, *arguments):
    with pytest.raises(UserError) as error:
        call(*arguments)
    assert len(str(error.value).splitlines()) == 1
    assert str(error.value).isprintable()
    return str(error.value)


def test_a_zip_bomb_is_refused_before_it_is_expanded(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    zeros = {key: np.zeros((20_000, 100) if key == "observations" else 20_000) for key in small_log(False, False)}
    np.savez_compressed(path, **zeros)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000_000)
    assert "bomb.npz: its arrays need 16.5 MB of memory, and there are 10 MB" in refused(formats.open_log, str(path))


def test_the_user_sets_how_much_memory_data_may_need(tmp_path, fails):
    path = tmp_path / "a.npz"
    np.savez(path, **small_log())
    assert edp.open_log(path, max_memory="1MB").size == 12
    with pytest.raises(UserError, match=r"its arrays need .* bytes of memory, and there are 100 bytes"):
        edp.open_log(path, max_memory=100)
    assert "and there are 100 bytes (see --max-memory)" in fails("data", "check", path, "--max-memory", "100")
    assert "and there are 100 bytes" in fails("train", path, "--max-memory", "100", "--out", tmp_path / "run")
    assert "must be a size such as 500MB" in fails("data", "check", path, "--max-memory", "much")
    assert main(["data", "check", str(path), "--no-picture"]) in (0, 1)  # the limit was for one command


def test_data_that_is_read_in_pieces_stops_at_the_limit(tmp_path):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for key, column in small_log(False).items():
            file[key] = np.zeros((200_000, *column.shape[1:]), column.dtype)
    log = formats.open_log(str(tmp_path / "a.hdf5"))
    with memory.limited_memory(2_000_000), pytest.raises(UserError, match=r"needs at least .* there are 2 MB"):
        read_dataset(log)
    with memory.limited_memory(2_000_000):
        read_dataset(log, on_disk=True)


def test_a_large_chunk_of_an_hdf5_file_is_refused_before_it_is_unpacked(tmp_path):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file.update({key: column for key, column in small_log(False, False).items() if key != "observations"})
        file.create_dataset(
            "observations", data=np.zeros((12, 100_000), "f4"), chunks=(12, 100_000), compression="gzip"
        )
    assert (tmp_path / "a.hdf5").stat().st_size < 100_000
    with memory.limited_memory(5_000_000):
        assert "observations need 9.6 MB of memory" in refused(formats.open_log, str(tmp_path / "a.hdf5"))
    formats.open_log(str(tmp_path / "a.hdf5"))


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path):
    path = write_bomb(tmp_path / "a.npz")
    assert "'observations' has shape (1000000000, 100), and" in refused(formats.open_log, str(path))
    patch_sizes(path, "observations", 2**32 - 2)
    assert "'observations' has shape" in refused(formats.open_log, str(path))


def test_arrays_that_are_not_used_are_not_read(tmp_path):
    path = write_bomb(tmp_path / "a.npz", "huge")
    log = formats.open_log(str(path))
    assert log.size == 12
    assert log.left_out == ("huge", "infos")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_archives_that_numpy_does_not_write_are_refused(method, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        for key, array in small_log().items():
            archive.writestr(f"{key}.npy", npy(array))
    assert "no array as NumPy writes it" in refused(formats.open_log, str(tmp_path / "a.npz"))


@pytest.mark.parametrize("suffix", [".hdf5", ".h5", ".npz", ".csv", ".parquet", "", ".txt"])
def test_pipes_and_sockets_are_not_waited_for(suffix, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / f"a{suffix}")
    assert "a pipe, not a file" in refused(formats.open_log, str(tmp_path / f"a{suffix}"))
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        server.bind(f"b{suffix}")
        assert "a socket, not a file" in refused(formats.open_log, str(tmp_path / f"b{suffix}"))
    (tmp_path / f"c{suffix}").symlink_to("/dev/zero")
    assert "a device, not a file" in refused(formats.open_log, str(tmp_path / f"c{suffix}"))


def test_other_files_that_the_user_names_are_no_pipes(tmp_path):
    os.mkfifo(tmp_path / "a.toml")
    assert "a pipe, not a file" in refused(read_toml, tmp_path / "a.toml")
    os.mkfifo(tmp_path / "a.npz")
    assert "a pipe, not a policy file" in refused(load_actor, tmp_path / "a.npz")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "a.csv")
    assert "a.csv: a pipe" in refused(formats.open_log, str(tmp_path / "folder"))


def other_file(folder):
    with h5py.File(folder / "other.hdf5", "w") as file:
        file.update(small_log())
    return folder / "other.hdf5"


LINKS = {
    "external link": lambda folder: h5py.ExternalLink(str(other_file(folder)), "/observations"),
    "external link to a pipe": lambda folder: os.mkfifo(folder / "p") or h5py.ExternalLink(str(folder / "p"), "/x"),
    "soft link": lambda folder: h5py.SoftLink("/outside/observations"),
}


@pytest.mark.parametrize("kind", LINKS)
def test_links_out_of_an_hdf5_file_are_refused(kind, tmp_path):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file.update({key: column for key, column in small_log().items() if key != "observations"})
        file["observations"] = LINKS[kind](tmp_path)
        file["outside"] = h5py.ExternalLink(str(other_file(tmp_path)), "/")
    assert "observations are a link to another place" in refused(formats.open_log, str(tmp_path / "a.hdf5"))


def test_data_outside_of_an_hdf5_file_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(12 * 8))
    layout = h5py.VirtualLayout((12,), "f8")
    layout[:] = h5py.VirtualSource(str(other_file(tmp_path)), "rewards", (12,))
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.hdf5", "w") as file:
            file.update({key: column for key, column in small_log().items() if key != "rewards"})
            if number:
                file.create_virtual_dataset("rewards", layout)
            else:
                file.create_dataset("rewards", (12,), "f8", external=[(str(tmp_path / "secret"), 0, 96)])
        assert "rewards are kept in other files" in refused(formats.open_log, str(tmp_path / f"{number}.hdf5"))


def test_links_and_pipes_in_minari_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    edp.write(edp.from_arrays(**small_log()), "minari:mine/first-v0")
    (path,) = tmp_path.rglob("*.hdf5")
    assert formats.open_log("minari:mine/first-v0").size == 12
    for link in (h5py.SoftLink("/episode_1/rewards"), h5py.ExternalLink(str(other_file(tmp_path)), "/rewards")):
        with h5py.File(path, "a") as file:
            del file["episode_0/rewards"]
            file["episode_0/rewards"] = link
        assert "episode_0/rewards is a link to another place" in refused(formats.open_log, "minari:mine/first-v0")
    path.unlink()
    os.mkfifo(path)
    assert "a pipe, not a file" in refused(formats.open_log, "minari:mine/first-v0")


PLAIN = [3, -0.5, True, [[1, 0], [0, 1]], [], 10**18]
OTHERS = ["/etc/x.xml", "hopper", "", None, {}, {"a": 1}, float("inf"), float("nan"), 10**19]
NESTED = [[["/etc/x"]], [[1, "r"]], [{"a": 1}], [[[[[1]]]]], [0] * 1001, b"x"]


def test_options_are_plain_or_not():
    assert all(is_plain(value) for value in PLAIN)
    assert not any(is_plain(value) for value in (*OTHERS, *NESTED))


def test_environments_with_options_that_name_files_are_left_out(tmp_path):
    log = replace(edp.from_arrays(**small_log()), env="Hopper-v5")
    for options, kept in (({"xml_file": "hopper"}, False), ({"frame_skip": 3, "healthy_z_range": [0.5, 2.0]}, True)):
        file = edp.write(replace(log, env_options=options), tmp_path / f"{kept}.hdf5")
        read = formats.open_log(file)
        assert (read.env, read.env_options) == (("Hopper-v5", options) if kept else ("", {}))
        assert bool(read.left_out) != kept
        task = tasks.own_task("a.hdf5", replace(log, env_options=options), "")
        assert task.env == ("Hopper-v5" if kept else "")
        stored = asdict(replace(task, env="Hopper-v5", env_options=json.dumps(options)))
        assert tasks.own_task_from_json(stored).env == ("Hopper-v5" if kept else "")
    assert read.left_out == ()


def test_environments_of_minari_with_other_options_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    edp.write(edp.from_arrays(**small_log()), "minari:mine/first-v0")
    (path,) = (path for path in tmp_path.rglob("metadata.json") if path.parent.name == "data")
    about = json.loads(path.read_text())
    spec = {"id": "Hopper-v5", "kwargs": {"xml_file": "/tmp/evil.xml"}, "max_episode_steps": 9}
    path.write_text(json.dumps(about | {"env_spec": json.dumps(spec)}))
    log = formats.open_log("minari:mine/first-v0")
    assert (log.env, log.env_options) == ("", {})
    assert log.left_out == ("environment Hopper-v5 (option xml_file is not a number or a boolean)",)
