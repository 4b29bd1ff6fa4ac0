"""LeRobot's data sets: features, names, episodes over files, ends, and metadata that is damaged or hostile."""

import json
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import edp
from edp.cli import main
from edp.data import formats
from edp.data.dataset import read_dataset, read_steps
from edp.data.formats import lerobot, lerobot_info
from edp.errors import UserError
from support.lerobot import DATA_PATH, VIDEO, change_info, feature, robot_frames, write_lerobot
from support.logs import examples
from support.malformed import assert_one_line, damages, reads_or_refuses

FIRST, SECOND = (DATA_PATH.format(chunk_index=0, file_index=number) for number in range(2))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "set"


def refused(folder, columns=None):
    with pytest.raises(UserError) as error:
        read_dataset(formats.open_log(str(folder), columns or {}))
    assert_one_line(error.value, str(folder))
    assert str(error.value).isprintable()
    return str(error.value)


def replace_column(path, name, column):
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path)


def test_frames_are_steps(folder):
    frames = robot_frames()
    log = edp.open_log(write_lerobot(folder, frames))
    steps = read_steps(log)
    np.testing.assert_array_equal(steps.observations, frames["observation.state"])
    np.testing.assert_array_equal(steps.actions, frames["action"])
    np.testing.assert_array_equal(steps.rewards, frames["next.reward"])
    assert log.size == 15
    assert log.observation_names == ("state.shoulder.pos", "state.elbow.pos", "state.gripper.pos")
    assert log.action_names == ("shoulder.pos", "elbow.pos", "gripper.pos")


@pytest.mark.parametrize("size", [1, 4, 9, 65_536])
@pytest.mark.parametrize("per_file", [1, 2, 5])
def test_episodes_are_the_same_in_any_pieces_and_files(folder, size, per_file, monkeypatch):
    monkeypatch.setattr(lerobot, "PIECE", size)
    frames = robot_frames()
    log = formats.open_log(str(write_lerobot(folder, frames, per_file=per_file)))
    assert all(len(steps.rewards) <= size for steps in log.pieces())
    steps = read_steps(log)
    assert np.flatnonzero(steps.ends).tolist() == [4, 8, 14]
    np.testing.assert_array_equal(steps.observations, frames["observation.state"])


def test_an_episode_may_go_on_in_the_next_file(folder):
    write_lerobot(folder)
    whole = read_steps(formats.open_log(str(folder)))
    joined = pa.concat_tables([pq.read_table(folder / FIRST), pq.read_table(folder / SECOND)])
    pq.write_table(joined[:7], folder / FIRST)
    pq.write_table(joined[7:], folder / SECOND)
    np.testing.assert_array_equal(read_steps(formats.open_log(str(folder))).ends, whole.ends)


def test_wide_frames_are_read_in_small_pieces(folder, monkeypatch):
    monkeypatch.setattr(lerobot, "NUMBERS", 12)  # two frames of three observations and three actions
    log = formats.open_log(str(write_lerobot(folder)))
    assert {len(steps.rewards) for steps in log.pieces()} == {1, 2}


ENDS = {
    "done alone": ({}, [], "next.done (true at time limits too)"),
    "not truncated": ({"next.truncated": [True, False, False]}, [8, 14], "timestamp"),
    "success": ({"next.success": [False, True, False]}, [8], "timestamp"),
    "truncated before success": (
        {"next.truncated": [False, True, True], "next.success": [False, True, False]},
        [4],
        "next.success",
    ),
}


@pytest.mark.parametrize("kind", ENDS)
def test_an_end_is_terminal_only_if_a_column_explains_it(kind, folder):
    given, terminals, left_out = ENDS[kind]
    frames = robot_frames()
    del frames["next.success"]
    for name, values in given.items():
        frames[name] = np.zeros(15, bool)
        frames[name][[4, 8, 14]] = values
    log = formats.open_log(str(write_lerobot(folder, frames)))
    steps = read_steps(log)
    assert np.flatnonzero(steps.terminals).tolist() == terminals
    assert np.flatnonzero(steps.ends).tolist() == [4, 8, 14]
    assert not (steps.terminals & steps.timeouts).any()
    assert left_out in log.left_out
    assert (read_dataset(log).not_done == 0).sum() == len(terminals)


def test_the_user_may_say_that_done_is_terminal(folder):
    frames = robot_frames()
    del frames["next.success"]
    log = formats.open_log(str(write_lerobot(folder, frames)), {"terminal_column": "next.done"})
    assert np.flatnonzero(read_steps(log).terminals).tolist() == [4, 8, 14]
    assert not any("next.done" in name for name in log.left_out)


def test_vectors_of_observations_are_joined_in_order(folder):
    frames = robot_frames() | {
        "observation.environment_state": np.ones((15, 2), np.float32),
        "observation.effort": np.full(15, 7, np.int64),
    }
    log = formats.open_log(str(write_lerobot(folder, frames)))
    observed = read_steps(log).observations
    np.testing.assert_array_equal(observed[:, 3:], np.tile([1, 1, 7], (15, 1)))
    assert log.observation_names[3:] == ("environment_state.0", "environment_state.1", "effort.0")
    chosen = formats.open_log(str(folder), {"observation_columns": ("observation.e*",), "reward_column": "timestamp"})
    assert chosen.observation_names == log.observation_names[3:]
    assert read_steps(chosen).rewards[1] == np.float32(0.1)
    assert {"observation.state", "next.reward"} <= set(chosen.left_out)


NAMES = {
    "list": (["a", "b", "c"], ("a", "b", "c")),
    "lists": ({"arm": ["a", "b"], "hand": ["c"]}, ("a", "b", "c")),
    "positions": ({"c": 2, "a": 0, "b": 1}, ("a", "b", "c")),
    "none": (None, ("0", "1", "2")),
    "of the axis": (["dim"], ("0", "1", "2")),
    "twice": (["a", "b", "b"], ("0", "1", "2")),
    "numbers": ([1, 2, 3], ("0", "1", "2")),
    "mixed": ({"a": 0, "b": ["c"]}, ("0", "1", "2")),
    "nested": ({"a": [["a", "b", "c"]]}, ("0", "1", "2")),
    "not printable": (["a\nb", "\x1b[31m", "\ud800"], ("a\\nb", "\\x1b[31m", "\\ud800")),
}


@pytest.mark.parametrize("kind", NAMES)
def test_numbers_have_names(kind, folder):
    given, wanted = NAMES[kind]
    write_lerobot(folder, features={"action": feature("float32", 3, names=given)})
    assert formats.open_log(str(folder)).action_names == wanted


def test_what_is_not_read_is_listed(folder):
    frames = robot_frames() | {"complementary_info.penalty": np.zeros(15, np.float32)}
    others = {
        "observation.images.top": VIDEO,
        "observation.grid": feature("float32", 4, 5),
        "language": feature("string", 1),
    }
    log = formats.open_log(str(write_lerobot(folder, frames, features=others, total_tasks=3)))
    assert log.left_out == (
        "observation.images.top (video)",
        "observation.grid (2 dimensions)",
        "language (string)",
        "task_index (3 tasks, which the policy cannot tell apart)",
        "complementary_info.penalty",
        "timestamp",
        "index",
    )


def test_without_rewards_all_are_zero(folder):
    frames = {key: column for key, column in robot_frames().items() if not key.startswith("next.")}
    steps = read_steps(formats.open_log(str(write_lerobot(folder, frames))))
    assert not steps.rewards.any()
    assert not steps.terminals.any()
    assert np.flatnonzero(steps.timeouts).tolist() == [4, 8, 14]


def test_actions_may_have_parts(folder):
    frames = robot_frames()
    frames["action.arm"], frames["action.hand"] = frames["action"][:, :2], frames.pop("action")[:, 2]
    log = formats.open_log(str(write_lerobot(folder, frames)))
    assert log.action_names == ("arm.0", "arm.1", "hand.0")


def test_version_2_is_read_too(folder):
    write_lerobot(folder, per_file=1)
    wanted = read_steps(formats.open_log(str(folder)))
    for number in range(3):
        file = folder / DATA_PATH.format(chunk_index=0, file_index=number)
        file.rename(file.with_name(f"episode_{number:06}.parquet"))
    place = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
    change_info(folder, codebase_version="v2.1", data_path=place)
    np.testing.assert_array_equal(read_steps(formats.open_log(str(folder))).observations, wanted.observations)


@pytest.mark.parametrize("version", ["v1.6", "v4.0", "", None, 3, "v3.0\n"])
def test_other_versions_are_refused(version, folder):
    write_lerobot(folder, codebase_version=version)
    assert "a LeRobot data set of version" in refused(folder)


BAD_FEATURES = [
    [], {}, "x", {"action": 3}, {"action": {"dtype": "float32"}}, {"action": {"dtype": 3, "shape": [3]}},
    {"action": {"dtype": "float32", "shape": [0]}}, {"action": {"dtype": "float32", "shape": [-3]}},
    {"action": {"dtype": "float32", "shape": ["3"]}}, {"action": {"dtype": "float32", "shape": [10**12]}},
    {"action": {"dtype": "float32", "shape": [True]}}, {"action": feature("float32", 3)},
    {"action": feature("float32", 3), "observation.image": VIDEO}, {"observation.state": feature("float32", 3)},
    {"action": feature("float32", 3), "observation.state": feature("float32", 3)},
]  # fmt: skip


@pytest.mark.parametrize("features", BAD_FEATURES, ids=str)
def test_wrong_features_are_refused(features, folder):
    write_lerobot(folder)
    change_info(folder, features=features)
    refused(folder)


@pytest.mark.parametrize(
    "place", ["../{chunk_index}/x.parquet", "/etc/x.parquet", "data/../../x.parquet", None, 7, "data"]
)
def test_data_outside_of_the_folder_is_refused(place, folder):
    write_lerobot(folder, data_path=place)
    assert "only data/*/*.parquet is read" in refused(folder)


@pytest.mark.parametrize("name", ["total_frames", "total_episodes"])
@pytest.mark.parametrize("number", [2, 10**15, 10**40, -1, "15", None, True, 1.5])
def test_wrong_counts_are_refused(name, number, folder):
    write_lerobot(folder, **{name: number})
    message = refused(folder)
    assert "is the copy complete" in message or "not a count" in message


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"3" * 10_000, b'{"a": NaN}'])
def test_damaged_metadata_are_refused(content, folder):
    write_lerobot(folder)
    (folder / "meta" / "info.json").write_bytes(content)
    refused(folder)


def test_large_metadata_are_refused(folder, monkeypatch):
    monkeypatch.setattr(lerobot_info, "LARGEST", 100)
    assert "larger than 100 bytes" in refused(write_lerobot(folder))


@pytest.mark.parametrize("name", ["meta/info.json", FIRST])
@examples(60)
@given(damage=damages())
def test_any_damage_is_refused_or_harmless(name, tmp_path_factory, damage):
    folder = write_lerobot(tmp_path_factory.mktemp("damaged"))
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    reads_or_refuses(folder)


def test_missing_files_are_noticed(folder):
    write_lerobot(folder)
    (folder / SECOND).unlink()
    assert "9 frames are there, and its metadata say 15; is the copy complete?" in refused(folder)
    (folder / FIRST).unlink()
    assert "no data/*/*.parquet" in refused(folder)


def test_missing_and_mixed_frames_are_refused(folder):
    write_lerobot(folder, per_file=3)
    table = pq.read_table(folder / FIRST)
    pq.write_table(pa.concat_tables([table[:6], table[7:]]), folder / FIRST)
    assert "row 6 is frame 2 of episode 1, and frame 1 should be there" in refused(folder)
    pq.write_table(table.take(np.random.default_rng(0).permutation(15)), folder / FIRST)
    assert "frames are missing or mixed up" in refused(folder)
    for number in (np.nan, 2.5, -1):
        replace_column(folder / FIRST, "frame_index", pa.array([number] * 15))
        assert "frames are missing or mixed up" in refused(folder)


def test_columns_that_differ_from_the_metadata_are_refused(folder):
    write_lerobot(folder)
    wide = pa.FixedSizeListArray.from_arrays(np.zeros(6 * 4, np.float32), 4)
    replace_column(folder / SECOND, "action", wide)
    assert "'action' has 4 numbers, and meta/info.json says 3" in refused(folder)
    replace_column(folder / SECOND, "action", pa.array(["a"] * 6))
    assert "'action' holds string, not numbers" in refused(folder)
    pq.write_table(pq.read_table(folder / SECOND).drop(["action"]), folder / SECOND)
    assert f"{SECOND}: no column 'action', which meta/info.json names" in refused(folder)
    (folder / SECOND).write_bytes(b"PAR1")
    assert "damaged, or not a Parquet file" in refused(folder)


@pytest.mark.parametrize("flags", [[0, 1, 2, 0, 0, 0], [None] * 6, ["no"] * 6, [[True, False]] * 6])
def test_flags_are_0_or_1(flags, folder):
    write_lerobot(folder)
    replace_column(folder / SECOND, "next.done", pa.array(flags))
    assert "next.done" in refused(folder)


def test_flags_and_rewards_may_be_lists_of_one(folder):
    frames = robot_frames()
    wanted = read_steps(formats.open_log(str(write_lerobot(folder, frames, per_file=3))))
    for name in ("next.done", "next.reward"):
        replace_column(folder / FIRST, name, pa.array([[value] for value in frames[name].tolist()]))
    steps = read_steps(formats.open_log(str(folder)))
    np.testing.assert_array_equal(steps.terminals, wanted.terminals)
    np.testing.assert_array_equal(steps.rewards, wanted.rewards)


@pytest.mark.parametrize("name", ["meta/info.json", FIRST])
def test_pipes_and_links_are_refused(name, folder, tmp_path):
    write_lerobot(folder)
    path, elsewhere = folder / name, tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert "a link to another place" in refused(folder)
    path.unlink()
    os.mkfifo(path)
    assert "a pipe, not a file" in refused(folder)


def test_a_linked_folder_of_data_is_refused(folder, tmp_path):
    write_lerobot(folder)
    (folder / "data").rename(tmp_path / "elsewhere")
    (folder / "data").symlink_to(tmp_path / "elsewhere")
    assert "a link to another place" in refused(folder)


def test_links_of_the_cache_of_hugging_face_are_followed(tmp_path):
    folder, blobs = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    write_lerobot(folder)
    blobs.mkdir()
    for number, name in enumerate(("meta/info.json", FIRST, SECOND)):
        (folder / name).rename(blobs / str(number))
        (folder / name).symlink_to(blobs / str(number))
    assert len(read_steps(formats.open_log(str(folder))).rewards) == 15


@pytest.mark.parametrize("columns", [{"episode_column": "task_index"}, {"timeout_column": "next.done"}])
def test_what_lerobot_says_itself_is_not_asked(columns, folder):
    assert f"`{next(iter(columns))}` is not for a LeRobot data set" in refused(write_lerobot(folder), columns)


def test_unknown_features_are_refused(folder):
    write_lerobot(folder, features={"observation.image": VIDEO})
    for name in ("observation.image", "observation.nothing"):
        assert "unknown column in `observation_columns`" in refused(folder, {"observation_columns": (name,)})


def test_it_is_converted_and_not_written(folder, tmp_path, capsys, fails):
    write_lerobot(folder, features={"observation.images.top": VIDEO})
    assert main(["data", "convert", str(folder), str(tmp_path / "a.parquet")]) == 0
    assert "left out: observation.images.top (video)" in capsys.readouterr().err
    original, copy = (read_steps(formats.open_log(str(path))) for path in (folder, tmp_path / "a.parquet"))
    np.testing.assert_array_equal(original.observations, copy.observations)
    np.testing.assert_array_equal(original.terminals, copy.terminals)
    assert "observation_state.elbow.pos" in pq.read_schema(tmp_path / "a.parquet").names
    assert f"{folder}: data is written to" in fails("data", "convert", tmp_path / "a.parquet", folder)
    with pytest.raises(UserError, match="data of this format cannot be written"):
        formats.format_of(str(folder)).write(str(folder), formats.open_log(str(folder)))


def test_it_is_checked(folder, capsys):
    assert main(["data", "check", str(write_lerobot(folder)), "--no-picture"]) in (0, 1)
    shown = capsys.readouterr().out
    assert "15 steps: 3 observations, 3 actions" in shown
    assert re.search("3 episodes: 2 ended, 1 cut off", shown)


def test_a_policy_is_trained_on_it(folder, tmp_path):
    lengths = (20,) * 10
    write_lerobot(folder, robot_frames(lengths), lengths)
    small = ["--steps", "4", "--epoch-steps", "2", "--batch-size", "8", "--hidden", "8", "--eval-every", "4"]
    run = tmp_path / "run"
    assert main(["train", str(folder), "--algo", "bc", *small, "--out", str(run)]) == 0
    action = edp.load_policy(run).act(np.zeros(3))
    assert np.isfinite(action).all()
    assert json.loads((run / "config.json").read_text(encoding="utf-8"))["file"] == str(folder)
