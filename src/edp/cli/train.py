"""edp train TASK"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from edp.cli.parser import Parser, add_columns, columns_of, given
from edp.cli.signals import Signals
from edp.errors import UserError
from edp.options import check

DESCRIPTION = """Train a policy on a task's data and evaluate it on the way. The run is kept in a directory of its own.
Values that are not given may be set by the task's domain, the algorithm, the policy or a preset: --print-config shows
each value and where it comes from. Ctrl-C or SIGTERM stop it at the end of the current epoch, with a checkpoint: the
exit code is then 130 or 143, and --resume goes on. The exit code is 1 if a seed became NaN on the way."""
RESUME = "Go on with a run where it stopped, crashed or ended: bit for bit as if nothing had happened."
EXIT_FAILED = 1
STILL = 100_000  # rows that are looked at for a change


def main(argv: list[str]) -> int:
    from edp.training import processes as distributed

    distributed.start()
    with distributed.together():
        return lead(argv) if distributed.leads() else follow()


def lead(argv: list[str]) -> int:
    """What the only process does, or the first of several."""
    if any(word.split("=")[0] == "--resume" for word in argv):
        return resume(argv)

    from edp.algorithms import ALGORITHMS
    from edp.config import choice as build
    from edp.config import defaults
    from edp.data.formats import describe_formats
    from edp.policies import POLICIES

    # Which options there are depends on the algorithm and the policy, so those two are looked at first.
    first = Parser("edp train", DESCRIPTION, add_help=False)
    for name in ("--algo", "--policy", "--preset"):
        first.add_argument(name)
    asked, _ = first.parse_known_args(argv)
    choice = build.choose(asked.algo, asked.policy, asked.preset, {})

    parser = Parser("edp train", DESCRIPTION, "TASK | DATA")
    parser.add_argument(
        "task",
        metavar="TASK | DATA",
        help=f"a task's name (edp data list), or your own data: {describe_formats()}",
    )
    for name, choices in (("--algo", ALGORITHMS), ("--policy", POLICIES), ("--preset", defaults.PRESETS)):
        parser.add_argument(name, metavar="…", help=", ".join(choices))
    parser.add_argument("--data", metavar="DATA", help="read a task's data from here instead of its own file")
    parser.add_argument("--env", metavar="ID", help="evaluate data of your own in this environment (ID or module:ID)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run directory (default: a new one in runs/)")
    parser.add_argument(
        "--resume", type=Path, metavar="RUN", help="go on with a run instead (see edp train --resume RUN -h)"
    )
    add_ways_of_showing(parser)
    parser.add_argument("--print-config", action="store_true", help="print every value and its origin, and stop")
    add_columns(parser)
    for title, cls in choice.groups.items():
        parser.add_fields(cls, title)
    values = parser.parse(argv)
    meaning, ranges = columns_of(values)
    return train(argv, values, choice._replace(given=ranges | given(choice.groups.values(), values)), meaning)


def with_env(spec, given_env: str | None, config: dict, folder):
    """The spec with its environment; one that is the user's own code is made on the user's word alone."""
    trained = (config.get("own_task") or {}).get("env", spec.task.env)
    if given_env and not spec.task.own:
        raise UserError(f"--env is for data of your own, and {spec.task.name} has an environment")
    if given_env:
        from edp.envs.make import import_env

        import_env(given_env)
        return replace(spec, task=replace(spec.task, env=given_env))
    if trained != spec.task.env:
        raise UserError(f"{folder.folder}: was trained with --env {trained}, which is code of your own: give it again")
    return spec


def add_ways_of_showing(parser: Parser) -> None:
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    parser.add_argument(
        "--log",
        type=lambda text: text.split(","),
        default=[],
        metavar="…",
        help="also log to: tensorboard, wandb (comma-separated)",
    )


def train(argv: list[str], values, choice, meaning: dict) -> int:
    from edp.cli.locate import find_data, note
    from edp.cli.tables import print_config
    from edp.config import choice as build
    from edp.data import formats, tasks
    from edp.data.dataset import fingerprint
    from edp.envs.make import import_env
    from edp.runs import loggers
    from edp.runs.directory import Run

    own = values.task not in tasks.TASKS and formats.is_source(values.task)
    if own and values.data:
        raise UserError(f"--data gives a task's data from elsewhere, and {values.task} is data itself")
    if values.env and not own:
        raise UserError(f"--env is for data of your own, and {values.task} has an environment")
    import_env(values.env or "")
    opened = formats.open_log(values.task, meaning) if own else None
    task = tasks.own_task(values.task, opened, values.env or "") if opened else tasks.get(values.task)
    spec = choice.spec(task)
    if values.print_config:
        print_config(choice.groups, choice.resolve(task))
        return 0
    seeds = f"s{spec.training.seed}-{spec.training.seed + spec.training.seeds - 1}"
    title = task.name.replace("/", "-").replace(":", "-")
    name = "_".join([title, choice.algorithm, choice.policy, seeds, time.strftime("%Y%m%d-%H%M%S")])
    out = values.out or Path("runs") / name
    Run.check_free(out)
    loggers.check(values.log)
    place = values.task if own else values.data or str(find_data(task, values.quiet))
    built = build.build(choice, task, opened or formats.open_log(place, meaning, task.episode_limit))
    warn(built, note)
    place = formats.absolute(place)
    digest = fingerprint(built.dataset)
    experiment = prepare(built.spec, built.dataset, place, meaning, digest)
    about = {
        "file": place,
        "columns": meaning,
        "data_sha256": digest,
        "regenerated": bool(built.dataset.regenerated),
        "command": ["edp", "train", *argv],
        "device": device(),
        "origins": built.origins,
    }
    with Run(out).claimed():
        folder = Run.create(out, built.spec.to_json() | about)
        return work(experiment, built.dataset, place, folder, values)


def warn(built, note: Callable[[str], None]) -> None:
    """What is no mistake, but may not be what was meant."""
    reward, name = built.dataset.reward, type(built.spec.algorithm).__name__
    if built.spec.task.own and reward.min() == reward.max() and name != "BC":
        note(f"every reward is {reward[0]:g}: nothing tells good actions from bad ones (--algo bc learns to imitate)")
    still = (built.dataset.obs[:STILL].max(axis=0) - built.dataset.obs[:STILL].min(axis=0) < 1e-3).sum()
    if built.spec.task.own and still and built.spec.data.normalise != "none":
        note(f"{still} of the observations hardly change, and tell the policy nothing (edp data check says which)")


def resume(argv: list[str]) -> int:
    """Go on with a run as if it had never stopped."""
    from edp.cli.locate import find_data_of, note
    from edp.config.spec import Spec
    from edp.data import formats
    from edp.data.dataset import fingerprint
    from edp.runs import loggers
    from edp.runs.directory import Run, about_here
    from edp.runs.load import read_data

    parser = Parser("edp train", RESUME, "--resume RUN")
    parser.add_argument("--resume", type=Path, required=True, metavar="RUN", help="a run directory")
    parser.add_argument("--steps", type=int, metavar="…", help="train up to this step instead of the run's last")
    parser.add_argument("--data", metavar="DATA", help="where the data is now, if it was moved")
    parser.add_argument("--env", metavar="ID", help="the environment, if it is one of your own (module:ID)")
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
        spec = with_env(spec.check(), values.env, config, folder)
        if done["state"] == "finished" and done["step"] >= spec.training.steps:
            raise UserError(f"{folder.folder}: finished after {done['step']:,} steps; give more of them with --steps")
        place = formats.absolute(values.data or find_data_of(folder, spec, values.quiet))
        dataset = read_data(folder, spec, place)
        digest = fingerprint(dataset)
        experiment = prepare(spec, dataset, place, config.get("columns") or {}, digest, resumes=True)
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
        return work(experiment, dataset, place, folder, values)


def prepare(spec, dataset, place: str, meaning: dict, digest: str, resumes: bool = False):
    """The experiment, here and in the processes that follow."""
    from edp.training import processes as distributed
    from edp.training.loop import Experiment

    plan = {"spec": spec.to_json(), "env": spec.task.env, "file": place, "columns": meaning, "data_sha256": digest}
    distributed.exchange(plan | {"resumes": resumes})
    return Experiment(spec, dataset)


def follow() -> int:
    """Train seeds of a run that the first process leads, and leave it to that one to write and to print."""
    from edp.acting.rollout import StoppedError
    from edp.config.spec import Spec
    from edp.envs.make import import_env
    from edp.runs.directory import Elsewhere
    from edp.runs.load import read_data
    from edp.training import processes as distributed
    from edp.training.loop import Experiment, TrainingError

    plan = distributed.exchange()[0]
    folder = Elsewhere(plan)
    spec = Spec.from_json(plan["spec"], folder.folder)
    import_env(plan["env"])
    spec = replace(spec, task=replace(spec.task, env=plan["env"]))
    experiment = Experiment(spec, read_data(folder, spec, plan["file"]))
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


def work(experiment, dataset, place: str, folder, values) -> int:
    """Train to the end, show it, and say how it went by the exit code."""
    from edp.acting.rollout import StoppedError
    from edp.cli.display import display
    from edp.cli.locate import note
    from edp.cli.tables import result_table
    from edp.runs.loggers import Loggers
    from edp.training.loop import TrainingError

    spec = experiment.spec
    logs = Loggers(values.log, folder.folder, folder.config, note)
    with (
        Signals(tell=note) as stopping,
        display(spec, dataset, place, folder.folder, experiment.step, values.quiet) as show,
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
    from edp.acting.evaluator import Evaluation
    from edp.acting.validation import Validation
    from edp.runs.scores import known_mean
    from edp.training.loop import Epoch

    if isinstance(event, Epoch):
        losses = {f"train/{name}": float(known_mean(values)) for name, values in event.metrics.items()}
        return losses | {"speed/steps_per_second": event.steps_per_second}
    if isinstance(event, Validation):
        return {f"validation/{name}": float(known_mean(values)) for name, values in event.metrics.items()}
    return {"evaluation/score": float(known_mean(event.scores))} if isinstance(event, Evaluation) else {}


def device() -> str:
    import jax

    devices, processes = jax.devices(), jax.process_count()
    return f"{len(devices)} × {devices[0].device_kind}" + f" in {processes} processes" * (processes > 1)
