"""What a checkpoint says about itself, and a digest of it.

It is a JSON object beside the arrays: the step, the seeds that failed, the config with which the checkpoint was made,
the digest of the arrays, and how many rows the logs had. Reports read it too, so nothing here needs JAX.
"""

import hashlib
import json
from pathlib import Path

from edp.errors import UserError
from edp.runs.rows import Row

ABOUT, DIGEST = "about", "about_sha256"
BEFORE_DIGESTS = {"failed", "last_good", "sha256"}  # all that checkpoints said before they had a digest of it


def seal(about: Row) -> Row:
    """Add the digest of all entries."""
    return about | {DIGEST: json_digest(about)}


def read_about(checkpoint: Path) -> Row:
    """What the checkpoint in this folder says about itself. Raises UserError if it is not what was saved."""
    try:
        about = json.loads((checkpoint / ABOUT / "metadata").read_text(encoding="utf-8"))
        said = about.pop(DIGEST, None)
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise UserError(f"{checkpoint}: damaged (its metadata cannot be read: {type(error).__name__})") from None
    if said != json_digest(about) if said is not None else not about.keys() <= BEFORE_DIGESTS:
        raise UserError(f"{checkpoint}: damaged (its metadata is not what was saved)")
    if about.get("step", checkpoint.name) not in (checkpoint.name, int(checkpoint.name)):
        raise UserError(f"{checkpoint}: the checkpoint of step {about['step']} under another name; rename it")
    return about


def json_digest(content: Row) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of the complete checkpoints in a folder, without Orbax."""
    return sorted(int(entry.name) for entry in folder.iterdir() if is_step(entry.name)) if folder.is_dir() else []


def is_step(name: str) -> bool:
    return name.isascii() and name.isdecimal() and str(int(name)) == name
