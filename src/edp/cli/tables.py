"""Tables of what came out."""

import sys
from dataclasses import fields

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from edp.acting.evaluator import Evaluation
from edp.algorithms import ALGORITHMS
from edp.cli.parser import as_flags, flag
from edp.config import defaults
from edp.config.defaults import Settings
from edp.config.spec import EvalOptions, Spec
from edp.data import tasks
from edp.data.log import Dataset
from edp.data.synthesis import lookalikes
from edp.envs.make import MOST_STEPS
from edp.report import published
from edp.report.collect import Entry
from edp.report.columns import printed_scores
from edp.runs import scores as metrics
from edp.runs.directory import Run
from edp.runs.load import best_step


def task_table() -> None:
    table = Table(Column("task", no_wrap=True), Column("environment", no_wrap=True), Column("data", no_wrap=True))
    for task in tasks.TASKS.values():
        table.add_row(task.name, task.env, state(task))
    console = Console()
    console.print(table)
    places = ", ".join(str(folder) for folder in tasks.data_folders())
    console.print(f"D4RL's files are looked for in {places}", soft_wrap=True, highlight=False)
    console.print("edp data get TASK downloads one; edp data list TASK tells more about it", highlight=False)


def state(task: tasks.Task) -> str:
    """Which of a task's files is here."""
    if tasks.on_disk(task):
        return "here"
    return "look-alike" if tasks.regenerated(task) else "when first used" if task.local else "-"


def about_task(task: tasks.Task) -> None:
    """Everything that the registry knows of a task."""
    path = tasks.on_disk(task) or tasks.regenerated(task)
    rows = {
        "data": f"{path or 'not here'}{' (regenerated)' if path and path == tasks.regenerated(task) else ''}",
        "published as": tasks.SERVER + task.url if task.url else "",
        "sha256": task.sha256 or "",
        "transitions": f"about {task.transitions:,}" if task.transitions else "",
        "look-alikes": lookalikes.NEEDED.get(task.made_from, "").format(env=task.env),
        "environment": task.env,
        "score 0, 100": f"at returns of {task.min_return:g}, {task.max_return:g}",
        "episodes": f"at most {task.episode_limit} steps",
        "settings": ", ".join(f"{flag(k)} {v}" for k, v in defaults.DOMAINS[task.domain].items()),
    }
    rows |= {
        f"with {algorithm}": ", ".join(f"{flag(k)} {v}" for k, v in values.items())
        for algorithm, cls in ALGORITHMS.items()
        if (values := cls.domain_defaults.get(task.domain))
    }
    table = Table(Column(""), Column(task.name, overflow="fold"), box=None, pad_edge=False)
    for name, text in rows.items():
        if text:
            table.add_row(name, escape(text))
    console = Console()
    console.print(table, highlight=False)
    printed = {pair: published.scores(task, *pair) for pair in published.COLUMNS}
    scores = Table("the paper's scores", "last ten", "best")
    for (algorithm, policy), both in printed.items():
        if both.rat is not None:
            scores.add_row(f"{algorithm} + {policy}", *("" if score is None else f"{score:.1f}" for score in both))
    if scores.row_count:
        console.print(scores)


def score_text(scores: np.ndarray) -> str:
    """Mean over everything, and the spread over seeds (over episodes, if there is one seed)."""
    if np.isnan(scores).all():
        return "none (all episodes failed)"
    means = metrics.known_mean(scores, axis=1)
    means = means[~np.isnan(means)]
    spread = means.std(ddof=1) if len(means) > 1 else np.nanstd(scores)
    return f"{means.mean():.1f} ± {spread:.1f}"


def trouble_lines(event: Evaluation, most: int = 3) -> list[str]:
    """What became of episodes that could not be played to their end, or had none."""
    rest = [f"  and {len(event.failures) - most} more"] if len(event.failures) > most else []
    no_limit = "the environment has no limit of its own (max_episode_steps)"
    cut = [f"  cut off after {MOST_STEPS:,} steps, for {no_limit}: {event.cut} episodes"] if event.cut else []
    return [f"  failed: {failure}" for failure in event.failures[:most]] + rest + cut


def print_config(groups: dict[str, type], resolved: Settings) -> None:
    """Every option with its value and where that came from; what is not a default stands out."""
    table = Table("option", "value", "from", box=None, pad_edge=False)
    for title, cls in groups.items():
        table.add_row(f"[bold]{title}[/bold]", "", "")
        for entry in fields(cls):
            setting = resolved.values[entry.name]
            value = ",".join(map(str, setting.value)) if isinstance(setting.value, tuple) else str(setting.value)
            style = "dim" if setting.origin == "default" else ""
            table.add_row(f"  {flag(entry.name)}", escape(value), as_flags(setting.origin), style=style)
    Console(width=110 if not sys.stdout.isatty() else None).print(table, highlight=False)


def paper_text(printed: published.Scores) -> str:
    average = "" if printed.rat is None else f"{printed.rat:.1f}"
    return "; ".join(filter(None, [average, "" if printed.oms is None else f"best {printed.oms:.1f}"]))


def result_table(spec: Spec, dataset: Dataset, folder: Run) -> None:
    """What came out: scores where there is an environment, and what was found on episodes held out."""
    console = Console()
    if spec.task.env:
        score_table(spec, dataset, folder, console)
    if folder.validations():
        validation_tables(spec, folder, console)
    own = f" --env {spec.task.env}" if ":" in spec.task.env else ""  # the user's word is needed again
    again = f"; evaluate again with: edp eval {folder.folder}{own}" if spec.task.env else ""
    console.print(f"kept in {folder.folder}{again}", soft_wrap=True, highlight=False, markup=False)


def score_table(spec: Spec, dataset: Dataset, folder: Run, console: Console) -> None:
    """The last evaluation beside what the data's own behaviours score."""
    last = folder.training_evaluations()[-1]
    scores, curve = np.array(last["scores"], float), metrics.curve(folder.training_evaluations())
    table = Table("who", spec.task.measure, "from", title=folder.title)
    for behaviour in dataset.behaviours:
        score = spec.task.score(behaviour.mean_return)
        table.add_row(f"behaviour {behaviour.name}", f"{score:.1f}", f"{behaviour.episodes} episodes in the data")
    if len(dataset.returns):
        table.add_row(
            "all of the data", f"{spec.task.score(dataset.returns.mean()):.1f}", f"{len(dataset.returns):,} episodes"
        )
    config = spec.to_json()
    algorithm, policy = config["algorithm"]["name"], config["policy"]["name"]
    name = f"{algorithm} + {policy}"
    source = f"{scores.shape[0]} seed(s) × {scores.shape[1]} episodes after {last['step']:,} steps"
    table.add_row(f"[bold]{name}[/bold]", f"[bold]{score_text(scores)}[/bold]", source)
    seeds = f"{scores.shape[0]} seed{'s' * (scores.shape[0] > 1)}"
    if len(curve.steps) > 1:
        last_ten = f"{seeds}, mean of the last {min(len(curve.steps), metrics.LAST)} evaluations"
        table.add_row("  RAT", str(metrics.mean_interval(curve.rat)), last_ten)
        table.add_row(
            "  OMS", str(metrics.mean_interval(curve.oms)), f"{seeds}, best of {len(curve.steps)} evaluations"
        )
    printed = printed_scores(Entry(folder.folder, config=folder.config, algorithm=algorithm, policy=policy))
    if any(number is not None for number in printed):
        table.add_row("the paper", paper_text(printed), f"{defaults.DOMAINS[spec.task.domain]['steps']:,} steps")
    console.print(table)


def validation_tables(spec: Spec, folder: Run, console: Console) -> None:
    """The losses of training and of episodes held out, and the data's actions beside the policy's."""
    last, trained = folder.validations()[-1], folder.metrics()[-1]["metrics"]
    table = Table("loss", "in training", "held out", title=f"{folder.title}, step {last['step']:,}")
    for name, values in last["metrics"].items():
        table.add_row(name, f"{metrics.known_mean(trained.get(name, [])):.4g}", f"{metrics.known_mean(values):.4g}")
    console.print(table)
    data, policies = last["actions"]["data"], [each for each in last["actions"]["policy"] if each]
    if not policies:
        return
    table = Table("action", "data: mean ± std", "5 % to 95 %", "policy: mean ± std", "5 % to 95 %", "range")
    for i, (low, high) in enumerate(zip(spec.units.low, spec.units.high, strict=True)):
        numbers = ("mean", "std", "q05", "q95")
        policy = {name: float(np.mean([each[name][i] for each in policies])) for name in numbers}
        shown = [text for part in ({name: data[name][i] for name in numbers}, policy) for text in spread_texts(part)]
        name = spec.task.action_names[i] if i < len(spec.task.action_names) else str(i)
        table.add_row(escape(name), *shown, f"{low:g} to {high:g}")
    console.print(table)


def spread_texts(part: dict[str, float]) -> list[str]:
    return [f"{part['mean']:.4g} ± {part['std']:.3g}", f"{part['q05']:.4g} to {part['q95']:.4g}"]


def evaluation_table(spec: Spec, event: Evaluation, options: EvalOptions, folder: Run) -> None:
    state = ", still running" if folder.is_claimed else ""
    title = f"{folder.title}, step {event.step:,}{state}, {options.act_with} parameters, EAS of {options.eas}"
    table = Table("seed", spec.task.measure, "episodes", "lowest", "highest", title=title)
    for i, row in enumerate(event.scores):
        table.add_row(str(spec.training.seed + i), *evaluation_cells(row[None]))
    if len(event.scores) > 1:
        table.add_row("all", *evaluation_cells(event.scores))
    console = Console()
    console.print(table)
    for line in trouble_lines(event):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def offline_table(spec: Spec, rows: list[dict], folder: Run) -> None:
    """Values from the data alone, beside the scores of the same checkpoints, and what either would choose."""
    from scipy.stats import spearmanr

    scores = {row["step"]: row["scores"] for row in folder.training_evaluations()}
    seeds = [f"seed {spec.training.seed + i}" for i in range(spec.training.seeds)]
    table = Table("step", "value by FQE", *(seeds if len(seeds) > 1 else []), spec.task.measure, title=folder.title)
    values = {row["step"]: metrics.known_mean(row["values"]) for row in rows}
    best = best_step(values, values)
    for row in rows:
        each = ["-" if value is None else f"{value:.4g}" for value in row["values"]] if len(seeds) > 1 else []
        score = score_text(np.array(scores[row["step"]], float)) if row["step"] in scores else "-"
        style = "bold" if row["step"] == best else ""
        table.add_row(f"{row['step']:,}", f"{values[row['step']]:.4g}", *each, score, style=style)
    console = Console()
    console.print(table)
    known = [step for step in values if step in scores]
    if len(values) > 1 and best is not None:
        console.print(f"best by FQE: step {best:,} (edp eval RUN --checkpoint fqe plays it)", highlight=False)
    if len(known) > 2:
        found = [metrics.known_mean(scores[step]) for step in known]
        oms = known[int(np.nanargmax(found))]
        correlation = spearmanr([values[step] for step in known], found)[0]
        console.print(
            f"best by score (OMS): step {oms:,}. Rank correlation of FQE with the score: {correlation:.2f} "
            f"over {len(known)} checkpoints",
            highlight=False,
        )


def evaluation_cells(scores: np.ndarray) -> list[str]:
    """Score, number of episodes, lowest and highest."""
    played = scores[~np.isnan(scores)]
    ends = [f"{played.min():.1f}", f"{played.max():.1f}"] if len(played) else ["", ""]
    return [score_text(scores), str(len(played)), *ends]


def comparison_tables(methods: dict[str, np.ndarray], episodes: int) -> None:
    """IQM of each method, and for each pair the probability that one is better."""
    console, names = Console(), list(methods)
    table = Table("method", "IQM", "mean over seeds", "seeds × tasks")
    for name, scores in methods.items():
        mean = metrics.mean_interval(scores.mean(axis=1))
        table.add_row(
            name, str(metrics.bootstrap(metrics.iqm, scores)), str(mean), f"{scores.shape[0]} × {scores.shape[1]}"
        )
    console.print(table)
    if len(names) > 1:
        pairs = Table("is better than", *names)
        for first in names:
            cells = ["" if first == second else chance_text(methods[first], methods[second]) for second in names]
            pairs.add_row(first, *cells)
        console.print(pairs)
    for caution in metrics.cautions(min(len(scores) for scores in methods.values()), episodes):
        console.print(f"caution: {caution}", highlight=False)


def chance_text(first: np.ndarray, second: np.ndarray) -> str:
    found = metrics.bootstrap(metrics.improvement, first, second)
    return f"{found.value:.0%} [{found.low:.0%}, {found.high:.0%}]"
