"""edp train TASK"""

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from edp.cli.options import Parser, given
from edp.errors import UserError, unknown
from edp.options import check

DESCRIPTION = """Train a policy on a task's data and evaluate it on the way. The run is kept in a directory of its own.
Values that are not given may be set by the task's domain, the algorithm, the policy or a preset: --print-config shows
each value and where it comes from. Ctrl-C or SIGTERM stop it at the end of the current epoch, with a checkpoint: the
exit code is then 130 or 143, and --resume goes on. The exit code is 1 if a seed became NaN on the way."""
RESUME = "Go on with a run where it stopped, crashed or ended: bit for bit as if nothing had happened."
EXIT_FAILED = 1


def main(argv: list[str]) -> int:
    from edp import distributed

    distributed.start()
    with distributed.together():
        return lead(argv) if distributed.leads() else follow()


def lead(argv: list[str]) -> int:
    """What the only process does, or the first of several."""
    if any(word.split("=")[0] == "--resume" for word in argv):
        return resume(argv)

    from edp import settings
    from edp.algorithms import ALGORITHMS
    from edp.policies import POLICIES
    from edp.spec import DataOptions, EvalOptions, TrainOptions

    # Which options there are depends on the algorithm and the policy, so those two are looked at first.
    first = Parser("edp train", DESCRIPTION, add_help=False)
    for name in ("--algo", "--policy", "--preset"):
        first.add_argument(name)
    asked, _ = first.parse_known_args(argv)
    algorithm, policy = settings.choose(asked.algo, asked.policy, asked.preset)
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", algorithm, ALGORITHMS)
    if policy not in POLICIES:
        raise unknown("policy", policy, POLICIES)

    parser = Parser("edp train", DESCRIPTION, "TASK")
    parser.add_argument("task", metavar="TASK", help="a task's name (edp data list)")
    for name, choices in (("--algo", ALGORITHMS), ("--policy", POLICIES), ("--preset", settings.PRESETS)):
        parser.add_argument(name, metavar="…", help=", ".join(choices))
    parser.add_argument(
        "--data", type=Path, metavar="FILE", help="read this D4RL-format HDF5 file instead of the task's own"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run directory (default: a new one in runs/)")
    parser.add_argument(
        "--resume", type=Path, metavar="RUN", help="go on with a run instead (see edp train --resume RUN -h)"
    )
    add_ways_of_showing(parser)
    parser.add_argument("--print-config", action="store_true", help="print every value and its origin, and stop")
    groups = {
        f"algorithm {algorithm}": ALGORITHMS[algorithm],
        f"policy {policy}": POLICIES[policy],
        "data": DataOptions,
        "training": TrainOptions,
        "evaluation": EvalOptions,
    }
    for title, cls in groups.items():
        parser.add_fields(cls, title)
    return train(argv, parser.parse(argv), algorithm, policy, groups)


def add_ways_of_showing(parser: Parser) -> None:
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    parser.add_argument(
        "--log",
        type=lambda text: text.split(","),
        default=[],
        metavar="…",
        help="also log to: tensorboard, wandb (comma-separated)",
    )


def train(argv: list[str], values, algorithm: str, policy: str, groups: dict[str, type]) -> int:
    from edp import loggers, settings
    from edp.cli.display import find_data, print_config
    from edp.data import d4rl, tasks
    from edp.experiment import fingerprint
    from edp.run import Run
    from edp.spec import Spec

    task = tasks.get(values.task)
    layers = settings.layers(algorithm, policy, task.domain, task.settings, values.preset)
    resolved = settings.resolve(groups.values(), layers, given(groups.values(), values))
    spec = Spec(task, *resolved.parts).check()
    if values.print_config:
        print_config(groups, resolved)
        return 0
    seeds = f"s{spec.training.seed}-{spec.training.seed + spec.training.seeds - 1}"
    name = "_".join([task.name.replace("/", "-"), algorithm, policy, seeds, time.strftime("%Y%m%d-%H%M%S")])
    out = values.out or Path("runs") / name
    Run.check_free(out)
    loggers.check(values.log)
    path = values.data or find_data(task, values.quiet)
    dataset = d4rl.read(path, task.episode_limit, task.episode_return)
    digest = fingerprint(dataset)
    experiment = prepare(spec, dataset, path, digest)
    about = {
        "file": str(path.absolute()),
        "data_sha256": digest,
        "regenerated": bool(dataset.regenerated),
        "command": ["edp", "train", *argv],
        "device": device(),
        "origins": {name: setting.origin for name, setting in resolved.origins.items()},
    }
    with Run(out).claimed():
        folder = Run.create(out, spec.to_json() | about)
        return work(experiment, dataset, path, folder, values)


def resume(argv: list[str]) -> int:
    """Go on with a run as if it had never stopped."""
    from edp import loggers
    from edp.cli.display import find_data_of, note
    from edp.experiment import fingerprint, read_data
    from edp.run import Run, about_here
    from edp.spec import Spec

    parser = Parser("edp train", RESUME, "--resume RUN")
    parser.add_argument("--resume", type=Path, required=True, metavar="RUN", help="a run directory")
    parser.add_argument("--steps", type=int, metavar="…", help="train up to this step instead of the run's last")
    parser.add_argument("--data", type=Path, metavar="FILE", help="where the data is now, if it was moved")
    add_ways_of_showing(parser)
    values = parser.parse(argv)
    loggers.check(values.log)
    folder = Run.open(values.resume)
    done = folder.status
    with folder.claimed():
        config = folder.config
        spec = Spec.from_json(config, folder.folder / "config.json")
        if values.steps is not None:
            spec = replace(spec, training=check(replace(spec.training, steps=values.steps)))
        spec.check()
        if done["state"] == "finished" and done["step"] >= spec.training.steps:
            raise UserError(f"{folder.folder}: finished after {done['step']:,} steps; give more of them with --steps")
        path = values.data or find_data_of(folder, spec, values.quiet)
        dataset = read_data(folder, spec, path)
        digest = fingerprint(dataset)
        experiment = prepare(spec, dataset, path, digest, resumes=True)
        here = about_here() | {"device": device()}
        differs = [name for name in here if name != "commit" and here[name] != config.get(name)]
        resumed = experiment.resume(folder)
        before = config.get("resumed")
        history = [
            *(before if isinstance(before, list) else []),
            {"step": resumed.step, "command": ["edp", "train", *argv], **here},
        ]
        folder.set_config(config | spec.to_json() | {"data_sha256": digest, "resumed": history})
        for damaged in resumed.damaged:
            note(f"{damaged}; the one before it is used")
        if differs:
            note(f"other {' and '.join(differs)} than when it began: the numbers may differ in their last digits")
        return work(experiment, dataset, path, folder, values)


def prepare(spec, dataset, path: Path, digest: str, resumes: bool = False):
    """The experiment, here and in the processes that follow."""
    from edp import distributed
    from edp.experiment import Experiment

    distributed.exchange(
        {"spec": spec.to_json(), "file": str(path.absolute()), "data_sha256": digest, "resumes": resumes}
    )
    return Experiment(spec, dataset)


def follow() -> int:
    """Train seeds of a run that the first process leads, and leave it to that one to write and to print."""
    from edp import distributed
    from edp.data import d4rl
    from edp.evaluate import StoppedError
    from edp.experiment import Experiment, TrainingError, fingerprint
    from edp.run import Elsewhere
    from edp.spec import Spec

    plan, folder = distributed.exchange()[0], Elsewhere()
    spec, path = Spec.from_json(plan["spec"], folder.folder), Path(plan["file"])
    dataset = d4rl.read(path, spec.task.episode_limit, spec.task.episode_return)
    if fingerprint(dataset) != plan["data_sha256"]:
        raise UserError(f"{path}: not the data that the first process has there")
    experiment = Experiment(spec, dataset)
    if plan["resumes"]:
        experiment.resume(folder)
    with Signals(tell=lambda text: None) as stopping:
        try:
            for _ in experiment.run(folder, stopping):
                pass
        except StoppedError:
            return stopping.exit_code
        except TrainingError:
            return EXIT_FAILED
    return EXIT_FAILED if experiment.failed else 0


def work(experiment, dataset, path: Path, folder, values) -> int:
    """Train to the end, show it, and say how it went by the exit code."""
    from edp.cli.display import display, note, result_table
    from edp.evaluate import StoppedError
    from edp.experiment import TrainingError
    from edp.loggers import Loggers

    spec = experiment.spec
    logs = Loggers(values.log, folder.folder, folder.config, note)
    with (
        Signals(tell=note) as stopping,
        display(spec, dataset, path, folder.folder, experiment.step, values.quiet) as show,
    ):
        try:
            for event in experiment.run(folder, stopping):
                show(event)
                logs.log(experiment.step, numbers(event))
        except StoppedError:
            done = f"{experiment.step:,} of {spec.training.steps:,} steps"
            note(f"stopped after {done}; go on with: edp train --resume {folder.folder}")
            return stopping.exit_code
        except TrainingError as error:
            note(f"{error}. Try a smaller --lr. What there was before is kept in {folder.folder}")
            return EXIT_FAILED
        finally:
            logs.close()
    result_table(spec, dataset, folder)
    for seed, why in experiment.failed.items():
        note(f"seed {seed} failed: {why}")
    return EXIT_FAILED if experiment.failed else 0


def numbers(event) -> dict[str, float]:
    """What an event says in numbers, by name, for loggers."""
    from edp.evaluator import Evaluation
    from edp.experiment import Epoch
    from edp.metrics import known_mean

    if isinstance(event, Epoch):
        losses = {f"train/{name}": float(known_mean(values)) for name, values in event.metrics.items()}
        return losses | {"speed/steps_per_second": event.steps_per_second}
    return {"evaluation/score": float(known_mean(event.scores))} if isinstance(event, Evaluation) else {}


class Signals:
    """Ctrl-C and SIGTERM ask to stop; a second Ctrl-C ends at once."""

    def __init__(self, tell: Callable[[str], None]):
        self.number, self.tell = 0, tell

    def __enter__(self) -> "Signals":
        self.before = {number: signal.signal(number, self.ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        return self.number != 0

    def ask(self, number: int, frame: object) -> None:
        if number == signal.SIGINT and self.number:
            raise KeyboardInterrupt
        self.number = number
        self.tell("stopping: finishing the current epoch and writing a checkpoint (Ctrl-C again: stop at once)")

    @property
    def exit_code(self) -> int:
        """For all processes, of which one may have heard the signal."""
        from edp import distributed

        return 128 + max(distributed.exchange(self.number))


def device() -> str:
    import jax

    devices, processes = jax.devices(), jax.process_count()
    return f"{len(devices)} × {devices[0].device_kind}" + f" in {processes} processes" * (processes > 1)
