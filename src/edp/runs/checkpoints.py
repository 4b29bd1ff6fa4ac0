"""Checkpoints: pytrees of arrays, written by Orbax under names taken from their structure; never a pickle.

A checkpoint exists as a whole or not at all. It carries a digest of its arrays and of what it says about itself, so
that a damaged checkpoint is noticed and the one before it is used. It also has a copy of the config, so that a changed
config is noticed.
"""

import hashlib
import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from edp.errors import UserError, first_line
from edp.runs.about import ABOUT, read_about, seal
from edp.runs.agreement import ConfigChangedError, check_agreement
from edp.runs.rows import Row

STATE = "state"
LATEST, SPREAD = 2, 10  # how many checkpoints are kept: the latest, and others spread evenly over the run


class Checkpoint(NamedTuple):
    step: int
    tree: Any
    about: dict[str, Any]
    damaged: tuple[str, ...] = ()  # errors of later checkpoints that cannot be used, or of the logs that chose this one

    @property
    def failed(self) -> dict[int, str]:
        """The seeds that had failed by this step, with the reason."""
        return {int(seed): str(why) for seed, why in self.about.get("failed", {}).items()}


class Checkpoints:
    """The checkpoints in a folder, by step.

    ``total`` is the number of steps of the run, over which the kept checkpoints are spread; 0 opens them read-only.
    Steps in the set ``held`` are always kept. ``config`` is the run's (see ``recorded_config``): checkpoints get a copy
    of it, and those with another one are refused.
    """

    def __init__(self, folder: Path, total: int = 0, config: Row | None = None):
        self.folder, self.total, self.config, self.held = folder, total, config, set[int]()

    @cached_property
    def manager(self) -> Any:
        """Orbax's manager, made when it is first needed because its import is slow."""
        import orbax.checkpoint as ocp
        from orbax.checkpoint import checkpoint_managers as keep

        writes = self.total > 0
        silence_orbax()
        options = ocp.CheckpointManagerOptions(
            read_only=not writes,
            create=False,
            multiprocessing_options=single_process(),
            cleanup_tmp_directories=writes,
            preservation_policy=keep.AnyPreservationPolicy(
                [
                    keep.LatestN(LATEST),
                    keep.EveryNSteps(max(1, self.total // SPREAD), exact_interval=False),
                    Held(self.held),
                ]
            ),
        )
        handlers = {
            STATE: ocp.StandardCheckpointHandler(multiprocessing_options=single_process()),
            ABOUT: ocp.JsonCheckpointHandler(multiprocessing_options=single_process()),
        }
        with checkpoint_errors(self.folder):
            if writes:
                self.folder.mkdir(exist_ok=True)
            return ocp.CheckpointManager(self.folder.absolute(), options=options, item_handlers=handlers)

    @property
    def opened(self) -> bool:
        return "manager" in self.__dict__

    def save(self, step: int, tree: Any, about: dict[str, Any] | None = None) -> None:
        """Write a checkpoint in the background, in the place of an older one of this step.

        Raises the error of the previous write, if there was one.
        """
        import orbax.checkpoint as ocp

        leaves = {
            name: np.array(leaf) for name, leaf in leaves_by_name(tree).items()
        }  # copies, because training goes on
        about = (about or {}) | ({} if self.config is None else {"config": self.config})
        about = seal(about | {"step": step, "sha256": arrays_digest(leaves)})
        items = {STATE: ocp.args.StandardSave(leaves), ABOUT: ocp.args.JsonSave(about)}  # pyright: ignore
        with checkpoint_errors(self.folder):
            self.manager.check_for_errors()
            if step in self.manager.all_steps():
                self.manager.delete(step)
            self.manager.save(step, args=ocp.args.Composite(**items), force=True)

    def finish(self) -> None:
        """Wait until all checkpoints are on disk."""
        if self.opened:
            with checkpoint_errors(self.folder):
                self.manager.wait_until_finished()
                self.manager.check_for_errors()

    def steps(self) -> list[int]:
        return sorted(self.manager.all_steps()) if self.folder.is_dir() else []

    def load(self, step: int, like: Any) -> Checkpoint:
        """The checkpoint of a step, with the structure, shapes and types of ``like`` (whose arrays may be abstract)."""
        import orbax.checkpoint as ocp

        if step not in self.steps():
            raise UserError(f"{self.folder}: no checkpoint of step {step} (there are: {self.steps() or 'none'})")
        wanted = {name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for name, leaf in leaves_by_name(like).items()}
        where = self.folder / str(step)
        about = read_about(where)
        if self.config is not None and "config" in about:
            check_agreement(where, about["config"], self.config)
        try:
            found: Any = self.manager.item_metadata(step)[STATE]
            shapes = {name: tuple(leaf.shape) for name, leaf in found.items()}
            if shapes != {name: leaf.shape for name, leaf in wanted.items()}:
                raise UserError(f"{where}: the checkpoint of another run (its arrays have other names or shapes)")
            empty = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in wanted.items()}
            items = {STATE: ocp.args.StandardRestore(empty)}  # pyright: ignore
            read = self.manager.restore(step, args=ocp.args.Composite(**items))
            arrays = {name: read[STATE][name] for name in wanted}
            damaged = about["sha256"] != arrays_digest(arrays)
        except UserError:
            raise
        except Exception as error:  # damaged files make the libraries raise many kinds of errors
            raise UserError(f"{where}: damaged ({first_line(error)[:200]})") from None
        if damaged:
            raise UserError(f"{where}: damaged (its arrays are not those that were saved)")
        return Checkpoint(step, jax.tree.unflatten(jax.tree.structure(like), arrays.values()), about)

    def latest(self, like: Any, *, last: int | None = None, remove_damaged: bool = False) -> Checkpoint | None:
        """The last good checkpoint, at step ``last`` or before it.

        Damaged ones after it are reported, and removed if ``remove_damaged``. A config that is not that of a checkpoint
        is an error, and removes nothing.
        """
        damaged: dict[int, str] = {}
        for step in reversed([step for step in self.steps() if last is None or step <= last]):
            try:
                found = self.load(step, like)
            except ConfigChangedError:
                raise
            except UserError as error:
                damaged[step] = str(error)
                continue
            for bad in damaged if remove_damaged else ():
                self.manager.delete(bad)
            return found._replace(damaged=tuple(damaged.values()))
        if damaged:
            others = f" (nor can the other {len(damaged) - 1})" if len(damaged) > 1 else ""
            raise UserError(f"{next(iter(damaged.values()))}{others}")
        return None

    def close(self) -> None:
        if self.opened:
            with checkpoint_errors(self.folder):
                self.manager.close()


def single_process() -> Any:
    """Options that keep Orbax from waiting for other processes: one process writes all checkpoints."""
    from orbax.checkpoint.options import MultiprocessingOptions

    return MultiprocessingOptions(0, {0}, "edp")


def silence_orbax() -> None:
    """Keep Orbax and TensorStore from printing errors that are also raised, and shown in one line."""
    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    show = sys.unraisablehook

    def hook(error: Any) -> None:
        if str(error.exc_value) != "Event loop is closed":  # raised by writes that follow a failed one
            show(error)

    if show is sys.__unraisablehook__:
        sys.unraisablehook = hook


class Held(NamedTuple):
    """Orbax's rule that keeps the steps in a set. The set may change."""

    steps: Set[int]

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        return [checkpoint.step in self.steps for checkpoint in checkpoints]


@contextmanager
def checkpoint_errors(folder: Path) -> Iterator[None]:
    """Turn Orbax's errors into one line. The reason of a failed write is deep in a chain of them."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        code = re.search(r"os_error_code='(\d+)'", str(error)) or re.search(r"\[Errno (\d+)\]", str(error))
        reason = os.strerror(int(code[1])) if code else first_line(error)
        raise UserError(f"{folder}: cannot write a checkpoint ({reason}); those before it are intact") from None


def restore_schema_2(folder: Path, like: Any) -> Any:
    """The only checkpoint of a run of schema 2."""
    import orbax.checkpoint as ocp

    silence_orbax()
    wanted = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in leaves_by_name(like).items()}
    try:
        with ocp.StandardCheckpointer(multiprocessing_options=single_process()) as checkpointer:
            arrays = checkpointer.restore(folder.absolute(), wanted)
    except Exception as error:
        raise UserError(f"{folder}: damaged ({first_line(error)[:200]})") from None
    return jax.tree.unflatten(jax.tree.structure(like), [arrays[name] for name in wanted])


def leaves_by_name(tree: Any) -> dict[str, Any]:
    """The leaves of a tree, by names like ``.policy.model.net.body.layers[0].weight``."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def arrays_digest(arrays: dict[str, np.ndarray]) -> str:
    """The SHA-256 of the names, types, shapes and contents of some arrays."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
