"""The progress of training in Python: a bar in a terminal or in a notebook, and nothing elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edp.acting.evaluator import Evaluation
from edp.acting.validation import Validation
from edp.config.spec import Spec
from edp.runs.scores import nan_mean
from edp.training.loop import Epoch, Event

LINES = 10  # of a notebook that cannot show a bar


@contextmanager
def progress_bar(spec: Spec) -> Iterator[Callable[[Event], None]]:
    """Yield a function that shows each event. In a notebook without ipywidgets, it prints some lines."""
    console = Console(stderr=True)
    if console.is_terminal or (console.is_jupyter and find_spec("ipywidgets")):
        speed, result = TextColumn("{task.fields[speed]}"), TextColumn("{task.fields[result]}")
        with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), speed, result, console=console) as bar:
            task = bar.add_task("train", total=spec.training.steps, speed="compiling", result="")

            def show(event: Event) -> None:
                if isinstance(event, Epoch):
                    bar.update(task, completed=event.step, speed=f"{event.steps_per_second:.0f} steps/s")
                elif text := result_text(event, spec):
                    bar.update(task, result=text)

            yield show
    else:
        yield print_lines(spec) if console.is_jupyter else lambda event: None


def print_lines(spec: Spec) -> Callable[[Event], None]:
    """Return a function that prints a line for every tenth of the steps, with the last result."""
    steps, shown, result = spec.training.steps, 0, ""

    def show(event: Event) -> None:
        nonlocal shown, result
        if isinstance(event, Epoch) and event.step * LINES // steps > shown:
            shown = event.step * LINES // steps
            print(f"step {event.step:,} of {steps:,}  {event.steps_per_second:.0f} steps/s  {result}".rstrip())
        result = result_text(event, spec) or result

    return show


def result_text(event: Event, spec: Spec) -> str:
    """Write the score of an evaluation, or the first loss on held-out episodes; nothing for other events."""
    if isinstance(event, Evaluation):
        return f"{spec.task.measure} {nan_mean(event.scores):.1f}"
    if isinstance(event, Validation) and event.metrics:
        name, values = next(iter(event.metrics.items()))
        return f"held out: {name} {nan_mean(values):.4g}"
    return ""
