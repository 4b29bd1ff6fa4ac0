"""edp eval RUN"""

import json
from dataclasses import asdict, replace
from pathlib import Path

from edp.cli.parser import Parser, given
from edp.errors import UserError
from edp.options import check, flag

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
    from edp.cli.train import with_env
    from edp.config.spec import EvalOptions
    from edp.runs.directory import Run

    parser = Parser("edp eval", DESCRIPTION, "RUN")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--video", type=Path, metavar="FILE", help="film an episode of the first seed (.gif, .mp4)")
    parser.add_argument("--checkpoint", metavar="…", help="a step, best or fqe (default: the last one)")
    parser.add_fields(EvalOptions, "evaluation (defaults: those of the run)")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="no environment: value the checkpoints from the data alone",
    )
    parser.add_argument("--data", metavar="DATA", help="where the data is now, if it was moved (--offline)")
    parser.add_argument("--env", metavar="ID", help="of a run on data of your own: the environment (ID or module:ID)")
    parser.add_fields(FQEOptions, "fitted Q evaluation (--offline)")
    values = parser.parse(argv)
    if values.offline:
        return value_offline(values)
    needless = [flag(name) for name in ("data", *given([FQEOptions], values)) if getattr(values, name) is not None]
    if needless:
        raise UserError(f"{needless[0]} is for --offline")
    folder = Run.open(values.run)
    spec, found = load_noting(folder, values.checkpoint)
    spec = with_env(spec, values.env, folder.config, folder)
    if not spec.task.env:
        raise UserError(
            f"{folder.folder}: has no environment to evaluate in: give one with --env, or value it with --offline"
        )
    if values.video:
        video.check_path(values.video)
    camera = video.filmed_env(spec.task.env, **json.loads(spec.task.env_options)) if values.video else None
    options = check(replace(spec.evaluation, **given([EvalOptions], values)))
    evaluation = Evaluator(spec, options)(found.tree, found.step, folder, "eval", failed=found.failed)
    print_evaluation(spec, evaluation, options, folder)
    if camera:
        film(spec, found.tree, options, camera, values.video)
    return EXIT_FAILED if np.isnan(evaluation.scores).all() else 0


def value_offline(values) -> int:
    """Fitted Q evaluation of the checkpoints of a run, beside their scores where there are any."""
    from edp.acting import fqe
    from edp.acting.evaluator import actors, without_nan
    from edp.cli.locate import counting, find_data_of, note
    from edp.cli.results import print_offline_values
    from edp.config.spec import EvalOptions, Spec, check_acting
    from edp.runs import load
    from edp.runs.checkpoints import Checkpoints
    from edp.runs.directory import Run

    folder = Run.open(values.run)
    spec = Spec.from_json(folder.config, folder.folder / "config.json")
    if spec.policy.reads_histories:
        raise UserError("--offline is for policies that act on what they see now, and a transformer reads histories")
    if values.video:
        raise UserError("--video shows an environment, and --offline has none")
    options = check(replace(spec.evaluation, **given([EvalOptions], values)))
    fqe_options = check(fqe.FQEOptions(**given([fqe.FQEOptions], values)))
    sampler = check_acting(spec, options)
    steps = Checkpoints(folder.checkpoints).steps() or [None]  # an old run has one without a number
    if values.checkpoint is not None:
        steps = [load.load(folder, values.checkpoint)[1].step]
    data = load.read_data(folder, spec, values.data or find_data_of(folder, spec))
    problem, rows = fqe.prepare(data, fqe_options), []
    with counting("checkpoints valued", len(steps)) as advance:
        for done, step in enumerate(steps, 1):
            try:
                _, found = load.load(folder, step)
            except UserError as error:  # damaged, or removed by a training that goes on
                note(str(error))
                continue
            models = actors(found.tree, options.act_with, sampler)
            value = without_nan(fqe.evaluate(*models, problem, fqe_options, options.way, options.eas).tolist())
            row = {"step": found.step, "values": value, "options": asdict(options) | asdict(fqe_options)}
            folder.log_offline(row)
            rows.append(row)
            advance(done)
    if not rows:
        raise UserError(f"{folder.folder}: no checkpoint of it can be used")
    print_offline_values(spec, rows, folder)
    return 0


def film(spec, states, options, env, path: Path) -> None:
    """The first episode of the first seed, as it was evaluated."""
    import jax

    from edp.acting import video
    from edp.acting.evaluator import Evaluator
    from edp.acting.rollout import Pool

    one = replace(spec, training=replace(spec.training, seeds=1))
    evaluator = Evaluator(one, replace(options, episodes=1))
    evaluator.pools = [Pool(lambda: env, 1)]
    rolled = evaluator.roll_out(jax.tree.map(lambda leaf: leaf[:1], states))
    video.write(path, env)
    score = spec.task.score(rolled.returns[0, 0])
    print(f"{path}: {rolled.lengths[0, 0]} steps, {spec.task.measure} {score:.1f}")
