"""Random logs through every format: what is written is what is read, whole, in pieces and from file to file."""

import itertools
import os
import re
from pathlib import Path

import gymnasium
import minari
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minari.data_collector.episode_buffer import EpisodeBuffer

from edp.data import arrays, dataset, formats, health, log
from edp.data.arrays import from_arrays, from_episodes, split_episodes
from edp.data.dataset import read_dataset, read_steps, with_next_observations
from edp.data.formats import csv_faults, hdf5, spaces as flat_spaces, table
from edp.data.formats import minari as minari_sets
from edp.data.log import Log, Steps, find_timeouts, join_steps
from edp.errors import UserError

FILES = (".hdf5", ".npz", ".csv", ".parquet")
FORMATS = (*FILES, "minari:")
NUMBERS = itertools.count()
MORE = int(os.environ.get("EDP_TEST_EXAMPLES", "1"))  # times as many as usual, and other ones each time


def examples(count):
    return settings(
        max_examples=count * MORE, derandomize=MORE == 1, deadline=None, suppress_health_check=list(HealthCheck)
    )


@st.composite
def numbers(draw, shape, kinds=(np.float32, np.float64)):
    """Numbers of one size, and a few that are special."""
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = (rng.standard_normal(shape) * draw(st.sampled_from([1.0, 1e-3, 255.0, 1e30, 1e-42]))).astype(kind)
    known = [0.0, -0.0, 1e-45, -3.4028234663852886e38, 3.4028234663852886e38]
    special = st.sampled_from(known) | st.floats(width=32, allow_nan=False, allow_infinity=False)
    for number in draw(st.lists(special, max_size=3)):
        found.flat[rng.integers(found.size)] = number
    return found


@st.composite
def logs(draw, known=None):
    """Episodes as they are recorded, with the states after their steps or without."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    ends = draw(st.lists(st.sampled_from("tob"), min_size=len(lengths), max_size=len(lengths)))
    last = np.cumsum(lengths) - 1
    terminals, timeouts = np.zeros((2, sum(lengths)), bool)
    terminals[last], timeouts[last] = [end in "tb" for end in ends], [end in "ob" for end in ends]
    if draw(st.booleans()):  # the last one goes on
        terminals[-1] = timeouts[-1] = False
    states = draw(numbers((sum(lengths) + len(lengths), draw(st.integers(1, 3)))))
    first = np.cumsum([0, *lengths[:-1]]) + np.arange(len(lengths))
    at = np.concatenate([start + np.arange(length) for start, length in zip(first, lengths, strict=True)])
    known = draw(st.booleans()) if known is None else known
    return Steps(
        states[at],
        draw(numbers((sum(lengths), draw(st.integers(1, 3))))),
        draw(numbers((sum(lengths),))),
        terminals,
        timeouts,
        states[at + 1] if known else None,
    )


def as_log(steps):
    return Log("recorded", lambda: iter([steps]), len(steps.rewards))


def transitions(opened, **options):
    """What training sees, or None if no transition has a known next state."""
    try:
        return read_dataset(opened, **options)
    except UserError as error:
        assert "known next state" in str(error)
        return None


def assert_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def assert_same(a, b, known=True):
    """The same transitions; numbers of episodes may differ, and so may states after the end where none are known."""
    for name in ("obs", "action", "reward", "not_done"):
        assert_bits(getattr(a, name), getattr(b, name))
    used = slice(None) if known else a.not_done == 1
    assert_bits(a.next_obs[used], b.next_obs[used])
    np.testing.assert_array_equal(np.diff(a.episode) != 0, np.diff(b.episode) != 0)


def assert_same_steps(a, b):
    for name, column, other in zip(Steps._fields, a, b, strict=True):
        assert (column is None) == (other is None), name
        if column is not None:
            assert_bits(column, other)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A name in a format that nothing has yet."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.setenv("EDP_CACHE", str(tmp_path / "cache"))

    def new(form):
        number = next(NUMBERS)
        return f"minari:random/log{number}-v0" if form == "minari:" else str(tmp_path / f"{number}{form}")

    return new


def write(name, steps):
    formats.write_log(name, as_log(steps))
    return name


@pytest.mark.parametrize("form", FORMATS)
@examples(60)
@given(steps=logs())
def test_what_is_written_is_read(form, place, steps):
    known, wanted = steps.next_observations is not None, transitions(as_log(steps))
    name = place(form)
    if wanted is None and form == "minari:":
        with pytest.raises(UserError, match="known next state"):
            write(name, steps)
        return
    read = transitions(formats.open_log(write(name, steps)))
    if wanted is None:
        assert read is None
    else:
        assert read is not None
        assert_same(wanted, read, known)


@examples(60)
@given(steps=logs(), forms=st.lists(st.sampled_from(FORMATS), min_size=2, max_size=4))
def test_nothing_changes_from_file_to_file(place, steps, forms):
    known, wanted = steps.next_observations is not None, transitions(as_log(steps))
    if wanted is None:
        return
    opened = as_log(steps)
    for name in map(place, forms):
        formats.write_log(name, opened)
        opened = formats.open_log(name)
    assert_same(wanted, read_dataset(opened), known)


@pytest.mark.parametrize("form", [".hdf5", ".npz", ".parquet"])
@examples(60)
@given(steps=logs())
def test_files_of_numbers_keep_every_step_and_its_precision(form, place, steps):
    read = read_steps(formats.open_log(write(place(form), steps)))
    if form == ".parquet":  # tables end an episode with the file
        steps.timeouts[-1] |= not steps.terminals[-1]
    assert_same_steps(steps, read)


@pytest.mark.parametrize("form", FORMATS)
@examples(40)
@given(steps=logs(), size=st.integers(1, 4), on_disk=st.booleans())
def test_pieces_are_read_as_the_whole_is(form, place, steps, size, on_disk):
    if transitions(as_log(steps)) is None:
        return
    name = write(place(form), steps)
    wanted, raw = read_dataset(formats.open_log(name)), read_steps(formats.open_log(name))
    with pytest.MonkeyPatch.context() as patch:
        for module in (log, hdf5, table, arrays):
            patch.setattr(module, "PIECE", size)
        patch.setattr(minari_sets, "GATHER", size)
        patch.setattr(csv_faults, "BLOCK", 400 + size)
        opened = formats.open_log(name)
        count = len(list(opened.pieces()))
        assert count > 1 or form in (".csv", "minari:") or len(steps.rewards) <= size
        assert count > 1 or form != ".csv" or Path(name).stat().st_size < 1500
        read = read_dataset(opened, on_disk=on_disk)
        assert_same_steps(raw, read_steps(opened))
    assert_same(wanted, read)
    np.testing.assert_array_equal(wanted.episode, read.episode)
    np.testing.assert_array_equal(wanted.returns, read.returns)


@examples(50)
@given(steps=logs())
def test_episodes_and_arrays_are_the_same_log(steps):
    episodes = []
    for part in split_episodes(steps):
        after = [] if part.next_observations is None else part.next_observations[-1:]
        content = {"observations": np.concatenate([part.observations, *([after] if len(after) else [])])}
        episodes.append(content | {"actions": part.actions, "rewards": part.rewards, "terminated": part.terminals[-1]})
    a, b = transitions(from_arrays(*steps)), transitions(from_episodes(episodes))
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert_same(a, b)
        np.testing.assert_array_equal(a.episode, b.episode)
        if steps.ends[-1]:
            np.testing.assert_array_equal(a.returns, b.returns)


def slowly_followed(steps):
    """The rows of the transitions, their next states, and the number of their episodes, from the words in log.py."""
    rows, following, episode, number = [], [], [], 0
    for row in range(len(steps.rewards)):
        last, ended = row + 1 == len(steps.rewards), steps.terminals[row] or steps.timeouts[row]
        if steps.next_observations is not None:
            rows, following = [*rows, row], [*following, steps.next_observations[row]]
            episode.append(number)
        elif steps.terminals[row] or not (ended or last):
            rows, following = [*rows, row], [*following, steps.observations[row if last else row + 1]]
            episode.append(number)
        number += ended
    return rows, following, episode


@examples(100)
@given(steps=logs(), size=st.integers(1, 5))
def test_the_next_state_is_found_as_a_slow_loop_finds_it(steps, size):
    rows, following, episode = slowly_followed(steps)
    cut = [steps.rows(slice(at, at + size)) for at in range(0, len(steps.rewards), size)]
    found = list(with_next_observations(iter(cut)))
    assert sum(len(part.rewards) for part, _ in found) == len(rows)
    if rows:
        together = join_steps([part for part, _ in found])
        assert_same_steps(
            together,
            steps._replace(next_observations=steps.observations)
            .rows(rows)
            ._replace(next_observations=np.array(following)),
        )
        np.testing.assert_array_equal(np.concatenate([numbers for _, numbers in found]), episode)


@examples(100)
@given(steps=logs(), limit=st.integers(1, 7), size=st.integers(1, 5))
def test_episodes_are_cut_off_as_a_slow_loop_cuts_them(steps, limit, size):
    terminals, timeouts, count = steps.terminals.copy(), steps.timeouts.copy(), 0
    for row in range(len(terminals)):
        count += 1
        if count == limit:
            terminals[row], timeouts[row], count = False, True, 0
        if steps.ends[row]:
            count = 0
    cut = [steps.rows(slice(at, at + size)) for at in range(0, len(terminals), size)]
    found = read_steps(Log("recorded", lambda: iter(cut), limit=limit))
    assert_same_steps(found, steps._replace(terminals=terminals, timeouts=timeouts))


@examples(100)
@given(terminals=st.lists(st.booleans(), max_size=40), limit=st.none() | st.integers(0, 9))
def test_timeouts_are_found_as_a_slow_loop_finds_them(terminals, limit):
    wanted, count = [], 0
    for ended in terminals:
        count += 1
        wanted.append(count == limit)
        if ended or count == limit:
            count = 0
    np.testing.assert_array_equal(find_timeouts(np.array(terminals, bool), limit), np.array(wanted, bool))


def labels_of(steps):
    """A number for each row that changes where an episode begins."""
    return np.cumsum(steps.ends) - steps.ends


LISTS = {
    "fixed": lambda wide: pa.FixedSizeListArray.from_arrays(wide.ravel(), wide.shape[1]),
    "list": lambda wide: pa.array(wide.tolist(), pa.list_(pa.from_numpy_dtype(wide.dtype))),
    "large": lambda wide: pa.array(wide.tolist(), pa.large_list(pa.from_numpy_dtype(wide.dtype))),
}


@examples(60)
@given(steps=logs(), kind=st.sampled_from(sorted(LISTS)), size=st.integers(1, 9))
def test_lists_in_parquet_are_read_as_columns_are(place, steps, kind, size):
    shared = {"reward": steps.rewards, "terminal": steps.terminals, "episode_index": labels_of(steps)}
    wide = {"observation.state": steps.observations, "action": steps.actions}
    if steps.next_observations is not None:
        wide["next.observation.state"] = steps.next_observations
    single = {f"{name}{i}": array[:, i] for name, array in wide.items() for i in range(array.shape[1])}
    meaning = {"observation_columns": "observation.state", "action_columns": "action"}
    meaning |= {"next_observation_columns": "next.observation.state"} if len(wide) == 3 else {}
    names = place(".parquet"), place(".parquet")
    lists = {name: LISTS[kind](np.ascontiguousarray(array)) for name, array in wide.items()}
    pq.write_table(pa.table(lists | shared), names[0], row_group_size=size)
    pq.write_table(pa.table(single | shared), names[1])
    opened = [
        formats.open_log(
            name, {key: (column + star,) for key, column in meaning.items()} | {"episode_column": "episode_index"}
        )
        for name, star in zip(names, ("", "?"), strict=True)
    ]
    width = steps.observations.shape[1]
    assert [len(each.observation_names) for each in opened] == [width if kind == "fixed" else 0, width]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "PIECE", size)
        a, b = map(transitions, opened)
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert_same(a, b)
        wanted = transitions(as_log(steps))
        assert wanted is not None
        assert_same(wanted, a)


def csv_text(steps, labels=None, separator=",", end="\n", quoted=False):
    columns = {f"observation_{i}": steps.observations[:, i] for i in range(steps.observations.shape[1])}
    columns |= {f"action_{i}": steps.actions[:, i] for i in range(steps.actions.shape[1])}
    columns |= {"reward": steps.rewards, "terminal": steps.terminals.astype(int)}
    columns |= {"timeout": steps.timeouts.astype(int)} if labels is None else {"episode": labels}
    columns |= (
        {"notes" + 20 * next(other for other in ",;" if other != separator): np.zeros(len(steps.rewards))}
        if quoted
        else {}
    )
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [columns, *(map(repr, row) for row in rows)]
    quote = '"' if quoted else ""
    return "".join(separator.join(f"{quote}{cell}{quote}" for cell in line) + end for line in lines)


@examples(60)
@given(steps=logs(known=False))
def test_a_folder_of_files_is_one_file_with_a_column_of_episodes(place, steps):
    folder, single = Path(place(".folder")), Path(place(".csv"))
    folder.mkdir()
    single.write_text(csv_text(steps, labels_of(steps)))
    for number, part in enumerate(split_episodes(steps)):
        (folder / f"{number:03}.csv").write_text(csv_text(part))
    a, b = (transitions(formats.open_log(str(path))) for path in (folder, single))
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert_same(a, b)
        np.testing.assert_array_equal(a.returns, b.returns)


@examples(60)
@given(
    steps=logs(known=False),
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    quoted=st.booleans(),
)
def test_every_dialect_of_csv_says_the_same(place, steps, separator, end, mark, quoted):
    plain, other = Path(place(".csv")), Path(place(".csv"))
    plain.write_text(csv_text(steps))
    other.write_bytes((mark + csv_text(steps, None, separator, end, quoted)).encode())
    a, b = (read_steps(formats.open_log(str(path))) for path in (plain, other))
    assert_same_steps(a, b)


@pytest.mark.parametrize("form", [".HDF5", ".NPZ", ".CSV", ".Parquet", ".h5"])
def test_names_may_be_in_capitals(form, place):
    steps = Steps(np.ones((3, 2)), np.zeros((3, 1)), np.arange(3.0), np.array([False, False, True]), np.zeros(3, bool))
    name = write(place(form), steps)
    assert_same(read_dataset(as_log(steps)), read_dataset(formats.open_log(name)))
    usual = Path(write(place(".hdf5" if form == ".h5" else form.lower()), steps))
    assert Path(name).read_bytes()[:4] == usual.read_bytes()[:4]
    assert {path.name for path in usual.parent.iterdir() if path.is_file()} == {Path(name).name, usual.name}


KINDS = ("<i8", "<i4", "|u1", "|b1", "<f2", ">f4", ">f8", "<f16")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_any_kind_are_written(form, kind, place):
    rng = np.random.default_rng(0)
    states, actions = (rng.integers(0, 2, (7, width)).astype(kind) for width in (2, 3))
    ends = np.array([False] * 5 + [True])
    steps = Steps(states[:-1], actions[:-1], np.arange(6).astype(kind), ends, ~ends & False, states[1:])
    assert_same(read_dataset(as_log(steps)), read_dataset(formats.open_log(write(place(form), steps))))


def leaves():
    sizes = st.integers(1, 4)
    shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)
    kinds = st.sampled_from([np.float32, np.float64, np.int64, np.uint8])
    return st.one_of(
        st.builds(lambda shape, kind: spaces.Box(0, 9, shape, kind), shapes, kinds),
        st.builds(lambda n, start: spaces.Discrete(n, start=start), sizes, st.integers(-3, 3)),
        st.builds(spaces.MultiBinary, sizes | st.lists(sizes, min_size=1, max_size=2)),
        st.builds(
            lambda nvec, start: spaces.MultiDiscrete(nvec, start=[start] * len(nvec)),
            st.lists(sizes, min_size=1, max_size=3),
            st.integers(-3, 3),
        ),
        st.builds(spaces.MultiDiscrete, st.lists(st.lists(sizes, min_size=2, max_size=2), min_size=1, max_size=2)),
    )


def nested():
    return st.recursive(
        leaves(),
        lambda part: st.one_of(
            st.dictionaries(st.sampled_from("xyzab"), part, min_size=1, max_size=3).map(spaces.Dict),
            st.lists(part, min_size=1, max_size=3).map(spaces.Tuple),
        ),
        max_leaves=6,
    )


def stacked(space, values):
    """Samples side by side, as Minari keeps them."""
    if isinstance(space, spaces.Dict):
        return {key: stacked(part, [value[key] for value in values]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(stacked(part, [value[i] for value in values]) for i, part in enumerate(space.spaces))
    return np.array(values)


def sampled(space, count, seed):
    space.seed(seed)
    return [space.sample() for _ in range(count)]


@examples(150)
@given(space=nested(), count=st.integers(1, 4), seed=st.integers(0, 2**16))
def test_spaces_are_flattened_as_gymnasium_does_it(space, count, seed):
    values = sampled(space, count, seed)
    found = flat_spaces.flatten_values(space, stacked(space, values), count)
    np.testing.assert_array_equal(found, [gymnasium.spaces.flatten(space, value) for value in values])
    names = flat_spaces.part_names(space)
    assert len(names) == len(set(names)) == found.shape[1]


@pytest.mark.filterwarnings("ignore")  # Minari would like to know more
@examples(60)
@given(
    space=nested(),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    form=st.sampled_from(["hdf5", "arrow", "parquet"]),
    seed=st.integers(0, 2**16),
    marked=st.booleans(),
)
def test_minaris_own_data_sets_are_read_in_all_their_formats(place, space, lengths, form, seed, marked):
    name, buffers, seen = place("minari:"), [], []
    for length in lengths:
        values = sampled(space, length + 1, seed)
        seen.append([gymnasium.spaces.flatten(space, value) for value in values])
        buffers.append(
            EpisodeBuffer(
                id=None,
                observations=stacked(space, values),
                actions=np.full((length, 2), len(seen), np.float32),
                rewards=np.arange(length, dtype=np.float32),
                terminations=np.zeros(length, bool),
                truncations=(np.arange(length) == length - 1) & marked,
            )
        )
    box = spaces.Box(-9, 9, (2,), np.float32)
    minari.create_dataset_from_buffers(
        name.removeprefix("minari:"), buffers, observation_space=space, action_space=box, data_format=form
    )
    read = read_dataset(formats.open_log(name))
    np.testing.assert_array_equal(read.obs, np.concatenate([part[:-1] for part in seen]).astype(np.float32))
    np.testing.assert_array_equal(read.next_obs, np.concatenate([part[1:] for part in seen]).astype(np.float32))
    np.testing.assert_array_equal(np.bincount(read.episode), lengths)
    np.testing.assert_array_equal(read.action[:, 0], read.episode + 1)


def test_tables_keep_the_names_of_their_columns(tmp_path):
    first, second, third = (str(tmp_path / name) for name in ("a.csv", "b.parquet", "c.csv"))
    Path(first).write_text("room,outside,valve,reward\n20,5,0.5,1\n21,6,0.25,2\n")
    original = formats.open_log(first, {"observation_columns": ("outside", "room"), "action_columns": ("valve",)})
    formats.write_log(second, original)
    formats.write_log(third, formats.open_log(second))
    for name in (second, third):
        again = formats.open_log(name)
        assert again.observation_names == ("observation_outside", "observation_room")
        assert again.action_names == ("action_valve",)
        np.testing.assert_array_equal(read_steps(again).observations, read_steps(original).observations)


def test_names_on_two_lines_are_not_written_to_csv(tmp_path):
    rows = {"observation_a\nb": [1.0, 2.0], "action_0": [0.0, 1.0], "episode": [0, 0]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    opened = formats.open_log(str(tmp_path / "a.parquet"))
    with pytest.raises(UserError, match="a CSV file cannot have a column called"):
        formats.write_log(str(tmp_path / "b.csv"), opened)
    assert not (tmp_path / "b.csv").exists()
    copy = formats.open_log(formats.write_log(str(tmp_path / "b.parquet"), opened))
    assert copy.observation_names == ("observation_a\nb",)


def test_names_that_fall_together_are_numbered(tmp_path):
    (tmp_path / "a.csv").write_text("x,observation_x,action_0\n1,2,3\n4,5,6\n")
    original = formats.open_log(str(tmp_path / "a.csv"), {"observation_columns": ("x", "observation_x")})
    formats.write_log(str(tmp_path / "b.csv"), original)
    assert formats.open_log(str(tmp_path / "b.csv")).observation_names == ("observation_0", "observation_1")


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@pytest.mark.parametrize("name", ["reward", "terminal", "timeout", "episode", "observation_2"])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_files_of_a_folder_have_the_same_columns(form, name, order, tmp_path):
    rows = {key: np.arange(4.0) for key in ("observation_0", "observation_1", "action_0", "unused")}
    for file, found in zip(order, (rows, rows | {name: np.zeros(4, int)}), strict=True):
        columns = pa.table(found | ({"other": np.arange(4)} if file == "b" else {}))
        (pq.write_table if form == ".parquet" else pa_csv.write_csv)(columns, tmp_path / (file + form))
    with pytest.raises(UserError, match=f"{order[0]}{form}: no column '{name}', which {order[1]}{form} has"):
        formats.open_log(str(tmp_path))


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@pytest.mark.parametrize("size", [3, 65_536])
def test_episodes_that_come_back_are_refused(form, size, tmp_path, monkeypatch):
    monkeypatch.setattr("edp.data.formats.table.PIECE", size)
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", 30 * size)

    def write(name, labels, **more):
        rows = {key: np.arange(len(labels)) % 7 / 7 for key in ("observation_0", "action_0", "reward")}
        path = tmp_path / name / f"a{form}"
        path.parent.mkdir(exist_ok=True)
        found = pa.table(rows | more | {"episode": labels})
        (pq.write_table if form == ".parquet" else pa_csv.write_csv)(found, path)
        return path

    mixed = write("mixed", np.arange(40) % 8)
    message = f"{mixed}: episode 0 goes on in row 8 after others began: sort the rows by episode"
    with pytest.raises(UserError, match=re.escape(message)):
        read_dataset(formats.open_log(str(mixed)))
    found = health.examine_log(formats.open_log(str(mixed))).findings
    assert [finding.level for finding in found if message in finding.what] == ["error"]

    turns = np.arange(40) // 5 % 2  # each of them marks its ends
    ended = write("ended", turns, terminal=np.arange(40) % 5 == 4)
    assert len(read_dataset(formats.open_log(str(ended))).returns) == 8
    ended.rename(ended.with_name(f"b{form}"))
    write("ended", turns, terminal=np.arange(40) % 5 == 4)
    assert len(read_dataset(formats.open_log(str(ended.parent))).returns) == 16  # labels are those of one file
