"""Writing a log as a Minari data set."""

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
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path

from edp.data.checks import checked_pieces
from edp.data.dataset import with_next_observations
from edp.data.log import Log, Steps, join_steps, plain_numbers
from edp.envs.make import is_registered
from edp.errors import UserError, first_line


def write_minari_dataset(name: str, path: Path, log: Log) -> Path:
    """Add a data set to Minari's local ones, in place of one that is there. It appears whole or not at all."""
    buffers = list(episode_buffers(log))
    if not buffers:
        raise UserError(f"{log.name}: no transition in it has a known next state")
    options: dict[str, Any] = {}
    if log.reference:
        options |= {"ref_min_score": log.reference[0], "ref_max_score": log.reference[1]}
    if log.env and is_registered(log.env):
        options["env"] = env_spec(log)
    try:
        # Minari does not list the folder of a name with a dot, so what a killed process leaves behind does no harm.
        with tempfile.TemporaryDirectory(dir=get_dataset_path(), prefix=".edp-") as part:
            with warnings.catch_warnings(), datasets_in(part):
                warnings.simplefilter("ignore")
                minari.create_dataset_from_buffers(
                    name,
                    buffers,
                    observation_space=observation_box(buffers),
                    action_space=action_box(buffers, log),
                    **options,
                )
            namespace = parse_dataset_id(name)[0]
            if namespace is not None and namespace not in list_local_namespaces():
                create_namespace(namespace)
            if path.exists():
                path.rename(Path(part) / ".replaced")
            (Path(part) / name).rename(path)
    except Exception as error:
        raise UserError(f"minari:{name}: cannot be written ({first_line(error)})") from None
    return path


@contextmanager
def datasets_in(folder: str) -> Iterator[None]:
    """Make Minari keep its data sets in another folder for a while."""
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
    """Return the log's environment with its options."""
    spec, options = deepcopy(gymnasium.spec(log.env)), dict(log.env_options)
    spec.max_episode_steps = options.pop("max_episode_steps", spec.max_episode_steps)
    spec.kwargs |= options
    return spec


def episode_buffers(log: Log) -> Iterator[EpisodeBuffer]:
    parts: list[Steps] = []
    current = -1

    def finished_buffer() -> EpisodeBuffer:
        steps = join_steps(parts)
        assert steps.next_observations is not None
        broken = (steps.next_observations[:-1] != steps.observations[1:]).any(axis=1)
        if broken.any():
            raise UserError(
                f"{log.name}: the state after step {int(np.argmax(broken))} of episode {current} is not the one that "
                "the next step begins with, and Minari stores each state once: use another format"
            )
        states = plain_numbers(np.concatenate([steps.observations, steps.next_observations[-1:]]))
        cut = (np.arange(len(steps.rewards)) == len(steps.rewards) - 1) & ~steps.terminals
        return EpisodeBuffer(
            id=None,
            observations=states,  # pyright: ignore
            actions=plain_numbers(steps.actions),  # pyright: ignore
            rewards=plain_numbers(steps.rewards),  # pyright: ignore
            terminations=steps.terminals,  # pyright: ignore
            truncations=cut,  # pyright: ignore
        )

    for steps, episode in with_next_observations(checked_pieces(log)):
        starts = np.flatnonzero(np.diff(episode, prepend=episode[0] - 1))
        for start, stop in zip(starts, [*starts[1:], len(episode)], strict=True):
            if episode[start] != current and parts:
                yield finished_buffer()
                parts = []
            current = int(episode[start])
            parts.append(steps.rows(slice(int(start), int(stop))))
    if parts:
        yield finished_buffer()


def observation_box(buffers: Sequence[EpisodeBuffer]) -> spaces.Box:
    first: np.ndarray = np.asarray(buffers[0].observations)
    return spaces.Box(-np.inf, np.inf, first.shape[1:], first.dtype.type)


def action_box(buffers: Sequence[EpisodeBuffer], log: Log) -> spaces.Box:
    first: np.ndarray = np.asarray(buffers[0].actions)
    kind = first.dtype.type
    if log.low:
        return spaces.Box(np.array(log.low, kind), np.array(log.high, kind), dtype=kind)
    low = np.min([np.min(buffer.actions, axis=0) for buffer in buffers], axis=0)  # pyright: ignore
    high = np.max([np.max(buffer.actions, axis=0) for buffer in buffers], axis=0)  # pyright: ignore
    return spaces.Box(low.astype(kind), high.astype(kind), dtype=kind)
