"""edp eval RUN"""

from dataclasses import replace
from pathlib import Path

from edp.cli.options import Parser, given
from edp.options import check

DESCRIPTION = "Evaluate the policies of a finished run again, and add the result to the run's evaluations."


def main(argv: list[str]) -> int:
    from edp import experiment
    from edp.cli.display import evaluation_table
    from edp.run import Run

    parser = Parser("edp eval", DESCRIPTION, "RUN")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_fields(experiment.EvalOptions, "evaluation (defaults: those of the run)")
    values = parser.parse(argv)
    folder = Run.open(values.run)
    spec, states = experiment.load(folder)
    options = check(replace(spec.evaluation, **given([experiment.EvalOptions], values)))
    evaluation = experiment.Evaluator(spec, options)(states, spec.training.steps, folder, kind="eval")
    evaluation_table(spec, evaluation, options, folder)
    return 0
