"""The paper's own scores, as it prints them."""

import json
from pathlib import Path
from typing import NamedTuple

from edp.data.tasks import Task

TABLES = json.loads(Path(__file__).with_name("paper.json").read_text())
# (algorithm, policy): its column in the table of all algorithms, and that of its best evaluations in another one.
COLUMNS: dict[tuple[str, str], tuple[str, tuple[str, str] | None]] = {
    ("bc", "gaussian"): ("BC", None),
    ("dt", "transformer"): ("DT", None),
    ("awac", "gaussian"): ("AWAC", None),
    ("onestep", "gaussian"): ("OneStep", None),
    ("cql", "gaussian"): ("CQL", None),
    ("td3bc", "deterministic"): ("TD3+BC FF", None),
    ("crr", "gaussian"): ("CRR FF", None),
    ("iql", "gaussian"): ("IQL FF", None),
    # "TD3 best" of the table of best and average repeats other rows in three domains: this is where they come from
    ("td3bc", "diffusion"): ("TD3+BC EDP", ("reproduce", "EDP")),
    ("crr", "diffusion"): ("CRR EDP", ("best_and_average", "CRR best")),
    ("iql", "diffusion"): ("IQL EDP", ("best_and_average", "IQL best")),
}


class Scores(NamedTuple):
    """A task's scores by the paper's two measures; what it does not print is None."""

    rat: float | None  # mean of the last ten evaluations
    oms: float | None  # the best evaluation


def scores(task: Task, algorithm: str, policy: str) -> Scores:
    if (algorithm, policy) not in COLUMNS or repeats_cql(task, algorithm, policy):
        return Scores(None, None)
    average, best = COLUMNS[algorithm, policy]
    return Scores(entry("overall", task, average), entry(best[0], task, best[1]) if best else None)


def repeats_cql(task: Task, algorithm: str, policy: str) -> bool:
    """The column of feed-forward CRR is CQL's, but for AntMaze."""
    return (algorithm, policy) == ("crr", "gaussian") and task.domain != "antmaze"


def entry(table: str, task: Task, column: str) -> float | None:
    content = TABLES[table]
    row = content["rows"].get(task.name)
    return row and row[content["columns"].index(column)]
