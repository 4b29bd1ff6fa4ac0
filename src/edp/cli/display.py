"""What a run looks like in a terminal, and in a log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.prompt import Confirm
from rich.table import Column, Table
from rich.text import Text

from edp import metrics, settings
from edp.cache import cache_folder
from edp.checkpoint import Checkpoint
from edp.data import lookalikes, paper, sources, tasks
from edp.data.log import Dataset
from edp.errors import UserError
from edp.evaluator import Evaluation
from edp.experiment import Compiled, Epoch, SeedFailed
from edp.loading import best_of, load
from edp.options import flag
from edp.run import Run
from edp.settings import Settings
from edp.spec import EvalOptions, Spec
from edp.validate import Validation

Event = Compiled | Epoch | Evaluation | Validation | SeedFailed


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that counts to ``total``; without a terminal, a line at each quarter."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(
            TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
        ) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    shown = 0

    def line(done: int) -> None:
        nonlocal shown
        quarter = 4 * done // total
        if quarter > shown:
            shown = quarter
            print(f"{title}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    yield line


def download(task: tasks.Task) -> Path:
    """Fetch the task's file, with a bar of the bytes."""
    console = Console(stderr=True)
    columns = TextColumn(task.file), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task(task.file, total=None)
        return tasks.download(task, lambda done, total: bar.update(shown, completed=done, total=total or None))


def find_data(task: tasks.Task, quiet: bool) -> Path:
    """The task's file; where it is missing and somebody is there to ask, a download is offered."""
    missing = not task.local and tasks.on_disk(task) is None
    question = f"{task.name} is not here. Download {task.file} to {tasks.download_path(task).parent}?"
    if missing and sys.stdin.isatty() and not quiet and Confirm.ask(question):
        return download(task)
    if not task.local or quiet or tasks.is_made(task, cache_folder() / task.file):
        return tasks.find(task)
    with counting(f"making {task.name}", task.transitions) as advance:
        return tasks.find(task, advance)


def find_data_of(folder: Run, spec: Spec, quiet: bool = False) -> str:
    """The data that a run was trained on: where it was, or where the task's file is here."""
    recorded = str(folder.config.get("file"))
    if recorded.startswith(sources.MINARI) or Path(recorded).exists():
        return recorded
    if spec.task.own:
        raise UserError(f"{folder.folder}: its data is no longer at {recorded}: say with --data where it is")
    return str(find_data(spec.task, quiet))


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
        "settings": ", ".join(f"{flag(k)} {v}" for k, v in settings.DOMAINS[task.domain].items()),
    }
    rows |= {
        f"with {algorithm}": ", ".join(f"{flag(k)} {v}" for k, v in values.items())
        for (domain, algorithm), values in settings.DOMAIN_WITH.items()
        if domain == task.domain
    }
    table = Table(Column(""), Column(task.name, overflow="fold"), box=None, pad_edge=False)
    for name, text in rows.items():
        if text:
            table.add_row(name, escape(text))
    console = Console()
    console.print(table, highlight=False)
    printed = {pair: paper.scores(task, *pair) for pair in paper.COLUMNS}
    scores = Table("the paper's scores", "last ten", "best")
    for (algorithm, policy), both in printed.items():
        if both.rat is not None:
            scores.add_row(f"{algorithm} + {policy}", *("" if score is None else f"{score:.1f}" for score in both))
    if scores.row_count:
        console.print(scores)


def note(text: str) -> None:
    """Something that people should know, apart from the results."""
    print(f"edp: {text}", file=sys.stderr, flush=True)


def load_noting(folder: Run, step: int | str | None = None) -> tuple[Spec, Checkpoint]:
    """A run's spec and checkpoint, with a note of those that could not be used."""
    spec, found = load(folder, step)
    for damaged in found.damaged:
        note(f"{damaged}; that of step {found.step:,} is used")
    return spec, found


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


def score_text(scores: np.ndarray) -> str:
    """Mean over everything, and the spread over seeds (over episodes, if there is one seed)."""
    if np.isnan(scores).all():
        return "none (all episodes failed)"
    means = metrics.known_mean(scores, axis=1)
    means = means[~np.isnan(means)]
    spread = means.std(ddof=1) if len(means) > 1 else np.nanstd(scores)
    return f"{means.mean():.1f} ± {spread:.1f}"


@contextmanager
def live(spec: Spec, step: int, console: Console) -> Iterator[Callable[[Event], None]]:
    """A bar with the speed and the last score, and a line of losses below it."""
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[speed]}  {task.fields[score]}"),
        console=console,
    )
    task = bar.add_task("train", total=spec.training.steps, completed=step, speed="compiling", score="")
    losses = Text("", style="dim", no_wrap=True, overflow="ellipsis")

    def show(event: Event) -> None:
        if isinstance(event, Epoch):
            bar.update(task, completed=event.step, speed=f"{event.steps_per_second:.0f} steps/s")
            losses.plain = summary(event)
        elif isinstance(event, Evaluation):
            bar.update(task, score=f"score {score_text(event.scores)}")
            console.print(evaluation_line(event), highlight=False, markup=False)
        elif isinstance(event, Validation):
            console.print(validation_line(event), highlight=False, markup=False, soft_wrap=True)
        elif isinstance(event, SeedFailed):
            console.print(f"seed {event.seed} failed: {event.why}", highlight=False, markup=False)

    with Live(Group(bar, losses), console=console, refresh_per_second=4):
        yield show


def plain(spec: Spec) -> Callable[[Event], None]:
    shown = 0

    def show(event: Event) -> None:
        nonlocal shown
        if isinstance(event, Compiled):
            print(f"compiled in {event.seconds:.1f} s", flush=True)
        elif isinstance(event, Evaluation):
            print(evaluation_line(event), flush=True)
        elif isinstance(event, Validation):
            print(validation_line(event), flush=True)
        elif isinstance(event, SeedFailed):
            print(f"seed {event.seed} failed: {event.why}", flush=True)
        elif event.step == spec.training.steps or event.step * 10 // spec.training.steps > shown:
            shown = event.step * 10 // spec.training.steps
            print(f"step {event.step:>9,}  {event.steps_per_second:.0f} steps/s  {summary(event)}", flush=True)

    return show


def evaluation_line(event: Evaluation, what: str = "") -> str:
    seeds = "  ".join(f"{mean:.1f}" for mean in metrics.known_mean(event.scores, axis=1))
    each = f"  (seeds: {seeds})" if len(event.scores) > 1 else ""
    text = f"{what or f'step {event.step:>9,}'}  score {score_text(event.scores)}{each}  in {event.seconds:.1f} s"
    return "\n".join([text, *failure_lines(event.failures)])


def validation_line(event: Validation) -> str:
    """Losses on episodes held out, and how far the policy's actions are from the data's."""
    far = metrics.known_mean(event.distance)
    distance = "" if np.isnan(far) else f"  action distance {far:.2f} std"
    return f"step {event.step:>9,}  held out: {summary(event)}{distance}  in {event.seconds:.1f} s"


def failure_lines(failures: list[str], most: int = 3) -> list[str]:
    """What became of episodes that could not be played to their end."""
    rest = [f"  and {len(failures) - most} more"] if len(failures) > most else []
    return [f"  failed: {failure}" for failure in failures[:most]] + rest


def print_config(groups: dict[str, type], resolved: Settings) -> None:
    """Every option with its value and where that came from; what is not a default stands out."""
    table = Table("option", "value", "from", box=None, pad_edge=False)
    for title, cls in groups.items():
        table.add_row(f"[bold]{title}[/bold]", "", "")
        for entry in fields(cls):
            setting = resolved.origins[entry.name]
            value = ",".join(map(str, setting.value)) if isinstance(setting.value, tuple) else str(setting.value)
            style = "dim" if setting.origin == "default" else ""
            table.add_row(f"  {flag(entry.name)}", escape(value), setting.origin, style=style)
    Console(width=110 if not sys.stdout.isatty() else None).print(table, highlight=False)


def paper_text(printed: paper.Scores) -> str:
    return f"{printed.rat:.1f}" + ("" if printed.oms is None else f"; best {printed.oms:.1f}")


def result_table(spec: Spec, dataset: Dataset, folder: Run) -> None:
    """What came out: scores where there is an environment, and what was found on episodes held out."""
    console = Console()
    if spec.task.env:
        score_table(spec, dataset, folder, console)
    if folder.validations():
        validation_tables(spec, folder, console)
    again = f"; evaluate again with: edp eval {folder.folder}" if spec.task.env else ""
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
    name = f"{config['algorithm']['name']} + {config['policy']['name']}"
    source = f"{scores.shape[0]} seed(s) × {scores.shape[1]} episodes after {last['step']:,} steps"
    table.add_row(f"[bold]{name}[/bold]", f"[bold]{score_text(scores)}[/bold]", source)
    seeds = f"{scores.shape[0]} seed{'s' * (scores.shape[0] > 1)}"
    if len(curve.steps) > 1:
        last_ten = f"{seeds}, mean of the last {min(len(curve.steps), metrics.LAST)} evaluations"
        table.add_row("  RAT", str(metrics.mean_interval(curve.rat)), last_ten)
        table.add_row(
            "  OMS", str(metrics.mean_interval(curve.oms)), f"{seeds}, best of {len(curve.steps)} evaluations"
        )
    printed = paper.scores(spec.task, config["algorithm"]["name"], config["policy"]["name"])
    if spec.data.best == 1 and printed.rat is not None:
        table.add_row("the paper", paper_text(printed), f"{settings.DOMAINS[spec.task.domain]['steps']:,} steps")
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
    for i, (low, high) in enumerate(zip(spec.scale.low, spec.scale.high, strict=True)):
        policy = {name: float(np.mean([each[name][i] for each in policies])) for name in data}
        shown = [text for part in ({name: data[name][i] for name in data}, policy) for text in spread_texts(part)]
        name = spec.task.action_names[i] if i < len(spec.task.action_names) else str(i)
        table.add_row(escape(name), *shown, f"{low:g} to {high:g}")
    console.print(table)


def spread_texts(part: dict[str, float]) -> list[str]:
    return [f"{part['mean']:.4g} ± {part['std']:.3g}", f"{part['q05']:.4g} to {part['q95']:.4g}"]


def evaluation_table(spec: Spec, event: Evaluation, options: EvalOptions, folder: Run) -> None:
    state = ", still running" if folder.is_claimed else ""
    title = f"{folder.title}, step {event.step:,}{state}, {options.act_with} parameters, EAS of {options.eas}"
    table = Table("seed", "score", "episodes", "lowest", "highest", title=title)
    for i, row in enumerate(event.scores):
        table.add_row(str(spec.training.seed + i), *evaluation_cells(row[None]))
    if len(event.scores) > 1:
        table.add_row("all", *evaluation_cells(event.scores))
    console = Console()
    console.print(table)
    for line in failure_lines(event.failures):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def offline_table(spec: Spec, rows: list[dict], folder: Run) -> None:
    """Values from the data alone, beside the scores of the same checkpoints, and what either would choose."""
    from scipy.stats import spearmanr

    scores = {row["step"]: row["scores"] for row in folder.training_evaluations()}
    seeds = [f"seed {spec.training.seed + i}" for i in range(spec.training.seeds)]
    table = Table("step", "value by FQE", *(seeds if len(seeds) > 1 else []), "score", title=folder.title)
    values = {row["step"]: metrics.known_mean(row["values"]) for row in rows}
    best = best_of(values, values)
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
