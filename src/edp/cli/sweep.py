"""edp sweep FILE.toml, edp sweep --resume DIR"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp.cli.parser import Parser
from edp.cli.signals import Signals
from edp.errors import UserError, counted

if TYPE_CHECKING:
    from edp.runs.sweep import Sweep
    from edp.runs.trial_results import Result
    from edp.sweeps.plan import Plan

DESCRIPTION = """Train over a space of options, tasks, algorithms, policies and presets. FILE says what is tried. Every
trial is a run directory in DIR: edp runs, report, eval and train --resume work on it. A sweep that was interrupted goes
on with --resume DIR. At its end the best trial is trained again with fresh seeds."""
EXIT_FAILED = 1


def main(argv: list[str]) -> int:
    parser = Parser("edp sweep", DESCRIPTION, "FILE.toml | --resume DIR")
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE.toml", help="what is tried, and how")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the directory (default: a new one in sweeps/)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with the sweep in this directory")
    parser.add_argument("--dry-run", action="store_true", help="print the trials, and stop")
    parser.add_argument(
        "--engine", default="ray", metavar="…", help="ray, or serial: this process, one trial after another"
    )
    parser.add_argument("--address", default="", metavar="ADDRESS", help="a Ray cluster (default: Ray on this machine)")
    parser.add_argument(
        "--parallel", type=int, default=0, metavar="…", help="most trials at a time (default: what fits)"
    )
    parser.add_argument("--dashboard", action="store_true", help="start Ray's dashboard, on this machine's own address")
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    values = parser.parse(argv)
    if (values.file is None) == (values.resume is None):
        raise UserError("give the file of a new sweep, or --resume DIR (see edp sweep --help)")
    if values.resume and (values.out or values.dry_run):
        raise UserError("a resumed sweep keeps its directory and its trials: leave --out and --dry-run out")

    from edp.sweeps.plan import read_plan
    from edp.sweeps.run import check_engine, open_engine, resume_sweep, start_sweep

    check_engine(values.engine, values.parallel, values.address, values.dashboard)
    plan, sweep = resume_sweep(values.resume) if values.resume else (read_plan(values.file), None)
    if values.dry_run:
        return print_trials(plan, values.file)
    options = {"parallel": values.parallel, "address": values.address, "dashboard": values.dashboard}
    with open_engine(values.engine, plan, **options) as engine:
        if sweep is None:
            out = values.out or Path("sweeps") / f"{values.file.stem}_{time.strftime('%Y%m%d-%H%M%S')}"
            sweep = start_sweep(plan, out, str(values.file), ("edp", "sweep", *argv))
        return run(plan, sweep, engine, values.quiet)


def run(plan: "Plan", sweep: "Sweep", engine: Any, quiet: bool) -> int:
    """Run the sweep to its end, and print what came of it."""
    from edp.cli.progress import note
    from edp.sweeps.run import run_sweep

    title = f"{counted(plan.size, 'trial')} in {sweep.folder}, up to {engine.capacity} at a time"
    with Signals(tell=note) as stopping, showing(plan, title, quiet) as show:
        results = run_sweep(plan, sweep, engine, show, note, stopping)
        if stopping():
            done = sum(each.is_done for each in results)
            note(
                f"stopped after {done} of {counted(plan.size, 'trial')}; go on with: edp sweep --resume {sweep.folder}"
            )
            return stopping.exit_code
    print_results(plan, sweep, results)
    return EXIT_FAILED if any(not each.is_done or each.state == "failed" for each in results) else 0


def print_trials(plan: "Plan", file: Path) -> int:
    """Print the trials of a plan that does not run."""
    from edp.cli.progress import note
    from edp.sweeps.plan import check_trials, describe
    from edp.sweeps.search import example_points, planned_points

    missing = check_trials(plan, example_points(plan), str(file))
    for number, values in enumerate(planned_points(plan)):
        print(f"{number:4}  {describe(values)}")
    if plan.search.method == "optuna":
        print(f"{counted(plan.size, 'trial')}, which Optuna chooses one after another")
    for text in missing:
        note(text)
    return 0


@contextmanager
def showing(plan: "Plan", title: str, quiet: bool) -> "Iterator[Callable[[list[Result]], None]]":
    """A bar over all steps of all trials, and a line for each trial that ends."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from edp.cli.progress import note
    from edp.sweeps.plan import describe

    ended: set[int] = set()
    if quiet:
        yield lambda results: None
        return
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("trials", total=1.0)

        def show(results: "list[Result]") -> None:
            shares = [1.0 if each.is_done else each.step / max(each.steps, 1) for each in results]
            running = sum(each.state == "running" for each in results)
            text = f"{sum(each.is_done for each in results)} of {plan.size} trials, {running} running"
            bar.update(task, description=text, completed=min(1.0, sum(shares) / (plan.size + plan.search.confirm)))
            for each in results:
                if each.is_done and each.trial.number not in ended:
                    if started:
                        value = "" if each.value != each.value else f" {plan.search.metric} {each.value:.4g}"
                        after = f" after {each.step:,} steps" if each.state != "finished" else ""
                        again = "" if each.trial.again is None else f", which repeats {each.trial.again},"
                        values = describe(each.trial.values)
                        note(f"trial {each.trial.number}{again} {each.state}{after}:{value} ({values})")
                    ended.add(each.trial.number)
            if not started:
                note(title)
            started.append(True)

        started: list[bool] = []
        yield show


def print_results(plan: "Plan", sweep: "Sweep", results: "list[Result]") -> None:
    """Print the trials, best first, and what the best scores with fresh seeds."""
    from rich.console import Console
    from rich.table import Table

    from edp.cli.terminal import shown
    from edp.runs.trial_results import ranked
    from edp.sweeps.plan import show_value

    first = [each for each in results if each.trial.again is None]
    order = ranked(first, sweep.sign)
    order += [each for each in first if each not in order]
    metric, varied = plan.search.metric, plan.varied
    table = Table("trial", *varied, metric, "steps", "state")
    for each in order:
        cells = [shown(show_value(each.trial.values[name])) if name in each.trial.values else "" for name in varied]
        table.add_row(str(each.trial.number), *cells, value_text(each), f"{each.step:,}", each.state)
    console = Console()
    console.print(table)
    for each in results:
        if each.trial.again is not None and each.state == "finished":
            before = next(found for found in first if found.trial.number == each.trial.again)
            console.print(
                f"Trial {each.trial.again} has {metric} {value_text(before)}, and {value_text(each)} when it is "
                "trained again with fresh seeds. The second value is the one to expect: the first was chosen as the "
                f"best of {counted(len(first), 'trial')}.",
                soft_wrap=True,
                highlight=False,
            )
    console.print(f"A page of this sweep: edp report {shown(str(sweep.folder))}", soft_wrap=True, highlight=False)


def value_text(result: "Result") -> str:
    """The mean over seeds, ± the standard deviation between them."""
    import numpy as np

    known = np.array([value for value in result.per_seed if value == value])
    if not len(known):
        return ""
    spread = f" ± {known.std(ddof=1):.3g}" if len(known) > 1 else ""
    return f"{known.mean():.4g}{spread}"
