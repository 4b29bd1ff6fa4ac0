"""edp eval RUN"""

from pathlib import Path

from edp.cli.options import Parser, build

DESCRIPTION = "Evaluate the policies of a finished run again, and add the result to the run's evaluations."


def main(argv: list[str]) -> int:
    from edp import experiment
    from edp.cli.display import evaluation_table
    from edp.run import Run

    parser = Parser("edp eval", DESCRIPTION)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--env-seed", type=int, default=0, metavar="…", help="seed of the first episode (default: 0)")
    parser.add_fields(experiment.EvalOptions, "evaluation")
    values = parser.parse(argv)
    options = build(experiment.EvalOptions, values)
    folder = Run.open(values.run)
    spec, states = experiment.load(folder)
    evaluation = experiment.Evaluator(spec, options)(states, spec.training.steps, folder, values.env_seed)
    evaluation_table(spec, evaluation, options)
    return 0
