"""The paper's published scores, and the runs that are compared with each column of its tables."""

import json
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from edp.config.presets import DOMAINS
from edp.data import tasks
from edp.data.tasks import Task
from edp.report.collect import Entry

PUBLISHED_TABLES = json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))
Options = tuple[tuple[str, Any], ...]


class PaperColumn(NamedTuple):
    """A column of the paper: the runs that it is compared with, and the measure that it shows."""

    algorithm: str
    policy: str
    measure: str = "rat"  # or "oms"
    options: Options = ()  # that the run must have been trained with, by their names in its config


DIFFUSION, GAUSSIAN = "diffusion", "gaussian"
CHAIN: Options = (("policy.train_action", "chain"),)
APPROXIMATE: Options = (("policy.train_action", "approximate"),)
DPM: Options = (("policy.sampler", "dpm"),)
DDPM: Options = (("policy.sampler", "ddpm"),)
K100: Options = (("policy.diffusion_steps", 100),)
ALL_EPISODES: Options = (("data.best", 1.0),)
TEN_PERCENT_BC = "10%BC"
OVERALL = {
    "BC": PaperColumn("bc", GAUSSIAN, options=ALL_EPISODES),
    TEN_PERCENT_BC: PaperColumn("bc", GAUSSIAN, options=(("data.best", 0.1),)),
    "DT": PaperColumn("dt", "transformer"),
    "AWAC": PaperColumn("awac", GAUSSIAN),
    "OneStep": PaperColumn("onestep", GAUSSIAN),
    "CQL": PaperColumn("cql", GAUSSIAN),
    "TD3+BC FF": PaperColumn("td3bc", "deterministic", options=(("evaluation.eas", 1),)),
    "TD3+BC EDP": PaperColumn("td3bc", DIFFUSION, options=APPROXIMATE + DPM),
    "CRR FF": PaperColumn("crr", GAUSSIAN),
    "CRR EDP": PaperColumn("crr", DIFFUSION, options=APPROXIMATE + DPM),
    "IQL FF": PaperColumn("iql", GAUSSIAN),
    "IQL EDP": PaperColumn("iql", DIFFUSION, options=APPROXIMATE + DPM),
}
EDP = OVERALL["TD3+BC EDP"]
DQL = PaperColumn("td3bc", DIFFUSION, "oms", CHAIN + DDPM)
COLUMNS: dict[str, dict[str, PaperColumn]] = {
    "overall": OVERALL,
    "action_approximation": {
        "DDPM": PaperColumn("td3bc", DIFFUSION, "oms", CHAIN + DDPM + K100),
        "action approximation": PaperColumn("td3bc", DIFFUSION, "oms", APPROXIMATE + DDPM + K100),
    },
    "reproduce": {"DQL (JAX)": DQL, "EDP": EDP._replace(measure="oms")},
    "best_and_average": {
        "TD3 average": EDP,
        "TD3 best": EDP._replace(measure="oms"),
        "CRR average": OVERALL["CRR EDP"],
        "CRR best": OVERALL["CRR EDP"]._replace(measure="oms"),
        "IQL average": OVERALL["IQL EDP"],
        "IQL best": OVERALL["IQL EDP"]._replace(measure="oms"),
    },
    "td3_eas": {
        "TD3 + EDP": EDP,
        "TD3 + EAS": PaperColumn("td3bc", "deterministic", options=(("evaluation.eas", "several"),)),
        "TD3": OVERALL["TD3+BC FF"],
    },
}
# What a run of a diffusion policy must have in common with the paper, beside the options of a column: values by their
# names in a run's config. A run that has no such option is older than the option, and has the paper's value.
PAPER_VALUES: dict[str, Any] = {
    "algorithm.tau": 0.005,
    "algorithm.lr_decay": 0,
    "algorithm.lr_warmup": 0,
    "algorithm.ramp": 0,
    "algorithm.critics": 2,
    "algorithm.critic_norm": False,
    "algorithm.ensemble": "min",
    "algorithm.advantages": "raw",
    "algorithm.guidance": "value",
    "algorithm.bc_weight": 1.0,
    "policy.prediction": "noise",
    "policy.likelihood": "gaussian",
    "data.normalise": "none",
    "data.n_step": 1,
    "data.best": 1.0,
    "evaluation.eas_energy": "raw",
    "evaluation.eas_temperature": 1.0,
    "evaluation.policy_scale": 1.0,
    "evaluation.initial_noise": 1.0,
}
DOMAIN_VALUES = ("lr", "loss_weight")  # of an algorithm, which the paper gives for each domain

# (algorithm, policy): its column in the table of all algorithms
METHODS = {(column.algorithm, column.policy): name for name, column in OVERALL.items() if name != TEN_PERCENT_BC}


class PublishedScores(NamedTuple):
    """A task's scores by the paper's two measures; None where the paper has no score."""

    rat: float | None  # mean of the last ten evaluations
    oms: float | None  # the best evaluation


NOT_PUBLISHED = PublishedScores(None, None)


def published_scores(task: Task, algorithm: str, policy: str) -> PublishedScores:
    """Look up the scores of a method on a task, at the paper's own options."""
    if (algorithm, policy) not in METHODS or repeats_cql(task, algorithm, policy):
        return NOT_PUBLISHED
    average = METHODS[algorithm, policy]
    best = best_column(OVERALL[average])
    return PublishedScores(published_number(task, "overall", average), published_number(task, *best) if best else None)


def best_column(average: PaperColumn) -> tuple[str, str] | None:
    """Find the table and the column with the best evaluations of the method whose averages are in this column.

    The first one counts: "TD3 best" in the table of best and average scores repeats rows of other tasks in three
    domains, and "EDP" of the table before it has the right ones.
    """
    best = average._replace(measure="oms")
    return next(
        ((table, name) for table, columns in COLUMNS.items() for name in columns if columns[name] == best), None
    )


def repeats_cql(task: Task, algorithm: str, policy: str) -> bool:
    """Whether the number in the paper is a mistake: its column of feed-forward CRR repeats CQL's except for AntMaze."""
    return (algorithm, policy) == ("crr", GAUSSIAN) and task.domain != "antmaze"


def published_number(task: Task, table: str, column: str) -> float | None:
    content = PUBLISHED_TABLES[table]
    row = content["rows"].get(task.name)
    return row and row[content["columns"].index(column)]


def published_scores_like(entry: Entry) -> PublishedScores:
    """Look up the scores of the method that a run trained, if its options and its data are the paper's."""
    task = tasks.TASKS.get(str(entry.config.get("task")))
    if task is None:
        return NOT_PUBLISHED
    if belongs_to(entry, DQL, task.name):
        return PublishedScores(None, published_number(task, "reproduce", "DQL (JAX)"))
    column = METHODS.get((entry.algorithm, entry.policy))
    if column is None or not belongs_to(entry, OVERALL[column], task.name):
        return NOT_PUBLISHED
    return published_scores(task, entry.algorithm, entry.policy)


def belongs_to(entry: Entry, column: PaperColumn, task: str) -> bool:
    """Whether a run on this task is compared with a column of the paper."""
    if entry.damage or not learned_from_task_file(entry, task):
        return False
    if (entry.algorithm, entry.policy) != (column.algorithm, column.policy):
        return False
    for place, wanted in column.options:
        part, name = place.split(".")
        value = entry.config[part].get(name)
        if value != wanted and not (wanted == "several" and isinstance(value, int) and value > 1):
            return False
    return column.policy != DIFFUSION or has_paper_values(entry, tasks.TASKS[task].domain)


def has_paper_values(entry: Entry, domain: str) -> bool:
    """Whether a run has the paper's settings, for training and for acting."""
    of_domain = {f"algorithm.{name}": DOMAINS[domain][name] for name in DOMAIN_VALUES}
    for place, wanted in (PAPER_VALUES | of_domain).items():
        part, name = place.split(".")
        if entry.config[part].get(name, wanted) != wanted:
            return False
    return True


def learned_from_task_file(entry: Entry, task: str) -> bool:
    """Whether a run learned from the task's own file: a file of that name, which is not marked as a look-alike."""
    config, known = entry.config, tasks.TASKS.get(task)
    if known is None or config.get("task") != task or config.get("regenerated"):
        return False
    return PurePath(str(config.get("file"))).name == PurePath(known.file).name
