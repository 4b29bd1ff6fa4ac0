"""edp data list"""

from edp.cli.parser import Parser, as_flags, flag


def list_tasks(argv: list[str]) -> int:
    parser = Parser(
        "edp data list", "List the tasks and which of their files are here, or describe one task.", "[TASK]"
    )
    parser.add_argument("task", metavar="TASK", nargs="?", help="a task to describe")
    values = parser.parse(argv)

    from edp.data import tasks

    if values.task:
        print_task(tasks.get_task(values.task))
    else:
        print_tasks()
    return 0


def print_tasks() -> None:
    """Print a line for each task, and whether its file is here."""
    from rich.console import Console
    from rich.table import Column, Table

    from edp.data import locate, tasks

    table = Table(Column("task", no_wrap=True), Column("environment", no_wrap=True), Column("data", no_wrap=True))
    for task in tasks.TASKS.values():
        table.add_row(task.name, task.env, file_state(task))
    console = Console()
    console.print(table)
    places = ", ".join(str(folder) for folder in locate.data_folders())
    console.print(f"D4RL's files are looked for in {places}", soft_wrap=True, highlight=False)
    console.print("edp data get TASK downloads a file; edp data list TASK describes a task", highlight=False)


def file_state(task) -> str:
    """Say which of a task's files is here: D4RL's file, a look-alike, or none."""
    from edp.data import locate

    if locate.file_on_disk(task):
        return "here"
    return "look-alike" if locate.look_alike_on_disk(task) else "when first used" if task.local else "-"


def print_task(task) -> None:
    """Print everything that is known about a task, and the paper's scores on it."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from edp.report.published import METHODS, published_scores

    table = Table(Column(""), Column(task.name, overflow="fold"), box=None, pad_edge=False)
    for name, text in task_facts(task).items():
        if text:
            table.add_row(name, escape(text))
    console = Console()
    console.print(table, highlight=False)
    scores = Table("the paper's scores", "last ten", "best")
    for algorithm, policy in METHODS:
        published = published_scores(task, algorithm, policy)
        if published.rat is not None:
            texts = ("" if score is None else f"{score:.1f}" for score in published)
            scores.add_row(f"{algorithm} + {policy}", *texts)
    if scores.row_count:
        console.print(scores)


def task_facts(task) -> dict[str, str]:
    """Describe a task: its data, its environment, its reference scores, and the options that are its defaults."""
    from edp.algorithms import ALGORITHMS
    from edp.config.presets import DOMAINS
    from edp.data import locate, tasks
    from edp.data.synthesis import lookalikes

    path = locate.file_on_disk(task) or locate.look_alike_on_disk(task)
    facts = {
        "data": f"{path or 'not here'}{' (regenerated)' if path and path == locate.look_alike_on_disk(task) else ''}",
        "published as": tasks.SERVER + task.url if task.url else "",
        "size": f"{task.size:,} bytes" if task.size else "",
        "sha256": task.sha256 or "",
        "transitions": f"about {task.transitions:,}" if task.transitions else "",
        "look-alikes": as_flags(lookalikes.NEEDED.get(task.made_from, "").format(env=task.env)),
        "environment": task.env,
        "score 0, 100": f"at returns of {task.min_return:g}, {task.max_return:g}",
        "episodes": f"at most {task.episode_limit} steps",
        "settings": ", ".join(f"{flag(k)} {v}" for k, v in DOMAINS[task.domain].items()),
    }
    return facts | {
        f"with {algorithm}": ", ".join(f"{flag(k)} {v}" for k, v in values.items())
        for algorithm, cls in ALGORITHMS.items()
        if (values := cls.domain_defaults.get(task.domain))
    }
