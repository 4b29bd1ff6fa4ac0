import pytest

from support.plans import to_toml

SMALL = {
    "task": "hopper-medium-v2",
    "preset": "edp",
    "steps": 120,
    "seeds": 2,
    "epoch_steps": 10,
    "eval_every": 20,
    "checkpoint_every": 20,
    "episodes": 1,
    "hidden": [16],
    "critic_hidden": [16],
    "batch_size": 32,
    "calls": 2,
    "eas": 2,
}


@pytest.fixture
def small(hopper_file):
    """A plan of small trials: tables of it may be replaced."""

    def plan(**tables):
        train = SMALL | {"data": str(hopper_file)} | tables.pop("train", {})
        return {"train": train, "space": {"lr": [1e-3, 3e-4, 1e-4]}, "search": {"confirm": 0}} | tables

    return plan


@pytest.fixture
def as_file(tmp_path):
    """Writes a plan as a TOML file."""

    def write(plan, name="plan.toml"):
        path = tmp_path / name
        path.write_text(to_toml(plan))
        return path

    return write
