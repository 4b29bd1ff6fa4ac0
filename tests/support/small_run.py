"""A small run for tests of runs that are killed, stopped, damaged or resumed."""

import sys

import numpy as np

from edp.runs import load
from edp.runs.checkpoints import arrays_digest, leaves_by_name
from edp.runs.directory import Run

EPOCH, STEPS = 20, 400
SMALL = [
    *["--steps", STEPS, "--epoch-steps", EPOCH, "--eval-every", 100, "--checkpoint-every", EPOCH, "--episodes", 2],
    *["--hidden", "16", "--critic-hidden", "16", "--calls", 3, "--eas", 2, "--policy-target-after", 0],
    *["--batch-size", 32],
    *["--preset", "edp"],  # no decay of the learning rate, which depends on the number of steps
]


def command(*words):
    return [sys.executable, "-m", "edp", *map(str, words)]


def train(hopper_file, out, *more):
    """The words of a command that trains the small run."""
    return ["train", "hopper-medium-v2", "--data", hopper_file, "--out", out, "--seeds", 2, *SMALL, *more]


def arrays(folder, step=None):
    """The arrays of a checkpoint, by name."""
    _, found = load.load_checkpoint(Run.open(folder), step)
    return {name: np.asarray(leaf) for name, leaf in leaves_by_name(found.tree).items()}


def digest(folder, step=None):
    return arrays_digest(arrays(folder, step))


def assert_same(folder, whole):
    """Both runs have the same checkpoint and the same logs, byte for byte."""
    assert digest(folder) == digest(whole)
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert Run.open(folder).status["state"] == "finished"
