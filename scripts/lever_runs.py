"""Tables of the runs in results/levers (one value of the recipe changed), results/likelihoods (ways of weighting the
data's actions), results/targets (how far TD targets reach), results/baselines (published settings), results/noise
(acting with and without noise) and results/later (policies that came after EDP)."""

from typing import NamedTuple

import numpy as np
from recipe_runs import NAMES, PAPER, ROOT, Learned, read_run, rows_of, table
from scipy import stats

from edp.report.statistics import mean_interval

TASKS = {"hm": "hopper-medium", "hc": "halfcheetah-medium", "pen": "pen-cloned", "kc": "kitchen-complete"}
BASE = "base"  # runs are called TASK-LEVER; those of the recipe itself TASK-base
LEVERS = {  # what the recipe has, and what the run has in its place
    "slow": ("`--tau 0.02 --n-step 3`", "0.005, 1"),
    "value": ("`--guidance spread`", "`value`, with the paper's weights"),
    "raw": ("`--normalise signal`", "`none`"),
    "lr": ("`--lr 1e-3` with warm-up and decay", "3e-4, constant"),
    "plain": ("`--critic-norm`", "`--no-critic-norm`"),
    "noise": ("`--prediction v`", "`noise`"),
    "four": ("`--critics 2`", "4"),
    "ramp": ("`--ramp 0`", "4000"),
    "heavy": ("`--loss-weight 0.5`", "1"),
    "chain": ("`--train-action approximate`", "`chain` (6 calls)"),
    "levels": ("`--diffusion-steps 1000`", "50"),
}
COLUMNS = {("td3bc", "deterministic"): "TD3+BC FF", ("iql", "gaussian"): "IQL FF", ("bc", "deterministic"): "BC"}

REBRAC = {"hopper-medium-v2": 102.0, "halfcheetah-medium-v2": 65.6}  # Tarasov et al. 2023


class Effect(NamedTuple):
    """How much more the recipe scores than the run without a lever, with a 95 % interval (Welch)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        text = f"{self.mean:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"
        return f"**{text}**" if self.low > 0 or self.high < 0 else text


def last_scores(run: Learned) -> np.ndarray:
    """The score of each seed in the last evaluation."""
    return run.curve.scores[-1]


def read_levers() -> dict[tuple[str, str], Learned]:
    found: dict[tuple[str, str], Learned] = {}
    for path in sorted((ROOT / "results" / "levers").glob("*/evaluations.jsonl")):
        task, lever = path.parent.name.split("-")
        found[task, lever] = read_run(path.parent)
    return found


def effect_of(recipe: Learned, without: Learned) -> Effect:
    first, second = last_scores(recipe), last_scores(without)
    interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    return Effect(float(first.mean() - second.mean()), float(interval.low), float(interval.high))


def levers() -> str:
    """Every lever: the scores without it, and its effect on each data set."""
    found = read_levers()
    recipe = [str(mean_interval(last_scores(run))) if (run := found.get((task, BASE))) else "" for task in TASKS]
    rows = [["the recipe", "", *recipe, ""]]
    for lever, (has, instead) in LEVERS.items():
        runs = {task: found[task, lever] for task in TASKS if (task, lever) in found and (task, BASE) in found}
        effects = {task: effect_of(found[task, BASE], run) for task, run in runs.items()}
        if not effects:
            continue
        cells = [f"{last_scores(runs[task]).mean():.1f}: {effects[task]}" if task in runs else "" for task in TASKS]
        better = sum(effect.mean > 0 for effect in effects.values())
        rows.append([has, instead, *cells, f"{better} of {len(effects)}"])
    return table(["the recipe has", "in its place", *TASKS.values(), "the recipe scores more on"], rows)


def baselines() -> str:
    """The feed-forward baselines with their published settings: RAT, and the scores that the paper's table repeats."""
    rows = []
    for path in sorted((ROOT / "results" / "baselines").glob("*/evaluations.jsonl")):
        run = read_run(path.parent)
        published = published_score(run)
        score = mean_interval(run.curve.rat)
        change = f"{score.value / published - 1:+.0%}"
        preset = next(word for word in run.config["command"] if word.endswith("-original"))
        rows.append(
            [
                run.label,
                f"{NAMES[run.algorithm]} (`--preset {preset}`)",
                str(score),
                ", ".join(f"{seed:.1f}" for seed in run.curve.rat),
                f"{run.curve.steps[-1]:,}",
                f"{published:.1f} (1,000,000)",
                change,
            ]
        )
    return table(["task", "method", "score", "seeds", "steps", "published (steps)", "difference"], rows)


def published_score(run: Learned) -> float:
    """The score that the method's authors published, as EDP's paper repeats it for older methods."""
    if run.algorithm == "rebrac":
        return REBRAC[run.task]
    column = COLUMNS[run.algorithm, run.config["policy"]["name"]]
    return PAPER["rows"][run.task][PAPER["columns"].index(column)]


def initial_noise() -> str:
    """Episodes of one checkpoint from the same start states, with the usual noise of sampling and without it."""
    rows = []
    for path in sorted((ROOT / "results" / "noise").glob("*/evaluations.jsonl")):
        run, cells = read_run(path.parent), {}
        found = [row for row in rows_of(path) if row["kind"] == "eval" and is_plain(row["options"])]
        for noise in (1.0, 0.0):
            row = next(row for row in found if row["options"]["initial_noise"] == noise)
            cells[noise] = np.array(row["scores"], float)
        step, (seeds, episodes) = found[0]["step"], cells[0.0].shape
        shown = [f"{mean_interval(cells[noise].mean(axis=1))}" for noise in (1.0, 0.0)]
        rows.append([run.label, NAMES[run.algorithm], f"{step:,}", f"{seeds} × {episodes}", *shown])
    return table(["task", "method", "step", "seeds × episodes", "`--initial-noise 1`", "0"], rows)


def is_plain(options: dict[str, object]) -> bool:
    """Whether nothing but the noise was changed."""
    return [options[name] for name in ("policy_scale", "eas", "act_calls", "act_with")] == [1.0, 1, 0, "average"]


LIKELIHOODS = {  # IQL with other likelihoods, weights and temperatures, by the last part of a run's name
    "base": ("weighted diffusion loss", "1", "1"),
    "w03": ("weighted diffusion loss", "1", "0.3"),
    "w3": ("weighted diffusion loss", "1", "3"),
    "g1": ("Gaussian surrogate", "1", "1"),
    "g001": ("Gaussian surrogate", "0.01", "1"),
    "e1": ("ELBO", "1", "1"),
}


def likelihoods() -> str:
    """The last evaluation of each run in results/likelihoods, which are called TASK-iql-SETTING."""
    rows = []
    tasks = {"hm": TASKS["hm"], "kc": TASKS["kc"]}
    for setting, (name, weight, temperature) in LIKELIHOODS.items():
        cells = []
        for task in tasks:
            folder = ROOT / "results" / "likelihoods" / f"{task}-iql-{setting}"
            there = (folder / "evaluations.jsonl").exists()
            cells.append(mean_and_seeds(last_scores(read_run(folder))) if there else "")
        if any(cells):
            rows.append([name, weight, temperature, *cells])
    return table(["likelihood", "`--loss-weight`", "`--temperature`", *tasks.values()], rows)


def mean_and_seeds(seeds: np.ndarray) -> str:
    return f"{np.mean(seeds):.1f} ({', '.join(f'{seed:.1f}' for seed in seeds)})"


TARGETS = {"n3": ("0.02", "3"), "n5": ("0.02", "5"), "n10": ("0.02", "10"), "tau05": ("0.05", "3")}  # tau, n
TARGET_TASKS = TASKS | {"ant": "antmaze-umaze", "hme": "hopper-medium-expert"}
TARGET_TASKS |= {"wm": "walker2d-medium", "wmr": "walker2d-medium-replay"}


def targets() -> str:
    """The mean of the last two evaluations of TD3+BC with other targets: results/targets/TASK-SETTING.

    Those with three steps are the runs of ``later``, where it has the task.
    """
    rows = []
    for setting, names in TARGETS.items():
        cells = []
        for task in TARGET_TASKS:
            in_later = setting == "n3" and task in LATER_TASKS
            folder = ROOT / "results" / ("later" if in_later else "targets")
            folder /= f"{task}-diffusion" if in_later else f"{task}-{setting}"
            there = (folder / "evaluations.jsonl").exists()
            cells.append(mean_and_seeds(read_run(folder).curve.scores[-LAST:].mean(axis=0)) if there else "")
        rows.append([*names, *cells])
    return table(["`--tau`", "`--n-step`", *TARGET_TASKS.values()], rows)


LATER_TASKS = TASKS | {"ant": "antmaze-umaze"}
LATER = {  # by the last part of a run's name
    "diffusion": "TD3+BC, EDP",
    "flow": "TD3+BC, flow",
    "meanflow": "TD3+BC, meanflow",
    "distilled": "TD3+BC, distilled (FQL)",
    "iql": "IQL, EDP",
    "rebrac": "ReBRAC, diffusion",
    "dac": "DAC, four Q-networks",
    "idql": "IDQL",
    "own-idql": "IDQL, its own settings (`--preset idql`)",
    "own-dac": "DAC, its own settings (`--preset dac`)",
    "own-fql": "FQL, its own settings (`--preset fql`)",
}
EDP_COLUMNS = {"TD3+BC": "TD3+BC EDP", "IQL": "IQL EDP"}
LAST = 2  # evaluations of 20 episodes
PAPERS_TASKS = ("hopper-medium-v2", "halfcheetah-medium-v2", "pen-cloned-v0", "kitchen-complete-v0", "antmaze-umaze-v0")
# Tarasov et al. 2023 (locomotion), and CORL's table of last scores (pen-cloned-v1 and antmaze-umaze-v2).
PUBLISHED_REBRAC = 102.0, 65.6, 102.8, None, 97.8


def later() -> str:
    """The mean of the last two evaluations of each run in results/later, which are called TASK-METHOD."""
    rows = []
    for method, name in LATER.items():
        if not any((ROOT / "results" / "later" / f"{task}-{method}").exists() for task in LATER_TASKS):
            continue
        cells = []
        for task in LATER_TASKS:
            folder = ROOT / "results" / "later" / f"{task}-{method}"
            there = (folder / "evaluations.jsonl").exists()
            cells.append(mean_and_seeds(read_run(folder).curve.scores[-LAST:].mean(axis=0)) if there else "")
        rows.append([name, *cells])
    published = {f"published: EDP, {name}": papers_scores(column) for name, column in EDP_COLUMNS.items()}
    for name, scores in (published | {"published: ReBRAC": PUBLISHED_REBRAC}).items():
        rows.append([name, *("" if score is None else f"{score:.1f}" for score in scores)])
    return table(["method", *LATER_TASKS.values()], rows)


def papers_scores(column: str) -> list[float]:
    """EDP's published scores on the tasks of the table, after one or two million steps on D4RL's own files."""
    return [PAPER["rows"][task][PAPER["columns"].index(column)] for task in PAPERS_TASKS]
