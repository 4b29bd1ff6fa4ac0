"""What a training run looks like in a terminal, and in a log."""

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
from edp.cli.tables import score_text, trouble_lines
from edp.config.spec import Spec
from edp.data.dataset import Dataset
from edp.runs import scores as metrics
from edp.training.loop import Compiled, Epoch, SeedFailed

Event = Compiled | Epoch | Evaluation | Validation | SeedFailed


@contextmanager
def display(
    spec: Spec, dataset: Dataset, place: str, folder: Path, step: int, quiet: bool
) -> Iterator[Callable[[Event], None]]:
    if quiet:
        yield lambda event: None
        return
    console = Console()
    seeds = f"{spec.training.seeds} seed{'s' * (spec.training.seeds > 1)}"
    algorithm, policy = (spec.to_json()[part]["name"] for part in ("algorithm", "policy"))
    console.print(
        f"data   {place} ({len(dataset.obs):,} transitions, {len(dataset.returns):,} episodes{mark(dataset)})",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    console.print(
        f"train  {algorithm} with {policy} policy, {spec.training.steps:,} steps, {seeds}",
        highlight=False,
    )
    resumed = f", resumed after {step:,} steps" if step else ""
    console.print(f"run    {folder}{resumed}", soft_wrap=True, highlight=False, markup=False)
    if console.is_terminal:
        with live(spec, step, console) as show:
            yield show
    else:
        yield plain(spec)


def mark(dataset: Dataset) -> str:
    return f"; regenerated: a look-alike of {dataset.regenerated}, not D4RL's file" if dataset.regenerated else ""


def summary(event: Epoch | Validation) -> str:
    """The losses, as means over seeds."""
    means = {name: metrics.known_mean(values) for name, values in event.metrics.items()}
    return "  ".join(f"{name} {value:.4g}" for name, value in means.items())


@contextmanager
def live(spec: Spec, step: int, console: Console) -> Iterator[Callable[[Event], None]]:
    """A bar with the time left and the speed; below it the evaluations so far, the losses, and what went wrong."""
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
            losses.plain = summary(event)
        elif isinstance(event, Evaluation):
            means.append(float(metrics.known_mean(event.scores)))
            best = f"  best {np.nanmax(means):.1f}" if len(means) > 1 and not np.isnan(means).all() else ""
            curve = f"{metrics.sparkline(means, 30)}{best}{seed_scores(event)}"
            scores.plain = f"{short_measure(spec)} {score_text(event.scores)}  {curve}"
            console.print(evaluation_line(event, spec), highlight=False, markup=False)
        elif isinstance(event, Validation):
            console.print(validation_line(event), highlight=False, markup=False, soft_wrap=True)
        elif isinstance(event, SeedFailed):
            warnings.plain = f"seed {event.seed} failed: {event.why}"
            console.print(warnings.plain, highlight=False, markup=False)

    with Live(Group(bar, scores, losses, warnings), console=console, refresh_per_second=4):
        yield show


def plain(spec: Spec) -> Callable[[Event], None]:
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
            print(f"seed {event.seed} failed: {event.why}", flush=True)
        elif event.step == spec.training.steps or event.step * 10 // spec.training.steps > shown:
            shown = event.step * 10 // spec.training.steps
            print(f"step {event.step:>9,}  {event.steps_per_second:.0f} steps/s  {summary(event)}", flush=True)

    return show


def evaluation_line(event: Evaluation, spec: Spec, what: str = "") -> str:
    score = f"{short_measure(spec)} {score_text(event.scores)}{seed_scores(event)}"
    text = f"{what or f'step {event.step:>9,}'}  {score}  in {event.seconds:.1f} s"
    return "\n".join([text, *trouble_lines(event)])


def short_measure(spec: Spec) -> str:
    return spec.task.measure.removeprefix("normalised ")


def seed_scores(event: Evaluation) -> str:
    """Each seed's mean, where there are several."""
    means = metrics.known_mean(event.scores, axis=1)
    return f"  (seeds: {'  '.join(f'{mean:.1f}' for mean in means)})" if len(means) > 1 else ""


def validation_line(event: Validation) -> str:
    """Losses on episodes held out, and how far the policy's actions are from the data's."""
    far = metrics.known_mean(event.distance)
    distance = "" if np.isnan(far) else f"  action distance {far:.2f} std"
    return f"step {event.step:>9,}  held out: {summary(event)}{distance}  in {event.seconds:.1f} s"
