"""The results that train and eval print: options, scores, losses and values."""

import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from edp.acting.evaluator import Evaluation
from edp.cli.display import failure_lines
from edp.cli.parser import as_flags, flag
from edp.cli.terminal import score_text, shown
from edp.config import defaults
from edp.config.defaults import DATA_ORIGINS, RECIPE_ORIGIN, USER, Settings
from edp.config.presets import FEW_ROWS
from edp.config.spec import EvalOptions, Spec
from edp.data.dataset import Dataset
from edp.errors import counted, printable
from edp.report.collect import summarise
from edp.report.published import PublishedScores, published_scores_like
from edp.report.statistics import mean_interval
from edp.runs.directory import Run
from edp.runs.scores import LAST, nan_mean

OTHER_DATA = {  # kinds of data for which the recipe has other values: rows, noise of actions, changes of the reward
    f"for data with fewer than {FEW_ROWS:,} rows, or smooth actions": (0, 0.0, 1.0),
    "for data with sparse rewards": (FEW_ROWS, 1.0, 0.0),
}

if TYPE_CHECKING:
    from edp.training.prepare import Source


def print_config(groups: dict[str, type], resolved: Settings, source: "Source") -> None:
    """Print every option with its value and where that came from. Defaults are dimmed."""
    table = Table("option", "value", "from", box=None, pad_edge=False)
    for title, cls in groups.items():
        table.add_row(f"[bold]{title}[/bold]", "", "")
        for entry in fields(cls):
            setting = resolved.values[entry.name]
            style = "dim" if setting.origin == "default" else ""
            table.add_row(f"  {flag(entry.name)}", *setting_texts(*setting), style=style)
    if source.columns:
        table.add_row("[bold]columns of the table[/bold]", "", "")
        for name, origin in source.column_origins.items():
            table.add_row(f"  {flag(name)}", *setting_texts(source.columns[name], origin))
    for title, facts in OTHER_DATA.items():
        other = {name: item for name, item in resolved.for_data(*facts).values.items() if item.origin in DATA_ORIGINS}
        if other:
            table.add_row(f"[bold]{title}[/bold]", "", "")
        for name, item in other.items():
            table.add_row(f"  {flag(name)}", str(item.value), RECIPE_ORIGIN)
    Console(width=110 if not sys.stdout.isatty() else None).print(table, highlight=False)


def setting_texts(value: Any, origin: str) -> tuple[str, str]:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return shown(text), "command line" if origin == USER else shown(as_flags(origin))


def print_result(spec: Spec, dataset: Dataset, folder: Run) -> None:
    """Print the result of training: scores where there is an environment, and losses on held-out episodes."""
    console = Console()
    if spec.task.env:
        print_scores(spec, dataset, folder, console)
    if folder.validations():
        print_validation(spec, folder, console)
    env = f" --env {spec.task.env}" if ":" in spec.task.env else ""  # the user has to name this code again
    again = f"; evaluate again with: edp eval {folder.folder}{env}" if spec.task.env else ""
    console.print(printable(f"kept in {folder.folder}{again}"), soft_wrap=True, highlight=False, markup=False)


def print_scores(spec: Spec, dataset: Dataset, folder: Run, console: Console) -> None:
    """Print the last evaluation beside the scores of the behaviours in the data."""
    entry, last = summarise(folder), folder.training_evaluations()[-1]
    scores, curve = np.array(last["scores"], float), entry.curve
    table = Table("who", spec.task.measure, "from", title=shown(folder.title))
    for behaviour in dataset.behaviours:
        score = spec.task.score(behaviour.mean_return)
        table.add_row(
            f"behaviour {shown(behaviour.name)}",
            f"{score:.1f}",
            f"{counted(behaviour.episodes, 'episode')} in the data",
        )
    if len(dataset.returns):
        mean = spec.task.score(dataset.returns.mean())
        table.add_row("all of the data", f"{mean:.1f}", counted(len(dataset.returns), "episode"))
    seeds, episodes = counted(scores.shape[0], "seed"), counted(scores.shape[1], "episode")
    source = f"{seeds} × {episodes} after {counted(last['step'], 'step')}"
    table.add_row(f"[bold]{entry.method}[/bold]", f"[bold]{score_text(scores)}[/bold]", source)
    if curve is not None and len(curve.steps) > 1:
        last_ten = f"{seeds}, mean of the last {min(len(curve.steps), LAST)} evaluations"
        table.add_row("  RAT", str(mean_interval(curve.rat)), last_ten)
        table.add_row("  OMS", str(mean_interval(curve.oms)), f"{seeds}, best of {len(curve.steps)} evaluations")
    published = published_scores_like(entry)
    if any(number is not None for number in published):
        table.add_row("the paper", published_text(published), f"{defaults.DOMAINS[spec.task.domain]['steps']:,} steps")
    console.print(table)


def published_text(published: PublishedScores) -> str:
    average = "" if published.rat is None else f"{published.rat:.1f}"
    return "; ".join(filter(None, [average, "" if published.oms is None else f"best {published.oms:.1f}"]))


def print_validation(spec: Spec, folder: Run, console: Console) -> None:
    """Print the losses in training and on held-out episodes, and the data's actions beside the policy's."""
    last, trained = folder.validations()[-1], (folder.metrics() or [{"metrics": {}}])[-1]["metrics"]
    table = Table("loss", "in training", "held out", title=f"{shown(folder.title)}, step {last['step']:,}")
    for name, values in last["metrics"].items():
        table.add_row(name, f"{nan_mean(trained.get(name, [])):.4g}", f"{nan_mean(values):.4g}")
    console.print(table)
    data, policies = last["actions"]["data"], [each for each in last["actions"]["policy"] if each]
    if policies:
        print_actions(spec, data, policies, console)
    if last.get("faults"):
        console.print("[bold]Do not use this policy:[/bold]")
        for text in last["faults"]:
            console.print(printable(f"  {text}"), soft_wrap=True, highlight=False, markup=False)


def print_actions(spec: Spec, data: dict, policies: list[dict], console: Console) -> None:
    """Print the data's actions beside the policy's."""
    table = Table("action", "data: mean ± std", "5 % to 95 %", "policy: mean ± std", "5 % to 95 %", "range")
    for i, (low, high) in enumerate(zip(spec.units.low, spec.units.high, strict=True)):
        numbers = ("mean", "std", "q05", "q95")
        policy = {name: float(np.mean([each[name][i] for each in policies])) for name in numbers}
        cells = [text for part in ({name: data[name][i] for name in numbers}, policy) for text in spread_texts(part)]
        name = spec.task.action_names[i] if i < len(spec.task.action_names) else str(i)
        table.add_row(shown(name), *cells, f"{low:g} to {high:g}")
    console.print(table)


def spread_texts(part: dict[str, float]) -> list[str]:
    return [f"{part['mean']:.4g} ± {part['std']:.3g}", f"{part['q05']:.4g} to {part['q95']:.4g}"]


def print_evaluation(spec: Spec, event: Evaluation, options: EvalOptions, folder: Run) -> None:
    """Print the scores of each seed and of all."""
    state = ", still running" if folder.is_claimed else ""
    selection = f"EAS of {options.eas}"
    if options.at(event.step) != options:
        selection = f"no EAS before step {options.eas_after:,}"
    title = f"{shown(folder.title)}, step {event.step:,}{state}, {options.act_with} parameters, {selection}"
    table = Table("seed", spec.task.measure, "episodes", "lowest", "highest", title=title)
    for i, row in enumerate(event.scores):
        table.add_row(str(spec.training.seed + i), *evaluation_cells(row[None]))
    if len(event.scores) > 1:
        table.add_row("all", *evaluation_cells(event.scores))
    console = Console()
    console.print(table)
    for line in failure_lines(event):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def evaluation_cells(scores: np.ndarray) -> list[str]:
    """Return score, number of episodes, lowest and highest."""
    played = scores[~np.isnan(scores)]
    ends = [f"{played.min():.1f}", f"{played.max():.1f}"] if len(played) else ["", ""]
    return [score_text(scores), str(len(played)), *ends]
