"""edp eval RUN"""

from dataclasses import replace
from pathlib import Path

from edp.cli.options import Parser, given
from edp.options import check

DESCRIPTION = "Evaluate the policies of a run, finished or running, and add the result to the run's evaluations."


def main(argv: list[str]) -> int:
    from edp import experiment, video
    from edp.cli.display import evaluation_table
    from edp.evaluator import Evaluator
    from edp.run import Run
    from edp.spec import EvalOptions

    parser = Parser("edp eval", DESCRIPTION, "RUN")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--video", type=Path, metavar="FILE", help="film an episode of the first seed (.gif, .mp4)")
    parser.add_argument("--checkpoint", metavar="…", help="a step, or best (default: the last one)")
    parser.add_fields(EvalOptions, "evaluation (defaults: those of the run)")
    values = parser.parse(argv)
    folder = Run.open(values.run)
    spec, found = experiment.load(folder, values.checkpoint)
    if values.video:
        video.check_path(values.video)
    camera = video.filmed_env(spec.task.env) if values.video else None
    options = check(replace(spec.evaluation, **given([EvalOptions], values)))
    evaluation = Evaluator(spec, options)(found.tree, found.step, folder, "eval", failed=found.failed)
    evaluation_table(spec, evaluation, options, folder)
    if camera:
        film(spec, found.tree, options, camera, values.video)
    return 0


def film(spec, states, options, env, path: Path) -> None:
    """The first episode of the first seed, as it was evaluated."""
    import jax

    from edp import video
    from edp.evaluate import Pool
    from edp.evaluator import Evaluator

    one = replace(spec, training=replace(spec.training, seeds=1))
    evaluator = Evaluator(one, replace(options, episodes=1))
    evaluator.pools = [Pool(lambda: env, 1)]
    rolled = evaluator.roll_out(jax.tree.map(lambda leaf: leaf[:1], states))
    video.write(path, env)
    score = spec.task.score(rolled.returns[0, 0])
    print(f"{path}: {rolled.lengths[0, 0]} steps, score {score:.1f}")
