"""Minari's data sets. Observations of several parts become one row of numbers (see ``spaces``)."""

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import minari
import numpy as np
from gymnasium import spaces
from h5py import File, h5d, h5l, h5o  # pyright: ignore
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.storage.datasets_root_dir import get_dataset_path

from edp.data.checks import check_exists, refuse_other_count
from edp.data.connection import answers
from edp.data.environments import plain_environment
from edp.data.formats import Format
from edp.data.formats.hdf5 import is_in_other_files, is_written
from edp.data.formats.spaces import check_space, flatten_values, part_names
from edp.data.log import LARGEST, Log, Steps, join_steps
from edp.envs.make import is_registered
from edp.errors import UserError, counted, first_line, printable
from edp.files import refuse_existing

PREFIX = "minari:"
HUGGING_FACE = "hf://"
ANSWER_TIME = 15.0  # seconds
GATHER = 4096  # steps, at least, in a piece
WIDEST = 2**20  # numbers in an observation


def minari_path(name: str) -> Path:
    """Return the folder of a data set, which may not exist."""
    try:
        parse_dataset_id(name)
        path = Path(get_dataset_path(name))
        path.exists()  # raises an error if no folder can have this name
        return path
    except (ValueError, TypeError):
        raise UserError(f"{PREFIX}{name}: names of Minari's data sets are like mine/first-v0") from None
    except OSError as error:
        raise UserError(f"{PREFIX}{name}: no folder for it ({error.strerror})") from None


def download_minari(name: str) -> Path:
    """Download one of the data sets that Minari publishes."""
    path = minari_path(name)
    try:
        check_hub(name)
        minari.download_dataset(name)
    except UserError:
        raise
    except Exception as error:  # Minari's network libraries raise many kinds
        raise UserError(f"{PREFIX}{name}: cannot be downloaded ({type(error).__name__}: {first_line(error)})") from None
    return path


def check_hub(name: str) -> None:
    """Refuse a download if its server does not answer: the client of Hugging Face would try many times."""
    if not os.environ.get("MINARI_REMOTE", HUGGING_FACE).startswith(HUGGING_FACE):
        return
    from huggingface_hub import constants
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # it reports every attempt
    try:
        reached = answers(constants.ENDPOINT, ANSWER_TIME)
    except UserError:  # of the certificate, for which the client may have other settings
        return
    if not reached:
        raise UserError(f"{PREFIX}{name}: {constants.ENDPOINT} cannot be reached; is this machine offline?")


def open_minari(name: str) -> Log:
    title, path = f"{PREFIX}{name}", minari_path(name)
    if not (path / "data").is_dir():
        raise UserError(f"{title}: not in {path.parent}: download it first, if Minari has it")
    try:
        for file in path.rglob("*"):
            check_exists(file)
        for file in (path / "data").glob("*.hdf5"):
            refuse_links(file)
        about = MinariStorage.read_raw_metadata(path / "data")
        missing = [key for key in ("observation_space", "action_space") if not isinstance(about.get(key), str)]
        if missing:  # Minari would then make the environment that the file names, and so run any code
            raise UserError(f"{title}: its metadata have no {missing[0]}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            storage = MinariStorage.read(path / "data")
        seen, acted = storage.observation_space, storage.action_space
        check_space(seen, f"{title}: observations")
        if not 0 < spaces.flatdim(seen) <= WIDEST:
            raise UserError(f"{title}: observations have {spaces.flatdim(seen)} numbers, and {WIDEST} are the most")
        if not isinstance(acted, spaces.Box):
            raise UserError(f"{title}: actions are {type(acted).__name__}, and only Box is supported")
        low, high = (tuple(float(number) for number in side.ravel()) for side in (acted.low, acted.high))
        finite = np.isfinite(low + high).all()
        env, options, refused = registered_environment(about)
        return Log(
            name=title,
            pieces=lambda: minari_pieces(storage, title),
            size=int(storage.total_steps),
            env=env,
            env_options=options,
            reference=reference_scores(about),
            low=low if finite else (),
            high=high if finite else (),
            observation_names=tuple(part_names(seen)),
            left_out=refused,
        )
    except UserError:
        raise
    except Exception as error:  # Minari and its libraries raise many kinds
        raise damaged(title, error) from None


def damaged(title: str, error: Exception) -> UserError:
    return UserError(f"{title}: damaged, or not as Minari writes it ({type(error).__name__}: {first_line(error)})")


def minari_pieces(storage: MinariStorage, title: str) -> Iterator[Steps]:
    gathered: list[Steps] = []
    rows = 0
    try:
        for file in storage.data_path.glob("*.hdf5"):
            refuse_unwritten(file)
        refuse_other_count("episodes", storage.total_episodes, count_episodes_in(storage.data_path), title)
        for episode in storage.get_episodes(range(storage.total_episodes)):
            gathered.append(minari_episode_steps(episode, storage.observation_space, storage.action_space, title))
            rows += len(gathered[-1].rewards)
            if sum(len(steps.rewards) for steps in gathered) >= GATHER:
                yield join_steps(gathered)
                gathered = []
        if gathered:
            yield join_steps(gathered)
        refuse_other_count("steps", storage.total_steps, rows, title)
    except UserError:
        raise
    except Exception as error:
        raise damaged(title, error) from None


def count_episodes_in(folder: Path) -> int:
    """Count the episodes of a folder without its metadata."""
    files = list(folder.glob("*.hdf5"))
    if not files:
        return sum(entry.name.isdigit() for entry in folder.iterdir())
    with File(files[0], "r") as file:
        return sum(str(name).startswith("episode_") for name in file)


def refuse_links(path: Path) -> None:
    """Refuse soft and external links. Following them could open any file."""
    with File(path, "r") as file:
        found = file.id.links.visit(lambda name, link: None if link.type == h5l.TYPE_HARD else name, info=True)
    if found is not None:
        raise ValueError(f"{printable(found.decode(errors='replace'))} is a link to another place")


def refuse_unwritten(path: Path) -> None:
    def check(name: bytes) -> None:
        entry = h5o.open(file.id, name)
        if isinstance(entry, h5d.DatasetID) and is_in_other_files(entry):
            raise ValueError(f"{printable(name.decode(errors='replace'))} is kept in other files")
        if isinstance(entry, h5d.DatasetID) and entry.shape and not is_written(entry):
            raise ValueError(f"not all of {printable(name.decode(errors='replace'))} was written")

    with File(path, "r") as file:
        h5o.visit(file.id, check)


def minari_episode_steps(episode: dict[str, Any], seen: spaces.Space, acted: spaces.Space, title: str) -> Steps:
    rewards = np.asarray(episode["rewards"])
    count = len(rewards)
    obs = flatten_values(seen, episode["observations"], count + 1)
    actions = np.asarray(episode["actions"])
    terminals, truncations = (np.asarray(episode[key], bool) for key in ("terminations", "truncations"))
    if len(obs) != count + 1 or not (len(actions) == len(terminals) == len(truncations) == count):
        has = f"{counted(len(obs), 'observation')} for {counted(count, 'reward')}"
        raise UserError(f"{title}: episode {episode.get('id')} has {has}")
    ends = np.arange(count) == count - 1
    return Steps(
        obs[:-1], flatten_values(acted, actions, count), rewards, terminals, (truncations | ends) & ~terminals, obs[1:]
    )


def registered_environment(about: dict[str, Any]) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return the environment to evaluate in and its options, or why it is left out.

    Only registered environments with plain options count: others could run any code.
    """
    for key in ("eval_env_spec", "env_spec"):
        try:
            spec = json.loads(about[key])
            name, options = spec["id"], dict(spec.get("kwargs") or {})
        except (KeyError, TypeError, ValueError):
            continue
        if isinstance(name, str) and is_registered(name):
            limit = spec.get("max_episode_steps")
            options |= {"max_episode_steps": limit} if isinstance(limit, int) and limit > 0 else {}
            return plain_environment(name, options)
    return "", {}, ()


def reference_scores(about: dict[str, Any]) -> tuple[float, float] | None:
    low, high = about.get("ref_min_score"), about.get("ref_max_score")
    if isinstance(low, int | float) and isinstance(high, int | float) and -LARGEST <= low < high <= LARGEST:
        return float(low), float(high)
    return None


def write_minari(name: str, log: Log) -> str:
    from edp.data.formats.minari_writer import write_minari_dataset

    return str(write_minari_dataset(name, minari_path(name), log))


FORMAT = Format(
    open=lambda name, columns, episode_limit: open_minari(name.removeprefix(PREFIX)),
    write=lambda name, log: write_minari(name.removeprefix(PREFIX), log),
    place=lambda name: minari_path(name.removeprefix(PREFIX)),
    check_place=refuse_existing,
    loses_environment=lambda log: "" if is_registered(log.env) else "it is not registered here",
    needs_next_observations=True,
    download=lambda name: download_minari(name.removeprefix(PREFIX)),
)
