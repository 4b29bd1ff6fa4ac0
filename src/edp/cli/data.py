"""edp data list, edp data make"""

from pathlib import Path

from edp.cli.options import Parser
from edp.errors import UserError, unknown

HELP = """\
usage: edp data list         the tasks and their files
       edp data get TASK     download D4RL's file for a task
       edp data make OUT …   roll out policies and write a data set"""

MAKE = """Roll out behaviour policies in a Gymnasium environment and write a D4RL-format HDF5 file, or make one of the
built-in sets (edp data make local/hopper-medium-expert)."""


def main(argv: list[str]) -> int:
    commands = {"list": list_tasks, "get": get, "make": make}
    if not argv or argv[0] in ("-h", "--help"):
        print(HELP)
        return 0
    if argv[0] not in commands:
        raise unknown("command", f"data {argv[0]}", [f"data {name}" for name in commands])
    return commands[argv[0]](argv[1:])


def make(argv: list[str]) -> int:
    parser = Parser("edp data make", MAKE, "OUT")
    parser.add_argument("out", metavar="OUT", help="the file to write, or the name of a built-in set")
    parser.add_argument("--env", metavar="ID", help="Gymnasium id, for example edp/hopper-d4rl-v2")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="FILE[:SHARE]",
        help="a policy (.npz) and its share of the rows; may be repeated",
    )
    parser.add_argument("--transitions", type=int, default=100_000, metavar="…", help="rows to write (default: 100000)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="…", help="seed of environments and policies (default: 0)"
    )
    values = parser.parse(argv)

    from edp.cli.display import counting
    from edp.data import behaviours, tasks
    from edp.data.make import Behaviour
    from edp.data.make import make as make_file

    if values.out.startswith("local/"):
        task = tasks.get(values.out)
        if values.env or values.policy:
            raise UserError(f"{task.name} is made in one way only; give a file name to make another set")
        path = tasks.cache_folder() / task.file
        with counting(f"making {task.name}", task.transitions) as advance:
            tasks.make_local(task, path, advance)
    else:
        if not values.env or not values.policy:
            raise UserError("a new data set needs --env ID and at least one --policy FILE (see edp data make --help)")
        path = Path(values.out)
        actors = [Behaviour(file.stem, behaviours.load(file), share) for file, share in map(split_share, values.policy)]
        with counting(f"making {path}", values.transitions) as advance:
            make_file(path, values.env, actors, values.transitions, values.seed, advance)
    print(path)
    return 0


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
    Parser("edp data list", "The tasks, and which of their files are here.").parse(argv)

    from rich.console import Console
    from rich.table import Column, Table

    from edp.data import tasks

    table = Table(Column("task", no_wrap=True), Column("environment", no_wrap=True), Column("data", overflow="fold"))
    for task in tasks.TASKS.values():
        missing = "made when first used" if task.local else "not here"
        table.add_row(task.name, task.env, str(tasks.on_disk(task) or missing))
    console = Console()
    console.print(table)
    console.print("edp data get TASK downloads what is not here", highlight=False)
    return 0


def get(argv: list[str]) -> int:
    parser = Parser("edp data get", "Download D4RL's file for a task; a download that broke off is resumed.", "TASK")
    parser.add_argument("task", metavar="TASK", help="a task's name (edp data list)")
    values = parser.parse(argv)

    from edp.cli.display import download
    from edp.data import tasks

    task = tasks.get(values.task)
    if task.local:
        raise UserError(f"{task.name} is made on this machine: edp data make {task.name}")
    print(tasks.on_disk(task) or download(task))
    return 0
