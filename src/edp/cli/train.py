"""edp train TASK, edp train --resume RUN"""

import time
from functools import partial
from pathlib import Path
from typing import Any

from edp.cli.parser import Parser, add_columns, add_max_memory, columns_of, flag, given_options
from edp.cli.signals import Signals
from edp.errors import UserError, counted

DESCRIPTION = """Train a policy on a task's data and evaluate it regularly. The run is stored in a new directory.
Values that are not given may be set by the task's domain, the algorithm, the policy or a preset: --print-config shows
each value and where it comes from. Ctrl-C and SIGTERM stop the run at the end of the current epoch, with a checkpoint.
The exit code is then 130 or 143, and --resume continues the run. The exit code is 1 if a seed became NaN."""
RESUME = "Continue a run where it stopped, crashed or ended: the result is bit for bit that of an uninterrupted run."
EXIT_FAILED = 1


def main(argv: list[str]) -> int:
    from edp.devices import processes

    processes.connect()
    with processes.ending_together():
        if not processes.is_leader():
            return follow()
        return resume(argv) if any(word.split("=")[0] == "--resume" for word in argv) else start(argv)


def start(argv: list[str]) -> int:
    """Start a new run, in the only process or in the leading one."""
    from edp.config.choice import choose

    # Which options exist depends on the algorithm and the policy, so these two are parsed first.
    first = Parser("edp train", DESCRIPTION, add_help=False)
    for name in ("--algo", "--policy", "--preset"):
        first.add_argument(name)
    names, _ = first.parse_known_args(argv)
    choice = choose(names.algo, names.policy, names.preset)
    values = train_parser(choice.groups).parse(argv)
    columns, ranges, origins = columns_of(values)
    here = given_options(choice.groups.values(), values)
    origins = {name: origin for name, origin in origins.items() if name not in here}
    choice = choice._replace(options=ranges | here, origins=origins)

    from edp.cli.locate import find_file
    from edp.cli.results import print_config
    from edp.runs import loggers
    from edp.runs.directory import RunExistsError
    from edp.training import prepare

    source = prepare.open_source(values.task, data=values.data or "", columns=columns, env=values.env or "")
    source = source._replace(origins=origins)
    settings = prepare.resolve_settings(choice, source.task)
    if values.print_config:
        print_config(choice.groups, settings, source)
        return 0
    out = values.out or Path("runs") / default_name(source.task.name, choice, settings.values)
    loggers.check_loggers(values.log)
    command, find = ["edp", "train", *argv], partial(find_file, quiet=values.quiet)
    try:
        with prepare.start_run(source, settings, out, command=command, find_file=find) as ready:
            return train(ready, values)
    except RunExistsError as error:
        again = f", or continue it: edp train --resume {error.folder}" if error.is_run else ""
        raise UserError(f"{error}{again}") from None


def train_parser(groups: dict[str, type]) -> Parser:
    from edp.algorithms import ALGORITHMS
    from edp.config.defaults import PRESETS
    from edp.data.formats import describe_formats
    from edp.policies import POLICIES

    parser = Parser("edp train", DESCRIPTION, "TASK | DATA")
    parser.add_argument(
        "task",
        metavar="TASK | DATA",
        help=f"a task's name (edp data list), or your own data: {describe_formats()}",
    )
    for name, choices in (("--algo", ALGORITHMS), ("--policy", POLICIES), ("--preset", PRESETS)):
        parser.add_argument(name, metavar="…", help=", ".join(choices))
    parser.add_argument("--data", metavar="DATA", help="read a task's data from here instead of its own file")
    parser.add_argument("--env", metavar="ID", help="environment to evaluate in, for your own data (ID or module:ID)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run directory (default: a new one in runs/)")
    parser.add_argument(
        "--resume", type=Path, metavar="RUN", help="continue a run instead (see edp train --resume RUN -h)"
    )
    add_output_options(parser)
    parser.add_argument("--print-config", action="store_true", help="print every value and its origin, and stop")
    add_max_memory(parser)
    add_columns(parser)
    for title, cls in groups.items():
        parser.add_fields(cls, title)
    return parser


def add_output_options(parser: Parser) -> None:
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    parser.add_argument(
        "--log",
        type=lambda text: text.split(","),
        default=[],
        metavar="…",
        help="also log to: tensorboard, wandb (comma-separated)",
    )


def default_name(task: str, choice: Any, values: dict[str, Any]) -> str:
    """The name of a new run directory."""
    first, count = values["seed"].value, values["seeds"].value
    title = task.replace("/", "-").replace(":", "-")
    seeds = f"s{first}-{first + count - 1}"
    return "_".join([title, choice.algorithm, choice.policy, seeds, time.strftime("%Y%m%d-%H%M%S")])


def resume(argv: list[str]) -> int:
    """Continue a run as if it had never stopped."""
    parser = Parser("edp train", RESUME, "--resume RUN")
    parser.add_argument("--resume", type=Path, required=True, metavar="RUN", help="a run directory")
    parser.add_argument("--steps", type=int, metavar="…", help="train up to this step instead of the run's last")
    parser.add_argument("--data", metavar="DATA", help="where the data is now, if it was moved")
    parser.add_argument("--env", metavar="ID", help="the environment, if it is your own code (module:ID)")
    add_output_options(parser)
    add_max_memory(parser)
    refuse_kept(parser.parse_known_args(argv)[1])
    values = parser.parse(argv)

    from edp.cli.locate import find_file
    from edp.runs import loggers
    from edp.training import prepare

    loggers.check_loggers(values.log)
    with prepare.resume_run(
        values.resume,
        steps=values.steps,
        data=values.data or "",
        env=values.env or "",
        command=["edp", "train", *argv],
        find_file=partial(find_file, quiet=values.quiet),
    ) as ready:
        return train(ready, values)


KEPT = {"--algo": "algorithm", "--policy": "policy", "--preset": "preset", "--seeds": "seeds", "--out": "directory"}


def refuse_kept(words: list[str]) -> None:
    """Say what a resumed run keeps, if these words would change it."""
    from dataclasses import fields

    from edp.algorithms import ALGORITHMS
    from edp.config.spec import DataOptions, EvalOptions, TrainOptions
    from edp.data.formats.columns import Columns
    from edp.policies import POLICIES

    classes = (*ALGORITHMS.values(), *POLICIES.values(), DataOptions, TrainOptions, EvalOptions, Columns)
    known = {flag(entry.name) for cls in classes for entry in fields(cls)}  # pyright: ignore
    known |= {*KEPT, "--columns"}
    for name in (word.split("=")[0] for word in words):
        if name.replace("--no-", "--", 1) in known:
            raise UserError(
                f"a resumed run keeps its {KEPT.get(name, 'options')}: leave {name} out, or start a new run"
            )
    if words and not any(word.startswith("-") for word in words):
        raise UserError(f"a resumed run keeps its data: leave {words[0]!r} out (--data says where the data is now)")


def follow() -> int:
    """Train the seeds of a process that does not lead; the leading one writes and prints."""
    from edp.acting.rollout import StoppedError
    from edp.training.loop import TrainingError
    from edp.training.prepare import follow as follow_leader

    experiment, run = follow_leader()
    with Signals(tell=lambda text: None) as stopping:
        try:
            for _ in experiment.run(run, stopping):
                pass
        except StoppedError:
            return stopping.exit_code
        except TrainingError:
            return EXIT_FAILED
    return EXIT_FAILED if experiment.failed else 0


def train(ready, values) -> int:
    """Train to the end and show the progress. Returns the exit code."""
    from edp.acting.rollout import StoppedError
    from edp.cli.display import display
    from edp.cli.progress import note
    from edp.cli.results import print_result
    from edp.runs.loggers import Loggers
    from edp.training.loop import TrainingError

    experiment, run = ready.experiment, ready.run
    spec = experiment.spec
    for text in ready.notes:
        note(text)
    logs = Loggers(values.log, run.folder, run.config, note)
    with (
        Signals(tell=note) as stopping,
        display(spec, ready.dataset, ready.place, run.folder, experiment.step, values.quiet) as show,
    ):
        try:
            for event in experiment.run(run, stopping):
                show(event)
                logs.log(experiment.step, event_numbers(event))
        except StoppedError:
            done = f"{experiment.step:,} of {counted(spec.training.steps, 'step')}"
            note(f"stopped after {done}; continue with: edp train --resume {run.folder}")
            return stopping.exit_code
        except TrainingError as error:
            note(f"{error}. Try a smaller --lr. Earlier results are in {run.folder}")
            return EXIT_FAILED
        finally:
            logs.close()
    print_result(spec, ready.dataset, run)
    for seed, why in experiment.failed.items():
        note(f"seed {seed} failed: {why}")
    return EXIT_FAILED if experiment.failed else 0


def event_numbers(event) -> dict[str, float]:
    """The numbers of an event by name, for loggers."""
    from edp.acting.evaluator import Evaluation
    from edp.acting.validation import Validation
    from edp.runs.scores import nan_mean
    from edp.training.loop import Epoch

    if isinstance(event, Epoch):
        losses = {f"train/{name}": float(nan_mean(values)) for name, values in event.metrics.items()}
        return losses | {"speed/steps_per_second": event.steps_per_second}
    if isinstance(event, Validation):
        return {f"validation/{name}": float(nan_mean(values)) for name, values in event.metrics.items()}
    return {"evaluation/score": float(nan_mean(event.scores))} if isinstance(event, Evaluation) else {}
