"""edp train TASK"""

import time
from pathlib import Path

from edp.cli.options import Parser, build
from edp.errors import unknown

DESCRIPTION = "Train a policy on a task's data and evaluate it on the way. The run is kept in a directory of its own."


def main(argv: list[str]) -> int:
    from edp.algorithms import ALGORITHMS
    from edp.experiment import EvalOptions, TrainOptions
    from edp.policies import POLICIES

    # Which options there are depends on the algorithm and the policy, so those two are looked at first.
    parser = Parser("edp train", DESCRIPTION, add_help=False)
    parser.add_argument("--algo", default="td3bc")
    parser.add_argument("--policy", default="diffusion")
    chosen, _ = parser.parse_known_args(argv)
    if chosen.algo not in ALGORITHMS:
        raise unknown("algorithm", chosen.algo, ALGORITHMS)
    if chosen.policy not in POLICIES:
        raise unknown("policy", chosen.policy, POLICIES)
    algorithm, policy = ALGORITHMS[chosen.algo], POLICIES[chosen.policy]

    parser = Parser("edp train", DESCRIPTION, "TASK")
    parser.add_argument("task", metavar="TASK", help="a task's name (edp data list)")
    parser.add_argument(
        "--algo", default="td3bc", metavar="…", help=f"algorithm: {', '.join(ALGORITHMS)} (default: td3bc)"
    )
    parser.add_argument(
        "--policy", default="diffusion", metavar="…", help=f"policy: {', '.join(POLICIES)} (default: diffusion)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FILE", help="read this D4RL-format HDF5 file instead of the task's own"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run directory (default: a new one in runs/)")
    parser.add_argument(
        "--eval-every", type=int, default=10_000, metavar="…", help="steps between evaluations (default: 10000)"
    )
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    parser.add_fields(TrainOptions, "training")
    parser.add_fields(EvalOptions, "evaluation")
    parser.add_fields(algorithm, f"algorithm {chosen.algo}")
    parser.add_fields(policy, f"policy {chosen.policy}")
    values = parser.parse(argv)
    parts = (build(cls, values) for cls in (algorithm, policy, TrainOptions, EvalOptions))
    return train(argv, values, *parts)


def train(argv: list[str], values, algorithm, policy, training, evaluation) -> int:
    from edp.cli.display import display, find_data, result_table
    from edp.data import d4rl, tasks
    from edp.errors import UserError
    from edp.experiment import Experiment, Spec
    from edp.run import Run

    if values.eval_every < 1:
        raise UserError(f"--eval-every must be at least 1, not {values.eval_every}")
    task = tasks.get(values.task)
    seeds = f"s{training.seed}-{training.seed + training.seeds - 1}"
    name = "_".join([task.name.replace("/", "-"), values.algo, values.policy, seeds, time.strftime("%Y%m%d-%H%M%S")])
    out = values.out or Path("runs") / name
    Run.check_free(out)
    path = values.data or find_data(task, values.quiet)
    dataset = d4rl.read(path, task.episode_limit)
    spec = Spec(task, algorithm, policy, training, evaluation, values.eval_every)
    experiment = Experiment(spec, dataset)
    config = spec.to_json() | {"data": str(path), "command": ["edp", "train", *argv], "device": device()}
    folder = Run.create(out, config)
    with display(spec, dataset, path, folder.folder, values.quiet) as show:
        for event in experiment.run(folder):
            show(event)
    result_table(spec, dataset, folder)
    return 0


def device() -> str:
    import jax

    devices = jax.devices()
    return f"{len(devices)} × {devices[0].device_kind}"
