"""Which runs the columns of the paper's tables are compared with."""

from pathlib import PurePath
from typing import Any, NamedTuple

from edp.data import tasks
from edp.report import published
from edp.report.collect import Entry

Options = tuple[tuple[str, Any], ...]


class Ours(NamedTuple):
    """Which runs a column of the paper is compared with, and by which measure."""

    algorithm: str
    policy: str
    by: str = "rat"
    options: Options = ()  # that the run must have been trained with, by their names in its config


DIFFUSION, GAUSSIAN = "diffusion", "gaussian"
CHAIN: Options = (("policy.train_action", "chain"),)
APPROXIMATE: Options = (("policy.train_action", "approximate"),)
DPM: Options = (("policy.sampler", "dpm"),)
DDPM: Options = (("policy.sampler", "ddpm"),)
K100: Options = (("policy.diffusion_steps", 100),)
ALL: Options = (("data.best", 1.0),)
OVERALL = {
    "BC": Ours("bc", GAUSSIAN, options=ALL),
    "10%BC": Ours("bc", GAUSSIAN, options=(("data.best", 0.1),)),
    "DT": Ours("dt", "transformer"),
    "AWAC": Ours("awac", GAUSSIAN),
    "OneStep": Ours("onestep", GAUSSIAN),
    "CQL": Ours("cql", GAUSSIAN),
    "TD3+BC FF": Ours("td3bc", "deterministic", options=(("evaluation.eas", 1),)),
    "TD3+BC EDP": Ours("td3bc", DIFFUSION, options=APPROXIMATE + DPM),
    "CRR FF": Ours("crr", GAUSSIAN),
    "CRR EDP": Ours("crr", DIFFUSION, options=APPROXIMATE + DPM),
    "IQL FF": Ours("iql", GAUSSIAN),
    "IQL EDP": Ours("iql", DIFFUSION, options=APPROXIMATE + DPM),
}
EDP = OVERALL["TD3+BC EDP"]
DQL = Ours("td3bc", DIFFUSION, "oms", CHAIN + DDPM)
COLUMNS: dict[str, dict[str, Ours]] = {
    "overall": OVERALL,
    "action_approximation": {
        "DDPM": Ours("td3bc", DIFFUSION, "oms", CHAIN + DDPM + K100),
        "action approximation": Ours("td3bc", DIFFUSION, "oms", APPROXIMATE + DDPM + K100),
    },
    "reproduce": {"DQL (JAX)": DQL, "EDP": EDP._replace(by="oms")},
    "best_and_average": {
        "TD3 average": EDP,
        "TD3 best": EDP._replace(by="oms"),
        "CRR average": OVERALL["CRR EDP"],
        "CRR best": OVERALL["CRR EDP"]._replace(by="oms"),
        "IQL average": OVERALL["IQL EDP"],
        "IQL best": OVERALL["IQL EDP"]._replace(by="oms"),
    },
    "td3_eas": {
        "TD3 + EDP": EDP,
        "TD3 + EAS": Ours("td3bc", "deterministic", options=(("evaluation.eas", "several"),)),
        "TD3": OVERALL["TD3+BC FF"],
    },
}


def matches(entry: Entry, wanted: Ours, task: str) -> bool:
    if entry.damage or not on_own_file(entry, task):
        return False
    if (entry.algorithm, entry.policy) != (wanted.algorithm, wanted.policy):
        return False
    for place, value in wanted.options:
        part, name = place.split(".")
        found = entry.config[part].get(name)
        if found != value and not (value == "several" and isinstance(found, int) and found > 1):
            return False
    return True


def on_own_file(entry: Entry, task: str) -> bool:
    """Whether a run learned from the task's file: one of that name, which is not marked as a look-alike."""
    config, known = entry.config, tasks.TASKS.get(task)
    if known is None or config.get("task") != task or config.get("regenerated"):
        return False
    return PurePath(str(config.get("file"))).name == PurePath(known.file).name


def printed_scores(entry: Entry) -> published.Scores:
    """What the paper has for runs like this one, if it has any."""
    known = tasks.TASKS.get(str(entry.config.get("task")))
    if known is None:
        return published.Scores(None, None)
    if matches(entry, DQL, known.name):
        return published.Scores(None, published.entry("reproduce", known, "DQL (JAX)"))
    same = [wanted for name, wanted in OVERALL.items() if name != "10%BC" and matches(entry, wanted, known.name)]
    return published.scores(known, entry.algorithm, entry.policy) if same else published.Scores(None, None)
