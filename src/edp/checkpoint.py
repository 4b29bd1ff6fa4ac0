"""Checkpoints: any pytree of arrays, written by Orbax under names taken from its structure; never a pickle."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from edp.errors import UserError, first_line


def by_name(tree: Any) -> dict[str, Any]:
    """The tree's leaves under names like ``.policy.model.net.body.layers[0].weight``."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def save(folder: Path, tree: Any) -> None:
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(
            folder.absolute(), {name: np.asarray(leaf) for name, leaf in by_name(tree).items()}, force=True
        )


def restore(folder: Path, like: Any) -> Any:
    """The tree saved in ``folder``, with the structure, shapes and types of ``like`` (its arrays may be abstract)."""
    wanted = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in by_name(like).items()}
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            arrays = checkpointer.restore(folder.absolute(), wanted)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{folder}: cannot be read as a checkpoint of this run ({first_line(error)})") from None
    return jax.tree.unflatten(jax.tree.structure(like), [arrays[name] for name in wanted])
