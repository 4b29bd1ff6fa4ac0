"""edp eval RUN"""

import json
from dataclasses import replace
from pathlib import Path

from edp.cli.parser import Parser, add_overwrite, flag, given_options
from edp.errors import UserError, counted, printable

DESCRIPTION = """Evaluate the policies of a run, finished or running, and add the result to the run's evaluations. The
exit code is 1 if all episodes failed."""
EXIT_FAILED = 1


def main(argv: list[str]) -> int:
    import numpy as np

    from edp.acting import video
    from edp.acting.evaluator import Evaluator
    from edp.acting.judge import JudgeOptions
    from edp.cli.locate import load_noting
    from edp.cli.offline import judge_run
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
    parser.add_argument("--checkpoint", metavar="…", help="a step, best or offline (default: the last one)")
    parser.add_fields(EvalOptions, "evaluation (defaults: those of the run)")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="judge the checkpoints by the log alone: better or worse than what was recorded?",
    )
    parser.add_argument("--data", metavar="DATA", help="where the data is now, if it was moved (--offline)")
    parser.add_argument("--env", metavar="ID", help="environment of a run on your own data (ID or module:ID)")
    parser.add_fields(JudgeOptions, "verdicts from the log (--offline)")
    values = parser.parse(argv)
    if values.offline:
        return judge_run(values)
    needless = [
        flag(name) for name in ("data", *given_options([JudgeOptions], values)) if getattr(values, name) is not None
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
