"""edp data: tasks and their files. The commands for the user's own data are in data_logs.py."""

from collections.abc import Collection
from pathlib import Path

from edp.cli import data_logs
from edp.cli.data_list import list_tasks
from edp.cli.parser import Parser, add_overwrite
from edp.errors import UserError, printable, unknown
from edp.files import cache_folder, check_writable

HELP = """\
usage: edp data list [TASK]  the tasks and their files
       edp data get TASK     download D4RL's file for a task
       edp data make TASK …  make a built-in set, or a look-alike of D4RL's file
       edp data make FILE …  roll out policies in any environment and write a data set
       edp data check DATA   examine your own data: what is in it, what looks wrong, and pictures
       edp data convert A B  write data in another format
       edp data record FILE  record episodes of any policy in any Gymnasium environment"""

MAKE = """Make a data set in D4RL's format: one of the built-in ones (edp data make local/hopper-medium-expert), a
look-alike of one of D4RL's (edp data make hopper-medium-v2 --policy medium.npz), or a new one (edp data make new.hdf5
--env ID --policy mine.npz)."""


def main(argv: list[str]) -> int:
    commands = {
        "list": list_tasks,
        "get": get_data,
        "make": make_data,
        "check": data_logs.check_data,
        "convert": data_logs.convert_data,
        "record": data_logs.record_data,
    }
    if not argv or argv[0] in ("-h", "--help"):
        print(HELP)
        return 0
    if argv[0] not in commands:
        raise unknown("command", f"data {argv[0]}", [f"data {name}" for name in commands])
    return commands[argv[0]](argv[1:])


def make_data(argv: list[str]) -> int:
    parser = Parser("edp data make", MAKE, "TASK | FILE.hdf5")
    parser.add_argument("what", metavar="TASK | FILE", help="a task (edp data list), or a new file with --env")
    parser.add_argument("--env", metavar="ID", help="for a new file: a Gymnasium id, for example edp/hopper-d4rl-v2")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where a task's data goes (default: the cache)")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="FILE[:SHARE]",
        help="a policy (.npz, or the name of a built-in one) and its share of the rows; may be repeated",
    )
    parser.add_argument("--logs", type=Path, metavar="FILE", help="demonstrations (.npz) to replay, for kitchen")
    parser.add_argument(
        "--transitions", type=int, metavar="…", help="rows to write (default: as many as D4RL's, or 100000)"
    )
    parser.add_argument("--noise", type=float, metavar="…", help="std of noise on actions (default: 0; 0.2 in AntMaze)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="…", help="seed of environments and policies (default: 0)"
    )
    parser.add_argument("--processes", type=int, metavar="…", help="number of processes (default: one per core)")
    add_overwrite(parser)
    values = parser.parse(argv)
    for name, low in (("transitions", 1), ("noise", 0), ("seed", 0), ("processes", 1)):
        value = getattr(values, name)
        if value is not None and not low <= value < float("inf"):
            raise UserError(f"--{name} must be at least {low}, not {value}")

    from edp.data import tasks

    if values.what in tasks.TASKS:
        task = tasks.get_task(values.what)
        print(printable(str(make_built_in(task, values) if task.local else make_look_alike(task, values))))
    elif values.what.endswith(".hdf5"):
        print(printable(str(make_new(Path(values.what), values))))
    else:
        raise unknown("task (and a new file's name ends in .hdf5)", values.what, tasks.TASKS)
    return 0


def make_built_in(task, values) -> Path:
    from edp.cli.progress import counting
    from edp.data import locate

    refuse_given(values, f"{task.name} is made in one way only", keep=())
    path = cache_folder() / task.file
    with counting(f"making {task.name}", task.transitions) as advance:
        locate.make_built_in(task, path, advance)
    return path


def make_look_alike(task, values) -> Path:
    from edp.cli.progress import counting
    from edp.data import locate
    from edp.data.synthesis import lookalikes

    refuse_given(values, f"{task.name} has a fixed environment", keep=MAKE_OPTIONS - {"env"})
    policies = [split_share(text) for text in values.policy]
    if not task.made_from:
        raise UserError(f"{task.name} consists of human demonstrations, and cannot be made: edp data get {task.name}")
    lookalikes.check_sources(task, policies, values.logs)
    if values.logs is not None:
        refuse_given(values, "demonstrations are replayed as they are", keep=MAKE_OPTIONS - {"transitions", "noise"})
    transitions = lookalikes.count_rows(task, values.logs, values.transitions or task.transitions)
    noise = lookalikes.default_noise(task) if values.noise is None else values.noise
    path = values.out or locate.look_alike_path(task)
    check_writable(path, values.overwrite, [file for file, _ in policies] + [file for file in [values.logs] if file])
    with counting(f"making a look-alike of {task.name}", transitions) as advance:
        lookalikes.make_look_alike(
            task, path, policies, values.logs, transitions, noise, values.seed, values.processes, advance
        )
    return path


def make_new(path: Path, values) -> Path:
    from edp.cli.progress import counting
    from edp.data.synthesis import behaviours
    from edp.data.synthesis.make import Behaviour, make_dataset

    refuse_given(values, "a new file is rolled out from policies", keep=MAKE_OPTIONS - {"out", "logs"})
    if not values.env or not values.policy:
        raise UserError("a new data set needs --env ID and at least one --policy FILE (see edp data make --help)")
    policies = [split_share(text) for text in values.policy]
    check_writable(path, values.overwrite, [file for file, _ in policies])
    actors = [Behaviour(file.stem, behaviours.load_actor(file), share, values.noise or 0.0) for file, share in policies]
    transitions = values.transitions or 100_000
    with counting(f"making {path}", transitions) as advance:
        make_dataset(path, values.env, actors, transitions, values.seed, advance, processes=values.processes)
    return path


MAKE_OPTIONS = {"env", "out", "policy", "logs", "transitions", "noise"}


def refuse_given(values, why: str, keep: Collection[str]) -> None:
    """Refuse options that would have no effect."""
    for name in sorted(MAKE_OPTIONS - set(keep)):
        if getattr(values, name) not in (None, []):
            raise UserError(f"{why}: --{name} does not go with it")


def split_share(text: str) -> tuple[Path, float]:
    """Split ``FILE:SHARE``; the share is 1 if it is not given. A name may stand for the file of a built-in policy."""
    from edp.data.synthesis.behaviours import policy_path

    file, colon, share = text.rpartition(":")
    try:
        number = float(share) if colon else 1.0
    except ValueError:
        colon, number = "", 1.0
    if not 0 < number < float("inf"):
        raise UserError(f"--policy {text}: a share must be a positive number")
    return policy_path(Path(file if colon else text)), number


def get_data(argv: list[str]) -> int:
    from edp.data.formats import PREFIXES

    names = " or ".join(f"{prefix}NAME" for prefix in PREFIXES)
    parser = Parser("edp data get", "Download D4RL's file for a task. Interrupted downloads are resumed.", "TASK")
    parser.add_argument("task", metavar="TASK", help=f"a task's name (edp data list), or {names}")
    values = parser.parse(argv)

    from edp.cli.locate import download_with_bar
    from edp.cli.progress import note
    from edp.data import formats, locate, tasks

    if formats.prefix_of(values.task):
        print(printable(str(formats.download(values.task))))
        return 0
    task = tasks.get_task(values.task)
    if task.local:
        raise UserError(f"{task.name} is made on this machine: edp data make {task.name}")
    path = locate.file_on_disk(task)
    if path is None:
        path = download_with_bar(task)
    elif described := locate.describe_download(path):
        note(described)
    print(printable(str(path)))
    return 0
