"""The progress of training in a terminal, and as plain lines in a log file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from edp.acting.evaluator import Evaluation
from edp.acting.validation import Validation
from edp.cli.terminal import score_text, sparkline
from edp.config.spec import Spec
from edp.data.dataset import Dataset
from edp.envs.make import MOST_STEPS
from edp.errors import counted, printable
from edp.runs.scores import nan_mean
from edp.training.loop import Compiled, Epoch, SeedFailed

Event = Compiled | Epoch | Evaluation | Validation | SeedFailed


@contextmanager
def display(
    spec: Spec, dataset: Dataset, place: str, folder: Path, step: int, quiet: bool
) -> Iterator[Callable[[Event], None]]:
    """Print the data, the method and the run directory, and yield the function that shows each event of training."""
    if quiet:
        yield lambda event: None
        return
    console = Console()
    algorithm, policy = (spec.to_json()[part]["name"] for part in ("algorithm", "policy"))
    size = f"{counted(len(dataset.obs), 'transition')}, {counted(len(dataset.returns), 'episode')}"
    console.print(
        printable(f"data   {place} ({size}{look_alike_mark(dataset)})"),
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    console.print(
        f"train  {algorithm} with {policy} policy, {counted(spec.training.steps, 'step')}, "
        f"{counted(spec.training.seeds, 'seed')}",
        highlight=False,
    )
    resumed = f", resumed after {counted(step, 'step')}" if step else ""
    console.print(printable(f"run    {folder}{resumed}"), soft_wrap=True, highlight=False, markup=False)
    if console.is_terminal:
        with live_display(spec, step, console) as show:
            yield show
    else:
        yield plain_display(spec)


def look_alike_mark(dataset: Dataset) -> str:
    return f"; regenerated: a look-alike of {dataset.regenerated}, not D4RL's file" if dataset.regenerated else ""


def loss_text(event: Epoch | Validation) -> str:
    """Write the losses, as means over seeds."""
    means = {name: nan_mean(values) for name, values in event.metrics.items()}
    return "  ".join(f"{name} {value:.4g}" for name, value in means.items())


@contextmanager
def live_display(spec: Spec, step: int, console: Console) -> Iterator[Callable[[Event], None]]:
    """Show a bar with time left and speed; below it evaluations, losses, and the last seed that failed."""
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[speed]}"),
        console=console,
    )
    task = bar.add_task("train", total=spec.training.steps, completed=step, speed="compiling")
    scores, losses, warnings = (
        Text("", style=style, no_wrap=True, overflow="ellipsis") for style in ("bold", "dim", "yellow")
    )
    means: list[float] = []

    def show(event: Event) -> None:
        if isinstance(event, Epoch):
            bar.update(task, completed=event.step, speed=f"{event.steps_per_second:.0f} steps/s")
            losses.plain = loss_text(event)
        elif isinstance(event, Evaluation):
            means.append(float(nan_mean(event.scores)))
            best = f"  best {np.nanmax(means):.1f}" if len(means) > 1 and not np.isnan(means).all() else ""
            curve = f"{sparkline(means, 30)}{best}{seed_scores(event)}"
            scores.plain = f"{short_measure(spec)} {score_text(event.scores)}  {curve}"
            console.print(evaluation_line(event, spec), highlight=False, markup=False)
        elif isinstance(event, Validation):
            console.print(validation_line(event), highlight=False, markup=False, soft_wrap=True)
        elif isinstance(event, SeedFailed):
            warnings.plain = printable(f"seed {event.seed} failed: {event.why}")
            console.print(warnings.plain, highlight=False, markup=False)

    with Live(Group(bar, scores, losses, warnings), console=console, refresh_per_second=4):
        yield show


def plain_display(spec: Spec) -> Callable[[Event], None]:
    """Print a line for each event, and for every tenth of the training steps."""
    shown = 0

    def show(event: Event) -> None:
        nonlocal shown
        if isinstance(event, Compiled):
            print(f"compiled in {event.seconds:.1f} s", flush=True)
        elif isinstance(event, Evaluation):
            print(evaluation_line(event, spec), flush=True)
        elif isinstance(event, Validation):
            print(validation_line(event), flush=True)
        elif isinstance(event, SeedFailed):
            print(printable(f"seed {event.seed} failed: {event.why}"), flush=True)
        elif event.step == spec.training.steps or event.step * 10 // spec.training.steps > shown:
            shown = event.step * 10 // spec.training.steps
            print(f"step {event.step:>9,}  {event.steps_per_second:.0f} steps/s  {loss_text(event)}", flush=True)

    return show


def evaluation_line(event: Evaluation, spec: Spec, what: str = "") -> str:
    """Write the score of an evaluation, and the reasons of failed episodes. ``what`` replaces the step."""
    score = f"{short_measure(spec)} {score_text(event.scores)}{seed_scores(event)}"
    text = f"{what or f'step {event.step:>9,}'}  {score}  in {event.seconds:.1f} s"
    return "\n".join([text, *failure_lines(event)])


def failure_lines(event: Evaluation, most: int = 3) -> list[str]:
    """Write a line for each of the first failures, and one for episodes that were cut off without a time limit."""
    rest = [f"  and {len(event.failures) - most} more"] if len(event.failures) > most else []
    no_limit = "the environment has no time limit (max_episode_steps)"
    cut = f"  cut off after {MOST_STEPS:,} steps, because {no_limit}: {counted(event.cut, 'episode')}"
    return [printable(f"  failed: {failure}") for failure in event.failures[:most]] + rest + [cut] * bool(event.cut)


def short_measure(spec: Spec) -> str:
    return spec.task.measure.removeprefix("normalised ")


def seed_scores(event: Evaluation) -> str:
    """Write each seed's mean, if there are several seeds."""
    means = nan_mean(event.scores, axis=1)
    return f"  (seeds: {'  '.join(f'{mean:.1f}' for mean in means)})" if len(means) > 1 else ""


def validation_line(event: Validation) -> str:
    """Write the losses on held-out episodes, and the distance between the policy's actions and the data's."""
    mean = nan_mean(event.distance)
    distance = "" if np.isnan(mean) else f"  action distance {mean:.2f} std"
    return f"step {event.step:>9,}  held out: {loss_text(event)}{distance}  in {event.seconds:.1f} s"
