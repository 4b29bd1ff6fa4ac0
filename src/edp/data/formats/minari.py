"""Minari's data sets. Observations of many parts become one row of numbers, in the order of their space.

A dict's parts come in the order of the space's keys (gymnasium sorts them by name: ``achieved_goal``, ``desired_goal``,
``observation``), arrays row by row, discrete values as one-hot numbers: as ``gymnasium.spaces.flatten`` does it, so
that ``gymnasium.wrappers.FlattenObservation`` gives the same from the environment.
"""

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from h5py import File, h5d, h5o  # pyright: ignore
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path

from edp.data.formats.hdf5 import is_elsewhere, is_written
from edp.data.log import LARGEST, Log, Steps, plain, with_next
from edp.envs.make import is_registered
from edp.errors import UserError, first_line

PREFIX = "minari:"
GATHER = 4096  # steps, at least, in a piece
WIDEST = 2**20  # numbers in an observation


def path_of(name: str) -> Path:
    """Where a data set is kept, if it is here."""
    try:
        parse_dataset_id(name)
        path = Path(get_dataset_path(name))
        path.exists()  # raises where no folder can have the name
        return path
    except (ValueError, TypeError):
        raise UserError(f"{PREFIX}{name}: names of Minari's data sets are like mine/first-v0") from None
    except OSError as error:
        raise UserError(f"{PREFIX}{name}: no folder for it ({error.strerror})") from None


def download(name: str) -> Path:
    path = path_of(name)
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it tells of each of its attempts
    try:
        minari.download_dataset(name)
    except Exception as error:  # whatever its network libraries raise
        raise UserError(f"{PREFIX}{name}: cannot be downloaded ({type(error).__name__}: {first_line(error)})") from None
    return path


def open_minari(name: str) -> Log:
    title, path = f"{PREFIX}{name}", path_of(name)
    if not (path / "data").is_dir():
        raise UserError(f"{title}: not in {path.parent}: edp data get {title} downloads it, if Minari has it")
    try:
        about = MinariStorage.read_raw_metadata(path / "data")
        missing = [key for key in ("observation_space", "action_space") if not isinstance(about.get(key), str)]
        if missing:  # minari would then make the environment that the file names, which is somebody's code
            raise UserError(f"{title}: its metadata have no {missing[0]}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            storage = MinariStorage.read(path / "data")
        seen, acted = storage.observation_space, storage.action_space
        check_space(seen, f"{title}: observations")
        if not 0 < spaces.flatdim(seen) <= WIDEST:
            raise UserError(f"{title}: observations have {spaces.flatdim(seen)} numbers, and {WIDEST} are the most")
        if not isinstance(acted, spaces.Box):
            raise UserError(f"{title}: actions are {type(acted).__name__}, and policies here give numbers (Box)")
        low, high = (tuple(float(number) for number in side.ravel()) for side in (acted.low, acted.high))
        finite = np.isfinite(low + high).all()
        env, options = environment(about)
        return Log(
            name=title,
            pieces=lambda: pieces(storage, title),
            size=int(storage.total_steps),
            env=env,
            env_options=options,
            reference=reference(about),
            low=low if finite else (),
            high=high if finite else (),
            observation_names=tuple(part_names(seen)),
        )
    except UserError:
        raise
    except Exception as error:  # whatever Minari and the libraries under it raise
        raise damaged(title, error) from None


def damaged(title: str, error: Exception) -> UserError:
    return UserError(f"{title}: damaged, or not as Minari writes it ({type(error).__name__}: {first_line(error)})")


def pieces(storage: MinariStorage, title: str) -> Iterator[Steps]:
    gathered: list[Steps] = []
    rows = 0
    try:
        for file in storage.data_path.glob("*.hdf5"):
            refuse_unwritten(file)
        refuse_other_count("episodes", storage.total_episodes, episodes_there(storage.data_path), title)
        for episode in storage.get_episodes(range(storage.total_episodes)):
            gathered.append(episode_steps(episode, storage.observation_space, storage.action_space, title))
            rows += len(gathered[-1].rewards)
            if sum(len(steps.rewards) for steps in gathered) >= GATHER:
                yield together(gathered)
                gathered = []
        if gathered:
            yield together(gathered)
        refuse_other_count("steps", storage.total_steps, rows, title)
    except UserError:
        raise
    except Exception as error:
        raise damaged(title, error) from None


def episodes_there(folder: Path) -> int:
    """How many are kept, whatever the metadata say."""
    files = list(folder.glob("*.hdf5"))
    if not files:
        return sum(entry.name.isdigit() for entry in folder.iterdir())
    with File(files[0], "r") as file:
        return sum(str(name).startswith("episode_") for name in file)


def refuse_other_count(what: str, said: int, there: int, title: str) -> None:
    if said != there:
        raise UserError(f"{title}: {there} {what} are there, and its metadata say {said}; is the copy complete?")


def refuse_unwritten(path: Path) -> None:
    def check(name: bytes) -> None:
        entry = h5o.open(file.id, name)
        if isinstance(entry, h5d.DatasetID) and is_elsewhere(entry):
            raise ValueError(f"{name.decode(errors='replace')} is kept in other files")
        if isinstance(entry, h5d.DatasetID) and entry.shape and not is_written(entry):
            raise ValueError(f"not all of {name.decode(errors='replace')} was written")

    with File(path, "r") as file:
        h5o.visit(file.id, check)


def together(parts: list[Steps]) -> Steps:
    return Steps(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def episode_steps(episode: dict[str, Any], seen: spaces.Space, acted: spaces.Space, title: str) -> Steps:
    rewards = np.asarray(episode["rewards"])
    count = len(rewards)
    obs = flatten(seen, episode["observations"], count + 1)
    actions = np.asarray(episode["actions"])
    terminals, truncations = (np.asarray(episode[key], bool) for key in ("terminations", "truncations"))
    if len(obs) != count + 1 or not (len(actions) == len(terminals) == len(truncations) == count):
        raise UserError(f"{title}: episode {episode.get('id')} has {len(obs)} observations for {count} rewards")
    ends = np.arange(count) == count - 1
    return Steps(
        obs[:-1], flatten(acted, actions, count), rewards, terminals, (truncations | ends) & ~terminals, obs[1:]
    )


def check_space(space: spaces.Space, what: str) -> None:
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else getattr(space, "spaces", ())
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for part in parts:
            check_space(part, what)
    elif not isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiBinary | spaces.MultiDiscrete):
        raise UserError(f"{what} hold {type(space).__name__}, which are not numbers")


def flatten(space: spaces.Space, value: Any, count: int) -> np.ndarray:
    """As ``gymnasium.spaces.flatten``, for ``count`` values at once."""
    if isinstance(space, spaces.Dict):
        return np.concatenate([flatten(part, value[key], count) for key, part in space.spaces.items()], axis=1)
    if isinstance(space, spaces.Tuple):
        parts = zip(space.spaces, value, strict=True)
        return np.concatenate([flatten(part, each, count) for part, each in parts], axis=1)
    value = np.asarray(value)
    if isinstance(space, spaces.Discrete):
        return one_hot(value.reshape(count) - space.start, int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        value, sizes, starts = value.reshape(count, -1), space.nvec.ravel(), np.ravel(space.start)
        return np.concatenate([one_hot(value[:, i] - starts[i], int(n)) for i, n in enumerate(sizes)], axis=1)
    return value.reshape(count, spaces.flatdim(space))


def one_hot(value: np.ndarray, size: int) -> np.ndarray:
    if value.size and not (value.min() >= 0 and value.max() < size):
        raise ValueError(f"a discrete value is not below {size}")
    return (value[:, None] == np.arange(size)[None]).astype(np.float32)


def part_names(space: spaces.Space, prefix: str = "") -> list[str]:
    """A name for each number of a flattened observation."""
    if isinstance(space, spaces.Dict):
        return [name for key, part in space.spaces.items() for name in part_names(part, f"{prefix}{key}.")]
    if isinstance(space, spaces.Tuple):
        return [name for i, part in enumerate(space.spaces) for name in part_names(part, f"{prefix}{i}.")]
    return [f"{prefix}{i}" for i in range(spaces.flatdim(space))]


def environment(about: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The environment to evaluate in, if it is one that is registered here: a file's word is not run as code."""
    for key in ("eval_env_spec", "env_spec"):
        try:
            spec = json.loads(about[key])
            name, options = spec["id"], dict(spec.get("kwargs") or {})
        except (KeyError, TypeError, ValueError):
            continue
        if isinstance(name, str) and is_registered(name):
            limit = spec.get("max_episode_steps")
            return name, options | ({"max_episode_steps": limit} if isinstance(limit, int) and limit > 0 else {})
    return "", {}


def reference(about: dict[str, Any]) -> tuple[float, float] | None:
    low, high = about.get("ref_min_score"), about.get("ref_max_score")
    if isinstance(low, int | float) and isinstance(high, int | float) and -LARGEST <= low < high <= LARGEST:
        return float(low), float(high)
    return None


def write_minari(name: str, log: Log, pieces: Iterator[Steps]) -> Path:
    """A new data set among Minari's local ones; there whole or not at all."""
    path = path_of(name)
    if path.exists():
        raise UserError(f"{PREFIX}{name}: already there ({path}); choose another name or version")
    buffers = list(episode_buffers(pieces, log.name))
    if not buffers:
        raise UserError(f"{log.name}: no transition in it has a known next state")
    options: dict[str, Any] = {}
    if log.reference:
        options |= {"ref_min_score": log.reference[0], "ref_max_score": log.reference[1]}
    if log.env and is_registered(log.env):
        options["env"] = env_spec(log)
    try:
        # Hidden from Minari until it is whole: what a killed process leaves behind is in nobody's way.
        with tempfile.TemporaryDirectory(dir=get_dataset_path(), prefix=".edp-") as part:
            with warnings.catch_warnings(), datasets_in(part):
                warnings.simplefilter("ignore")
                minari.create_dataset_from_buffers(
                    name, buffers, observation_space=observed(buffers), action_space=acted(buffers, log), **options
                )
            namespace = parse_dataset_id(name)[0]
            if namespace is not None and namespace not in list_local_namespaces():
                create_namespace(namespace)
            (Path(part) / name).rename(path)
    except Exception as error:
        raise UserError(f"{PREFIX}{name}: cannot be written ({first_line(error)})") from None
    return path


@contextmanager
def datasets_in(folder: str) -> Iterator[None]:
    """Minari's folder of data sets is another one, for the time being."""
    before = os.environ.get("MINARI_DATASETS_PATH")
    os.environ["MINARI_DATASETS_PATH"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["MINARI_DATASETS_PATH"]
        else:
            os.environ["MINARI_DATASETS_PATH"] = before


def env_spec(log: Log) -> EnvSpec:
    """The log's environment with its options, so that a copy is evaluated as the log would be."""
    spec, options = deepcopy(gymnasium.spec(log.env)), dict(log.env_options)
    spec.max_episode_steps = options.pop("max_episode_steps", spec.max_episode_steps)
    spec.kwargs |= options
    return spec


def episode_buffers(pieces: Iterator[Steps], name: str) -> Iterator[EpisodeBuffer]:
    parts: list[Steps] = []
    current = -1

    def finished() -> EpisodeBuffer:
        steps = together(parts)
        assert steps.next_observations is not None
        broken = (steps.next_observations[:-1] != steps.observations[1:]).any(axis=1)
        if broken.any():
            raise UserError(
                f"{name}: the state after step {int(np.argmax(broken))} of episode {current} is not the one that the "
                "next step begins with, and Minari keeps a state once: use .hdf5 or .npz"
            )
        states = plain(np.concatenate([steps.observations, steps.next_observations[-1:]]))
        cut = (np.arange(len(steps.rewards)) == len(steps.rewards) - 1) & ~steps.terminals
        return EpisodeBuffer(
            id=None,
            observations=states,  # pyright: ignore
            actions=plain(steps.actions),  # pyright: ignore
            rewards=plain(steps.rewards),  # pyright: ignore
            terminations=steps.terminals,  # pyright: ignore
            truncations=cut,  # pyright: ignore
        )

    for steps, episode in with_next(pieces):
        starts = np.flatnonzero(np.diff(episode, prepend=episode[0] - 1))
        for start, stop in zip(starts, [*starts[1:], len(episode)], strict=True):
            if episode[start] != current and parts:
                yield finished()
                parts = []
            current = int(episode[start])
            parts.append(steps.rows(slice(int(start), int(stop))))
    if parts:
        yield finished()


def observed(buffers: Sequence[EpisodeBuffer]) -> spaces.Box:
    first: np.ndarray = np.asarray(buffers[0].observations)
    return spaces.Box(-np.inf, np.inf, first.shape[1:], first.dtype.type)


def acted(buffers: Sequence[EpisodeBuffer], log: Log) -> spaces.Box:
    first: np.ndarray = np.asarray(buffers[0].actions)
    kind = first.dtype.type
    if log.low:
        return spaces.Box(np.array(log.low, kind), np.array(log.high, kind), dtype=kind)
    low = np.min([np.min(buffer.actions, axis=0) for buffer in buffers], axis=0)  # pyright: ignore
    high = np.max([np.max(buffer.actions, axis=0) for buffer in buffers], axis=0)  # pyright: ignore
    return spaces.Box(low.astype(kind), high.astype(kind), dtype=kind)
