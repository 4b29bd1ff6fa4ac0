"""edp eval RUN"""

import json
from dataclasses import asdict, replace
from pathlib import Path

from edp.cli.parser import Parser, add_overwrite, flag, given_options
from edp.errors import UserError, counted, printable
from edp.options import check_options

DESCRIPTION = """Evaluate the policies of a run, finished or running, and add the result to the run's evaluations. The
exit code is 1 if all episodes failed."""
EXIT_FAILED = 1


def main(argv: list[str]) -> int:
    import numpy as np

    from edp.acting import video
    from edp.acting.evaluator import Evaluator
    from edp.acting.fqe import FQEOptions
    from edp.cli.locate import load_noting
    from edp.cli.results import print_evaluation
    from edp.config.spec import EvalOptions
    from edp.runs.directory import Run
    from edp.runs.load import with_environment

    parser = Parser("edp eval", DESCRIPTION, "RUN")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument(
        "--video", type=Path, metavar="FILE", help="record a video of an episode of the first seed (.gif, .mp4)"
    )
    add_overwrite(parser)
    parser.add_argument("--checkpoint", metavar="…", help="a step, best or fqe (default: the last one)")
    parser.add_fields(EvalOptions, "evaluation (defaults: those of the run)")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="estimate the values of the checkpoints from the data, without an environment",
    )
    parser.add_argument("--data", metavar="DATA", help="where the data is now, if it was moved (--offline)")
    parser.add_argument("--env", metavar="ID", help="environment of a run on your own data (ID or module:ID)")
    parser.add_fields(FQEOptions, "fitted Q evaluation (--offline)")
    values = parser.parse(argv)
    if values.offline:
        return value_offline(values)
    needless = [
        flag(name) for name in ("data", *given_options([FQEOptions], values)) if getattr(values, name) is not None
    ]
    if needless:
        raise UserError(f"{needless[0]} is for --offline")
    run = Run.open(values.run)
    spec, found = load_noting(run, values.checkpoint)
    spec = with_environment(spec, values.env or "", run)
    if not spec.task.env:
        raise UserError(f"{run.folder}: has no environment to evaluate in: give one with --env, or use --offline")
    if values.video:
        video.check_video_path(values.video, values.overwrite)
    camera = video.filmed_env(spec.task.env, **json.loads(spec.task.env_options)) if values.video else None
    options = spec.evaluation.with_values(**given_options([EvalOptions], values))
    evaluation = Evaluator(spec, options)(found.tree, found.step, run, "eval", failed=found.failed)
    print_evaluation(spec, evaluation, options, run)
    if camera:
        film(spec, found, options, camera, values.video)
    return EXIT_FAILED if np.isnan(evaluation.scores).all() else 0


def value_offline(values) -> int:
    """Value the checkpoints of a run by fitted Q evaluation, and show the values beside the scores."""
    from edp.acting import fqe
    from edp.acting.actors import Actors
    from edp.cli.locate import find_file
    from edp.cli.progress import counting, note
    from edp.cli.results import print_offline_values
    from edp.config.spec import EvalOptions, acting_sampler
    from edp.runs import load
    from edp.runs.checkpoints import Checkpoints
    from edp.runs.directory import Run
    from edp.runs.rows import finite_or_none

    run = Run.open(values.run)
    spec = load.read_spec(run)
    load.check_config(run, spec)
    if spec.policy.reads_histories:
        raise UserError(
            "--offline is for policies that act on the current observation, and a transformer reads histories"
        )
    if values.video:
        raise UserError("--video shows an environment, and --offline has none")
    options = spec.evaluation.with_values(**given_options([EvalOptions], values))
    fqe_options = check_options(fqe.FQEOptions(**given_options([fqe.FQEOptions], values)))
    acting_sampler(spec.algorithm, spec.policy, options)  # refuses wrong options before the data is read
    steps = Checkpoints(run.checkpoints).steps() or [None]  # a run of schema 2 has one without a step
    if values.checkpoint is not None:
        steps = [load.load_checkpoint(run, values.checkpoint)[1].step]
    data = load.read_run_data(run, spec, values.data or load.locate_run_data(run, spec, find_file))
    problem, rows = fqe.prepare_problem(data, fqe_options), []
    with counting("checkpoints valued", len(steps)) as advance:
        for done, step in enumerate(steps, 1):
            try:
                _, found = load.load_checkpoint(run, step)
            except UserError as error:  # damaged, or removed by training that is still running
                note(str(error))
                continue
            value = fqe.value_policies(Actors.from_states(spec, options, found.tree), problem, fqe_options)
            value = finite_or_none(value.tolist())
            row = {"step": found.step, "values": value, "options": asdict(options) | asdict(fqe_options)}
            run.log_offline(row)
            rows.append(row)
            advance(done)
    if not rows:
        raise UserError(f"{run.folder}: no checkpoint of it can be used")
    print_offline_values(spec, rows, run)
    return 0


def film(spec, found, options, env, path: Path) -> None:
    """Play the first episode of the first seed again, and write its video."""
    import jax

    from edp.acting import video
    from edp.acting.evaluator import Evaluator
    from edp.acting.rollout import Pool

    one = replace(spec, training=replace(spec.training, seeds=1))
    evaluator = Evaluator(one, replace(options, episodes=1))
    evaluator.pools = [Pool(lambda: env, 1)]
    states = jax.tree.map(lambda leaf: leaf[:1], found.tree)
    rolled = evaluator.roll_out(states, first_start=evaluator.first_start(found.step))
    video.write_video(path, env)
    score = spec.task.score(rolled.returns[0, 0])
    print(printable(f"{path}: {counted(rolled.lengths[0, 0], 'step')}, {spec.task.measure} {score:.1f}"))
