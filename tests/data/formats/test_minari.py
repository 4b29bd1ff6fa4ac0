"""Minari's data sets: read in all their formats, or refused; code that they name is never imported."""

import json
import sys
import warnings
from contextlib import contextmanager

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, WrapperSpec
from hypothesis import given
from hypothesis import strategies as st
from minari.data_collector.episode_buffer import EpisodeBuffer

from edp.data import formats
from edp.data.dataset import read_dataset
from edp.errors import UserError
from support.logs import (
    examples,
)
from support.malformed import (
    damages,
    reads_or_refuses,
)
from support.spaces import nested, sampled, stacked


@pytest.mark.filterwarnings("ignore")  # Minari warns about missing metadata
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


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory):
    """A small data set of Minari's in each of its formats, by name: where they are, and the bytes of their files."""
    folder = tmp_path_factory.mktemp("minari")
    seen, acted = spaces.Dict({"a": spaces.Box(-9, 9, (2,)), "b": spaces.Discrete(3)}), spaces.Box(-1, 1, (1,))
    found = {}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        for form in ("hdf5", "arrow", "parquet"):
            episodes = [
                EpisodeBuffer(
                    id=None,
                    observations={"a": np.ones((5, 2), np.float32), "b": np.arange(5) % 3},  # pyright: ignore
                    actions=np.zeros((4, 1), np.float32),  # pyright: ignore
                    rewards=np.arange(4.0),  # pyright: ignore
                    terminations=np.arange(4) == 3,  # pyright: ignore
                    truncations=np.zeros(4, bool),  # pyright: ignore
                )
                for _ in range(2)
            ]
            minari.create_dataset_from_buffers(
                f"mine/{form}-v0", episodes, observation_space=seen, action_space=acted, data_format=form
            )
            paths = sorted(path for path in (folder / f"mine/{form}-v0").rglob("*") if path.is_file())
            found[f"mine/{form}-v0"] = {path: path.read_bytes() for path in paths}
    return folder, found


@pytest.fixture
def minari_sets_here(data_sets, monkeypatch):
    folder, found = data_sets
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return found


def put(files):
    for path, start in files.items():
        path.write_bytes(start)


@contextmanager
def metadata(found, changes, missing=(), form="hdf5"):
    """Change the metadata of a data set for a while, and yield its name."""
    files = found[f"mine/{form}-v0"]
    path = next(path for path in files if path.parent.name == "data" and path.name == "metadata.json")
    start = {key: value for key, value in json.loads(files[path]).items() if key not in missing}
    try:
        path.write_text(json.dumps(start | changes), encoding="utf-8")
        yield f"minari:mine/{form}-v0"
    finally:
        put(files)


def test_virtual_data_of_minari_is_refused(minari_sets_here):
    files = minari_sets_here["mine/hdf5-v0"]
    path = next(path for path in files if path.suffix == ".hdf5")
    try:
        with h5py.File(path, "a") as file:
            layout = h5py.VirtualLayout(file["episode_0/rewards"].shape, "f8")  # pyright: ignore
            del file["episode_0/rewards"]
            file.create_virtual_dataset("episode_0/rewards", layout)
        with pytest.raises(UserError, match="episode_0/rewards is kept in other files"):
            read_dataset(formats.open_log("minari:mine/hdf5-v0"))
    finally:
        put(files)


@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
@examples(75)
@given(damage=damages(), which=st.integers(0, 99))
def test_damaged_data_sets_of_minari_are_refused_or_give_numbers(form, minari_sets_here, damage, which):
    files = minari_sets_here[f"mine/{form}-v0"]
    path = sorted(files)[which % len(files)]
    try:
        path.write_bytes(damage(files[path]))
        reads_or_refuses(f"minari:mine/{form}-v0")
    finally:
        put(files)
    assert reads_or_refuses(f"minari:mine/{form}-v0") is not None


SPACES = [
    {"type": "Text", "max_length": 3, "min_length": 1, "charset": "ab"},
    {"type": "Discrete", "dtype": "int64", "start": 0, "n": 10**12},
    {"type": "Discrete", "dtype": "int64", "start": 10**30, "n": 3},
    {"type": "Discrete", "start": 0, "n": -1},
    {"type": "MultiBinary", "n": 10**12},
    {"type": "MultiBinary", "n": [10**6, 10**6]},
    {"type": "MultiDiscrete", "dtype": "int64", "nvec": [10**9] * 3, "start": [0] * 3},
    {"type": "Box", "dtype": "float32", "shape": [10**12], "low": 0, "high": 1},
    {"type": "Box", "dtype": "float32", "shape": [1], "low": [1], "high": [0]},
    {"type": "Box", "dtype": "float32", "shape": [3], "low": [0] * 3, "high": [1] * 3},
    {"type": "Box", "dtype": "float32", "shape": [0], "low": [], "high": []},
    {"type": "Box", "dtype": "object", "shape": [1], "low": [0], "high": [1]},
    {"type": "Box", "dtype": "uint8", "shape": [2, 2, 3], "low": [[[0] * 3] * 2] * 2, "high": [[[255] * 3] * 2] * 2},
    {"type": "Dict", "subspaces": {}},
    {
        "type": "Dict",
        "subspaces": {"a": {"type": "Box", "dtype": "float32", "shape": [2], "low": [0, 0], "high": [1, 1]}},
    },
    {"type": "Tuple", "subspaces": []},
    {"type": "Sequence"},
    {"type": ["Box"]},
    [],
]

ANYTHING = st.one_of(
    st.sampled_from([json.dumps(space) for space in SPACES]),
    st.sampled_from(
        [None, True, -1, 0, 10**15, 10**400, 1e308, float("nan"), "", "x", "hdf5", "[" * 2000, [], {}, [1]]
    ),
)


@examples(150)
@given(
    what=st.dictionaries(
        st.sampled_from(
            [
                "observation_space",
                "action_space",
                "total_steps",
                "total_episodes",
                "data_format",
                "env_spec",
                "eval_env_spec",
                "ref_min_score",
                "ref_max_score",
                "jpeg_encoding",
                "author",
                "author_email",
            ]
        ),
        ANYTHING,
        min_size=1,
        max_size=3,
    )
)
def test_metadata_of_anything_are_refused_or_harmless(minari_sets_here, what):
    with metadata(minari_sets_here, what) as name:
        reads_or_refuses(name)


@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total_episodes": 1}, "2 episodes are there, and its metadata say 1"),
        ({"total_episodes": 1, "total_steps": 4}, "2 episodes are there, and its metadata say 1"),
        ({"total_episodes": 3}, "2 episodes are there, and its metadata say 3"),
        ({"total_steps": 7}, "8 steps are there, and its metadata say 7"),
    ],
)
def test_metadata_that_count_otherwise_are_refused(minari_sets_here, form, change, message):
    with metadata(minari_sets_here, change, form=form) as name, pytest.raises(UserError, match=message):
        read_dataset(formats.open_log(name))


@pytest.mark.parametrize("key", ["observation_space", "action_space"])
def test_spaces_that_are_not_those_of_the_data_are_refused(minari_sets_here, key):
    wide = {"type": "Discrete", "dtype": "int64", "start": 0, "n": 2**20 + 1}
    for space in (wide, *SPACES):
        with metadata(minari_sets_here, {key: json.dumps(space)}) as name:
            assert reads_or_refuses(name) is None


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (1, 0), (0, 10**400), (float("nan"), 1), (0, float("inf")), ("a", "b"), (None, 1)]
)
def test_reference_scores_are_a_range_or_nothing(minari_sets_here, low, high):
    with metadata(minari_sets_here, {"ref_min_score": low, "ref_max_score": high}) as name:
        assert formats.open_log(name).reference == ((0, 1) if (low, high) == (0, 1) else None)


SPEC = EnvSpec("Env-v0", entry_point="evil_module:Env", max_episode_steps=9)

SPECS = {
    "a module in its name": SPEC.to_json().replace('"Env-v0"', '"evil_module:Env-v0"'),
    "a module as its entry": SPEC.to_json(),
    "a known name": EnvSpec(
        "Pendulum-v1", entry_point="evil_module:Env", vector_entry_point="evil_module:Env"
    ).to_json(),
    "a wrapper": EnvSpec(
        "Pendulum-v1", SPEC.entry_point, additional_wrappers=(WrapperSpec("W", "evil_module:Env", {}),)
    ).to_json(),
}


@pytest.fixture
def evil_module(tmp_path, monkeypatch):
    """A module that writes a file when it is imported, and that file."""
    made = tmp_path / "made"
    (tmp_path / "evil_module.py").write_text(
        f"from pathlib import Path\nPath({str(made)!r}).touch()\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return made


def test_the_evil_module_would_be_imported(evil_module):
    with pytest.raises(AttributeError):
        gymnasium.make(EnvSpec.from_json(SPECS["a module as its entry"]))
    sys.modules.pop("evil_module")
    assert evil_module.exists()


@pytest.mark.parametrize(
    "missing", [(), ("observation_space",), ("action_space",), ("observation_space", "action_space")]
)
@pytest.mark.parametrize("key", ["env_spec", "eval_env_spec"])
@pytest.mark.parametrize("spec", SPECS)
def test_what_metadata_name_is_not_imported(evil_module, minari_sets_here, spec, key, missing):
    with metadata(minari_sets_here, {key: SPECS[spec]}, missing) as name:
        assert (reads_or_refuses(name) is None) == bool(missing)
        if not missing:
            assert formats.open_log(name).env == ("Pendulum-v1" if "Pendulum-v1" in SPECS[spec] else "")
    assert not evil_module.exists()
    assert "evil_module" not in sys.modules


@pytest.mark.parametrize(
    "name",
    ["", "x", "../x-v0", "a b-v0", "mine/none-v0", "mine/hdf5-v" + "9" * 5000, "x" * 300 + "-v0", "a/" * 200 + "x-v0"],
)
def test_names_that_minari_does_not_know_are_refused(minari_sets_here, name):
    assert reads_or_refuses(f"minari:{name}") is None


def test_a_hub_that_cannot_be_reached_is_said_in_one_line(fails, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(minari, "download_dataset", lambda name: pytest.fail("its client tries many times"))
    said = fails("data", "get", "minari:mujoco/hopper/medium-v0")
    assert said.endswith("http://127.0.0.1:9 cannot be reached; is this machine offline?")


def test_a_download_that_fails_is_said_in_one_line(fails, monkeypatch):
    monkeypatch.setenv("MINARI_REMOTE", "gcp://elsewhere")  # is not asked beforehand

    def fail(name):
        raise ConnectionError("the line is down\nand so on")

    monkeypatch.setattr(minari, "download_dataset", fail)
    said = fails("data", "get", "minari:mujoco/hopper/medium-v0")
    assert said.endswith("cannot be downloaded (ConnectionError: the line is down)")
