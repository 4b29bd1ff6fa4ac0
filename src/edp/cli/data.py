"""edp data: the tasks and their files; logs of one's own are in logs.py"""

from collections.abc import Collection
from pathlib import Path

from edp.cli import logs
from edp.cli.parser import Parser
from edp.errors import UserError, unknown
from edp.files import cache_folder

HELP = """\
usage: edp data list [TASK]  the tasks and their files
       edp data get TASK     download D4RL's file for a task
       edp data make TASK …  make a built-in set, or a look-alike of D4RL's file
       edp data make FILE …  roll out policies in any environment and write a data set
       edp data check DATA   what is in data of your own, what looks wrong in it, and pictures
       edp data convert A B  the same data in another format
       edp data record FILE  episodes of any policy in any Gymnasium environment"""

MAKE = """Make a data set in D4RL's format: one of the built-in ones (edp data make local/hopper-medium-expert), a
look-alike of one of D4RL's (edp data make hopper-medium-v2 --policy medium.npz), or a new one (edp data make new.hdf5
--env ID --policy mine.npz)."""


def main(argv: list[str]) -> int:
    commands = {
        "list": list_tasks,
        "get": get,
        "make": make,
        "check": logs.check,
        "convert": logs.convert,
        "record": logs.record,
    }
    if not argv or argv[0] in ("-h", "--help"):
        print(HELP)
        return 0
    if argv[0] not in commands:
        raise unknown("command", f"data {argv[0]}", [f"data {name}" for name in commands])
    return commands[argv[0]](argv[1:])


def make(argv: list[str]) -> int:
    parser = Parser("edp data make", MAKE, "TASK | FILE.hdf5")
    parser.add_argument("what", metavar="TASK | FILE", help="a task (edp data list), or a new file with --env")
    parser.add_argument("--env", metavar="ID", help="of a new file: a Gymnasium id, for example edp/hopper-d4rl-v2")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where a task's data goes (default: the cache)")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="FILE[:SHARE]",
        help="a policy (.npz) and its share of the rows; may be repeated",
    )
    parser.add_argument("--logs", type=Path, metavar="FILE", help="demonstrations (.npz) to play again, for kitchen")
    parser.add_argument(
        "--transitions", type=int, metavar="…", help="rows to write (default: as many as D4RL's, or 100000)"
    )
    parser.add_argument("--noise", type=float, metavar="…", help="std added to actions (default: 0; 0.2 in AntMaze)")
    parser.add_argument("--seed", type=int, default=0, metavar="…", help="of environments and policies (default: 0)")
    parser.add_argument("--processes", type=int, metavar="…", help="to share the work (default: one a core)")
    values = parser.parse(argv)
    for name, low in (("transitions", 1), ("noise", 0), ("seed", 0), ("processes", 1)):
        value = getattr(values, name)
        if value is not None and not low <= value < float("inf"):
            raise UserError(f"--{name} must be at least {low}, not {value}")

    from edp.data import tasks

    if values.what in tasks.TASKS:
        task = tasks.get(values.what)
        print(make_built_in(task, values) if task.local else make_look_alike(task, values))
    elif values.what.endswith(".hdf5"):
        print(make_new(Path(values.what), values))
    else:
        raise unknown("task (and a new file's name ends in .hdf5)", values.what, tasks.TASKS)
    return 0


def make_built_in(task, values) -> Path:
    from edp.cli.progress import counting
    from edp.data import tasks

    refuse_given(values, f"{task.name} is made in one way only", keep=())
    path = cache_folder() / task.file
    with counting(f"making {task.name}", task.transitions) as advance:
        tasks.make_local(task, path, advance)
    return path


def make_look_alike(task, values) -> Path:
    from edp.cli.progress import counting
    from edp.data import tasks
    from edp.data.synthesis import lookalikes

    refuse_given(values, f"{task.name} has an environment of its own", keep=MAKE_OPTIONS - {"env"})
    policies = [split_share(text) for text in values.policy]
    lookalikes.check(task, policies, values.logs)
    if values.logs is not None:
        refuse_given(values, "demonstrations are played as they are", keep=MAKE_OPTIONS - {"transitions", "noise"})
    transitions = lookalikes.rows(task, values.logs, values.transitions or task.transitions)
    noise = lookalikes.default_noise(task) if values.noise is None else values.noise
    path = values.out or tasks.look_alike_path(task)
    with counting(f"making a look-alike of {task.name}", transitions) as advance:
        lookalikes.look_alike(
            task, path, policies, values.logs, transitions, noise, values.seed, values.processes, advance
        )
    return path


def make_new(path: Path, values) -> Path:
    from edp.cli.progress import counting
    from edp.data.synthesis import behaviours
    from edp.data.synthesis.make import Behaviour
    from edp.data.synthesis.make import make as make_file

    refuse_given(values, "a new file is rolled out from policies", keep=MAKE_OPTIONS - {"out", "logs"})
    if not values.env or not values.policy:
        raise UserError("a new data set needs --env ID and at least one --policy FILE (see edp data make --help)")
    actors = [
        Behaviour(file.stem, behaviours.load(file), share, values.noise or 0.0)
        for file, share in map(split_share, values.policy)
    ]
    transitions = values.transitions or 100_000
    with counting(f"making {path}", transitions) as advance:
        make_file(path, values.env, actors, transitions, values.seed, advance, processes=values.processes)
    return path


MAKE_OPTIONS = {"env", "out", "policy", "logs", "transitions", "noise"}


def refuse_given(values, why: str, keep: Collection[str]) -> None:
    """Options that would be passed over."""
    for name in sorted(MAKE_OPTIONS - set(keep)):
        if getattr(values, name) not in (None, []):
            raise UserError(f"{why}: --{name} does not go with it")


def split_share(text: str) -> tuple[Path, float]:
    """``FILE`` or ``FILE:SHARE``."""
    file, colon, share = text.rpartition(":")
    if not colon:
        return Path(text), 1.0
    try:
        number = float(share)
    except ValueError:
        return Path(text), 1.0
    if not 0 < number < float("inf"):
        raise UserError(f"--policy {text}: a share must be a positive number")
    return Path(file), number


def list_tasks(argv: list[str]) -> int:
    parser = Parser("edp data list", "The tasks, and which of their files are here; or all about one.", "[TASK]")
    parser.add_argument("task", metavar="TASK", nargs="?", help="show this one in full")
    values = parser.parse(argv)

    from edp.data import tasks

    if values.task:
        print_task(tasks.get(values.task))
    else:
        print_tasks()
    return 0


def get(argv: list[str]) -> int:
    parser = Parser("edp data get", "Download D4RL's file for a task; a download that broke off is resumed.", "TASK")
    parser.add_argument("task", metavar="TASK", help="a task's name (edp data list), or minari:NAME")
    values = parser.parse(argv)

    from edp.cli.locate import download_with_bar
    from edp.data import formats, tasks

    if values.task.startswith(formats.MINARI):
        from edp.data.formats.minari import download as from_minari

        print(from_minari(values.task.removeprefix(formats.MINARI)))
        return 0
    task = tasks.get(values.task)
    if task.local:
        raise UserError(f"{task.name} is made on this machine: edp data make {task.name}")
    print(tasks.on_disk(task) or download_with_bar(task))
    return 0


def print_tasks() -> None:
    """Print a line for each task, and whether its file is here."""
    from rich.console import Console
    from rich.table import Column, Table

    from edp.data import tasks

    table = Table(Column("task", no_wrap=True), Column("environment", no_wrap=True), Column("data", no_wrap=True))
    for task in tasks.TASKS.values():
        table.add_row(task.name, task.env, file_state(task))
    console = Console()
    console.print(table)
    places = ", ".join(str(folder) for folder in tasks.data_folders())
    console.print(f"D4RL's files are looked for in {places}", soft_wrap=True, highlight=False)
    console.print("edp data get TASK downloads one; edp data list TASK tells more about it", highlight=False)


def file_state(task) -> str:
    """Say which of a task's files is here: D4RL's file, a look-alike, or none."""
    from edp.data import tasks

    if tasks.on_disk(task):
        return "here"
    return "look-alike" if tasks.regenerated(task) else "when first used" if task.local else "-"


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
    from edp.cli.parser import flag
    from edp.config import defaults
    from edp.data import tasks
    from edp.data.synthesis import lookalikes

    path = tasks.on_disk(task) or tasks.regenerated(task)
    facts = {
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
    return facts | {
        f"with {algorithm}": ", ".join(f"{flag(k)} {v}" for k, v in values.items())
        for (domain, algorithm), values in defaults.DOMAIN_WITH.items()
        if domain == task.domain
    }
