"""What a run was trained on, and what became of it: its data and its checkpoints, found again."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from edp.training import epoch, processes
from edp.algorithms import Algorithm
from edp.algorithms.actor_critic import ActorCritic
from edp.runs.checkpoints import Checkpoint, Checkpoints, restore_alone
from edp.data import episodes, formats, stream
from edp.data.dataset import Dataset, fingerprint, read_dataset
from edp.data.log import Log
from edp.errors import UserError
from edp.policies import PolicyConfig, TransformerConfig
from edp.runs.directory import Run
from edp.config.spec import Spec, tuples
from edp.batches import Packed, Sequences


@dataclass(frozen=True)
class Init:
    """Makes one seed's training state. Equal ones are equal to JAX, too, which compiles them once."""

    algorithm: Algorithm
    policy: PolicyConfig
    obs_dim: int
    act_dim: int

    def __call__(self, key) -> Any:
        policy_key, algorithm_key = jax.random.split(key)
        policy = self.policy.build(self.obs_dim, self.act_dim, policy_key)
        return self.algorithm.init(policy, self.obs_dim, self.act_dim, algorithm_key)


def learnable(
    algorithm: Algorithm, policy: PolicyConfig, dataset: Dataset, n_step: int = 1, on_disk: bool = False
) -> Packed | Sequences:
    """The data in the form that the algorithm learns from, still on the host."""
    if isinstance(policy, TransformerConfig):
        return episodes.sequences(dataset, policy.context, policy.return_scale)
    tails = None
    if isinstance(algorithm, ActorCritic) and algorithm.learns_from == "tails":
        tails = episodes.tails(dataset, algorithm.discount)
    if isinstance(algorithm, ActorCritic):
        dataset = episodes.n_step(dataset, n_step, algorithm.discount)
    return stream.pack(episodes.transitions(dataset, tails), on_disk)


def latest(folder: Run, checkpoints: Checkpoints, like: Any, *, remove_damaged: bool = False) -> Checkpoint | None:
    """A run's last good checkpoint."""
    if folder.old_checkpoint.is_dir() and not checkpoints.steps():
        step = max((row["step"] for row in folder.metrics()), default=0)
        return Checkpoint(step, restore_alone(folder.old_checkpoint, like), {})
    return checkpoints.latest(like, remove_damaged=remove_damaged)


def from_leader(found: Checkpoint | None, like: Any) -> Checkpoint | None:
    """The first process's checkpoint in all of them."""
    said = processes.exchange(found and (found.step, found.about, found.damaged))[0]
    if said is None:
        return None
    step, about, damaged = said
    empty = lambda: jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like)  # noqa: E731
    return Checkpoint(step, processes.from_leader(found.tree if found else empty()), about, tuple(damaged))


def best_of(scores: dict[int, float], steps: Iterable[int]) -> int | None:
    """The step with the best score, of those that have one."""
    known = {step: scores[step] for step in steps if not np.isnan(scores.get(step, np.nan))}
    return max(known, key=lambda step: known[step]) if known else None


def open_data(place: str, columns: dict[str, Any], spec: Spec) -> Log:
    """The log that a run is trained on, or is to be."""
    log = formats.open_log(place, columns, spec.task.episode_limit or None)
    return replace(log, limit=spec.data.episode_limit)


def read_data(folder: Run, spec: Spec, place: str) -> Dataset:
    """The data that a run was trained on, in its units; anything else is refused."""
    columns = folder.config.get("columns")
    log = open_data(place, tuples(columns) if isinstance(columns, dict) else {}, spec)
    dataset = read_dataset(log, spec.task.episode_return, on_disk=spec.data.block > 0)
    if dataset.obs.shape[1:] + dataset.action.shape[1:] != spec.scale.dims:
        raise UserError(f"{place}: not the data that {folder.folder} was trained on")
    dataset = spec.scale.apply(dataset, log)
    if folder.config.get("data_sha256") not in (None, fingerprint(dataset)):
        raise UserError(f"{place}: not the data that {folder.folder} was trained on")
    return dataset


def load(folder: Run, step: int | str | None = None) -> tuple[Spec, Checkpoint]:
    """A run's spec and its training states.

    The last ones, or those of a step, of the "best" evaluation, or with the best value by "fqe".
    """
    spec = Spec.from_json(folder.config, folder.folder / "config.json")
    checkpoints = Checkpoints(folder.checkpoints)
    keys = epoch.seed_keys(range(spec.training.seeds))
    like = jax.eval_shape(jax.vmap(Init(spec.algorithm, spec.policy, *spec.scale.dims)), keys)
    try:
        if step in ("best", "fqe"):
            scores = folder.scores() if step == "best" else folder.offline_values()
            missing = "evaluated checkpoint" if step == "best" else f"values (edp eval {folder.folder} --offline)"
            if (step := best_of(scores, checkpoints.steps())) is None:
                raise UserError(f"{folder.folder}: no {missing} in it yet")
        if step is not None:
            if not str(step).isdecimal():
                raise UserError(f"--checkpoint must be a step, best or fqe, not {step!r}")
            return spec, checkpoints.load(int(step), like)
        found = latest(folder, checkpoints, like)
        if found is None:
            raise UserError(f"{folder.folder}: no checkpoint in it yet")
        return spec, found
    finally:
        checkpoints.close()
