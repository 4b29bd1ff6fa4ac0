import pytest

import edp
from support.plant import COLUMNS, OPTIONS, write_plant


@pytest.fixture(scope="session")
def plant(tmp_path_factory):
    """A log with a time and a column of texts."""
    return write_plant(tmp_path_factory.mktemp("plant") / "plant.csv")


@pytest.fixture(scope="session")
def plant_run(plant, tmp_path_factory):
    """A tiny run on it, which sees the time as a calendar."""
    out = tmp_path_factory.mktemp("runs") / "plant"
    columns = COLUMNS | {"missing": ("refuse", "draw_l_min=ffill"), "operator_column": "operator"}
    edp.fit(plant, out, algo="bc", columns=columns, action_low=(0, 0), action_high=(100, 100), **OPTIONS)
    return out
