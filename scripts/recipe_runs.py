"""Tables and the picture of the runs in results/recipe: scores of the recipe beside the paper's.

python scripts/recipe_runs.py      # draws docs/recipe.png; scripts/fill_docs.py writes the tables
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edp.config.choice import choose
from edp.config.defaults import FEW_ROWS_ORIGIN, SMOOTH_ORIGIN, SPARSE_ORIGIN
from edp.config.presets import FEW_ROWS
from edp.data.tasks import get_task
from edp.drawing import COLOURS, drawing_style, save_figure
from edp.report.statistics import mean_interval
from edp.runs.scores import LAST, Curve, curve_from_evaluations

ROOT = Path(__file__).parent.parent
PAPER = json.loads((ROOT / "src" / "edp" / "report" / "paper.json").read_text(encoding="utf-8"))["overall"]
COLUMNS = {"td3bc": "TD3+BC EDP", "crr": "CRR EDP", "iql": "IQL EDP"}  # the paper's, by algorithm
NAMES = {"td3bc": "TD3+BC", "crr": "CRR", "iql": "IQL", "bc": "cloning", "rebrac": "ReBRAC"}
PAPER_STEPS = {"hopper": 2_000_000, "halfcheetah": 2_000_000, "walker2d": 2_000_000}  # 1,000,000 elsewhere


PARTS = ("algorithm", "policy", "data", "training", "evaluation")  # of a run's config
PLACES = ("action_low", "action_high")  # which come from the data


class Learned(NamedTuple):
    """One run of the recipe."""

    name: str
    config: dict[str, Any]
    curve: Curve

    @property
    def algorithm(self) -> str:
        return self.config["algorithm"]["name"]

    @property
    def method(self) -> str:
        return f"{NAMES[self.algorithm]}, diffusion"

    @property
    def task(self) -> str:
        return self.config["task"]

    @property
    def label(self) -> str:
        """The task, marked if its data is a look-alike."""
        return f"{self.task} (look-alike)" if self.config["regenerated"] else f"{self.task} (D4RL's file)"

    @property
    def paper(self) -> float | None:
        """The paper's RAT of this algorithm with the diffusion policy. Its pen tasks are v0."""
        rows, column = PAPER["rows"], COLUMNS.get(self.algorithm)
        row = rows.get(self.task) or rows.get(self.task.replace("pen-cloned-v1", "pen-cloned-v0"))
        return row[PAPER["columns"].index(column)] if row and column else None

    @property
    def paper_steps(self) -> int:
        return PAPER_STEPS.get(self.task.split("-")[0], 1_000_000)

    @property
    def paper_budget(self) -> str:
        """The paper's steps, and its time on a GPU, which it gives for locomotion."""
        hours = ", 5 hours" if self.paper_steps == 2_000_000 else ""
        return f"{self.paper_steps:,} steps{hours}"

    @property
    def command(self) -> str:
        """The command of the run, with options whose default has changed since then."""
        words = list(self.config["command"])
        where = words.index("--out") if "--out" in words else len(words)
        words = words[:where] + words[where + 2 :]
        given = {word[2:].replace("-", "_") for word in words if word.startswith("--")}
        algorithm, policy = self.config["algorithm"]["name"], self.config["policy"]["name"]
        options = {"steps": self.config["training"]["steps"]}
        settings = choose(algorithm, policy, options=options).resolve(get_task(self.task))
        origins = set(self.config["origins"].values())
        narrow, sparse = not origins.isdisjoint((FEW_ROWS_ORIGIN, SMOOTH_ORIGIN)), SPARSE_ORIGIN in origins
        settings = settings.for_data(0 if narrow else FEW_ROWS, noise_share(self.task), 0.0 if sparse else 1.0)
        now = settings.values
        then = {entry.name: entry.default for cls in settings.classes for entry in fields(cls)}  # of options since then
        then |= {name: value for part in PARTS for name, value in self.config[part].items() if name in now}
        selection = [name for name in now if name.startswith("eas_")]
        unused = PLACES if self.config["evaluation"]["eas"] > 1 else (*PLACES, *selection)
        changed = {
            name: value
            for name, value in then.items()
            if name not in given and name not in unused and json.dumps(value) != json.dumps(now[name].value)
        }
        flags = [word for name, value in changed.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        return " ".join(words + flags)

    def reached(self, score: float) -> int | None:
        """The index of the first evaluation at this score from which on the mean of all evaluations is there, too."""
        means = self.curve.means
        found = [i for i in range(len(means)) if means[i] >= score and means[i:].mean() >= score]
        return found[0] if found and found[0] < len(means) - 1 else None


def noise_share(task: str) -> float:
    """How much of the actions is noise, by `benchmarks/noise.py`."""
    rows = json.loads((ROOT / "results" / "noise_share.json").read_text(encoding="utf-8"))
    return next(row["noise_share"] for row in rows if row["task"] == task)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_run(folder: Path) -> Learned:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    rows = [row for row in rows_of(folder / "evaluations.jsonl") if row["kind"] == "training"]
    curve = curve_from_evaluations(rows)
    assert curve is not None, folder
    return Learned(folder.name, config, curve)


def read_runs() -> list[Learned]:
    order = ["hopper", "halfcheetah", "antmaze", "pen", "kitchen"]
    runs = [read_run(path.parent) for path in (ROOT / "results" / "recipe").glob("*/evaluations.jsonl")]
    return sorted(
        runs, key=lambda run: (order.index(run.task.split("-")[0]), run.task, list(NAMES).index(run.algorithm))
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def recipe_scores() -> str:
    """Every run: its RAT with the interval over seeds, its seeds, and the paper's RAT."""
    rows = []
    for run in read_runs():
        seeds = run.curve.rat
        paper = "" if run.paper is None else f"{run.paper:.1f}"
        rows.append(
            [
                run.label,
                run.method,
                f"**{mean_interval(seeds)}**",
                ", ".join(f"{seed:.1f}" for seed in seeds),
                f"{run.curve.means[-1]:.1f}",
                f"{run.curve.steps[-1]:,}",
                f"{run.curve.steps[-1] / idle_speed(run.name) / 60:.0f}",
                paper and f"{paper} ({run.paper_steps:,})",
            ]
        )
    head = ["task", "method", "score", "seeds", "last evaluation", "steps", "minutes", "the paper (steps)"]
    return table(head, rows)


def idle_speed(name: str) -> float:
    """Steps per second of one seed of a run on the idle machine (see benchmarks/learning_speed.py)."""
    measured = json.loads((ROOT / "results" / "learning_speed.json").read_text(encoding="utf-8"))
    return float(np.median(measured["steps_per_second"][name]))


def recipe_times() -> str:
    """How soon the mean over seeds is at the paper's score, and stays there on average."""
    rows = []
    for run in read_runs():
        if run.paper is None or run.task.startswith("pen"):  # its look-alike is easier than D4RL's file
            continue
        index = run.reached(run.paper)
        reached = f"not reached in {run.curve.steps[-1]:,} ({run.curve.rat.mean():.1f} at the end)", ""
        if index is not None:
            steps = run.curve.steps[index]
            reached = f"{steps:,}", f"**{steps / idle_speed(run.name) / 60:.1f}**"
        rows.append([run.label, run.method, f"{run.paper:.1f}", *reached, run.paper_budget])
    head = ["task", "method", "the paper's score", "reached after steps", "minutes on two cores", "the paper"]
    return table(head, rows)


def recipe_commands() -> str:
    why = "<!-- not run: needs D4RL's file or look-alikes of a million rows, and trains for hours -->"
    return "\n".join([why, "```sh", *(f"{run.command}    # results/recipe/{run.name}" for run in read_runs()), "```"])


def draw(path: Path) -> None:
    """Learning curves: means and ranges over seeds. Dotted lines are the paper's scores."""
    from matplotlib.figure import Figure

    runs = read_runs()
    tasks = list(dict.fromkeys(run.label for run in runs))
    with drawing_style():
        figure = Figure(figsize=(3.2 * len(tasks), 2.8), layout="constrained")
        axes = figure.subplots(1, len(tasks), squeeze=False)[0]
        for axis, task in zip(axes, tasks, strict=True):
            for run in (run for run in runs if run.label == task):
                colour = COLOURS[list(NAMES).index(run.algorithm)]
                thousands, scores = run.curve.steps / 1000, run.curve.scores
                axis.plot(thousands, run.curve.means, color=colour, label=NAMES[run.algorithm])
                axis.fill_between(
                    thousands, scores.min(axis=1), scores.max(axis=1), color=colour, alpha=0.2, linewidth=0
                )
                if run.paper is not None:
                    axis.axhline(run.paper, color=colour, linestyle=":", linewidth=1)
            axis.set(title=task.replace(" (", "\n("), xlabel="thousand steps", ylim=(0, None))
            axis.legend(frameon=False, fontsize=8, loc="lower right")
        axes[0].set_ylabel("normalised score")
        save_figure(figure, path)


if __name__ == "__main__":
    assert LAST == 10, "the tables say that RAT is the mean of ten evaluations"
    draw(ROOT / "docs" / "recipe.png")
