"""edp train TASK"""

import time
from pathlib import Path

from edp.cli.options import Parser, given
from edp.errors import unknown

DESCRIPTION = """Train a policy on a task's data and evaluate it on the way. The run is kept in a directory of its own.
Values that are not given may be set by the task's domain, the algorithm, the policy or a preset: --print-config shows
each value and where it comes from."""


def main(argv: list[str]) -> int:
    from edp import settings
    from edp.algorithms import ALGORITHMS
    from edp.experiment import DataOptions, EvalOptions, TrainOptions
    from edp.policies import POLICIES

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
    parser.add_argument("--quiet", action="store_true", help="print the result only")
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


def train(argv: list[str], values, algorithm: str, policy: str, groups: dict[str, type]) -> int:
    from edp import settings
    from edp.cli.display import display, find_data, print_config, result_table
    from edp.data import d4rl, tasks
    from edp.experiment import Experiment, Spec
    from edp.run import Run

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
    path = values.data or find_data(task, values.quiet)
    dataset = d4rl.read(path, task.episode_limit, task.episode_return)
    experiment = Experiment(spec, dataset)
    about = {
        "file": str(path),
        "regenerated": bool(dataset.regenerated),
        "command": ["edp", "train", *argv],
        "device": device(),
        "origins": {name: setting.origin for name, setting in resolved.origins.items()},
    }
    folder = Run.create(out, spec.to_json() | about)
    with display(spec, dataset, path, folder.folder, values.quiet) as show:
        for event in experiment.run(folder):
            show(event)
    result_table(spec, dataset, folder)
    return 0


def device() -> str:
    import jax

    devices = jax.devices()
    return f"{len(devices)} × {devices[0].device_kind}"
