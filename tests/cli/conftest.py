import pytest
from small import TINY

from edp.cli import main


@pytest.fixture(scope="session")
def run_folder(hopper_file, tmp_path_factory):
    """A run of two seeds with two evaluations. Tests may add evaluations to it, but may not change the others."""
    folder = tmp_path_factory.mktemp("runs") / "r"
    words = ["--data", str(hopper_file), "--out", str(folder), "--seeds", "2", "--seed", "7"]
    assert main(["train", "hopper-medium-v2", *words, *TINY]) == 0
    return folder
