"""edp compare RUN RUN …"""

from pathlib import Path

from edp.cli.parser import Parser
from edp.errors import UserError

DESCRIPTION = """Compare runs by their last ten evaluations: the interquartile mean of each method, and for each pair
the probability that one beats the other, with 95 % stratified bootstrap intervals over seeds (rliable's definitions).
Runs of the same algorithm and policy are put together, over tasks and seeds; if all are the same, each stands alone."""


def main(argv: list[str]) -> int:
    parser = Parser("edp compare", DESCRIPTION, "RUN RUN …")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run directories")
    parser.add_argument("--by", choices=("rat", "oms"), default="rat", help="the last ten evaluations, or the best one")
    values = parser.parse(argv)

    from edp.cli.tables import comparison_tables
    from edp.runs.directory import Run

    comparison_tables(*group([Run.open(path) for path in values.runs], values.by))
    return 0


def group(runs: list, by: str) -> tuple[dict, int]:
    """The scores of each method, (seeds, tasks), and the fewest episodes of an evaluation; all have the same tasks."""
    import numpy as np

    from edp.cli.progress import note
    from edp.runs import scores as metrics

    scores: dict[str, dict[str, list]] = {}
    episodes = []
    methods = {run.folder: f"{run.config['algorithm']['name']} + {run.config['policy']['name']}" for run in runs}
    alone = len(set(methods.values())) == 1
    for run in runs:
        rows = run.training_evaluations()
        if not rows:
            raise UserError(f"{run.folder}: no evaluations in it yet")
        method = run.folder.name if alone else methods[run.folder]
        scores.setdefault(method, {}).setdefault(run.title, []).extend(
            score for score in getattr(metrics.curve(rows), by) if not np.isnan(score)
        )
        if np.isnan(getattr(metrics.curve(rows), by)).any():
            note(f"{run.folder}: seeds that failed are left out")
        episodes.append(metrics.curve(rows).episodes)
    tasks = sorted({task for own in scores.values() for task in own})
    for method, own in scores.items():
        missing = [task for task in tasks if task not in own]
        if missing:
            raise UserError(f"{method} has no run on {missing[0]}: compare methods on the same tasks")
        if len({len(own[task]) for task in tasks}) > 1:
            raise UserError(f"{method} has different numbers of seeds on its tasks")
    return {method: np.array([own[task] for task in tasks]).T for method, own in scores.items()}, min(episodes)
