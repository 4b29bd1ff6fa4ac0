"""edp compare RUN RUN …"""

from pathlib import Path
from typing import TYPE_CHECKING

from edp.cli.parser import Parser
from edp.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from edp.report.collect import Entry

DESCRIPTION = """Compare runs by their last ten evaluations: the interquartile mean of each method, and for each pair
the probability that one beats the other, with 95 % stratified bootstrap intervals over seeds (rliable's definitions).
Runs of the same algorithm and policy are one method, over tasks and seeds. If there is only one method, each run is
compared separately. Runs without an environment are compared by their verdicts (edp eval RUN --offline)."""


def main(argv: list[str]) -> int:
    parser = Parser("edp compare", DESCRIPTION, "RUN RUN …")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run directories")
    parser.add_argument("--by", choices=("rat", "oms"), default="rat", help="the last ten evaluations, or the best one")
    values = parser.parse(argv)

    from edp.cli.progress import note

    entries = [read_entry(path) for path in values.runs]
    if all(entry.curve is None for entry in entries):
        from edp.cli.offline import compare_offline

        compare_offline(entries)
        return 0
    methods, episodes = scores_by_method(entries, values.by)
    for entry in entries:
        for text in entry.log_notes:
            note(f"{entry.folder}: {text}")
    print_comparison(methods, episodes)
    return 0


def read_entry(folder: Path) -> "Entry":
    """Read the scores of a run."""
    from edp.report.collect import DAMAGE, damage_text, summarise
    from edp.runs.directory import Run

    try:
        return summarise(Run.open(folder))
    except DAMAGE as error:
        raise UserError(f"{folder}: {damage_text(folder, error)}") from None


def scores_by_method(entries: "list[Entry]", measure: str) -> "tuple[dict[str, np.ndarray], int]":
    """Return the scores of each method, (seeds, tasks), and the lowest number of episodes in an evaluation.

    All methods must have runs on the same tasks.
    """
    import numpy as np

    from edp.cli.progress import note

    scores: dict[str, dict[str, list]] = {}
    episodes = []
    alone = len({entry.method for entry in entries}) == 1
    for entry in entries:
        if entry.curve is None:
            raise UserError(f"{entry.folder}: no evaluations in it yet")
        seeds = getattr(entry.curve, measure)
        method = entry.folder.name if alone else entry.method
        scores.setdefault(method, {}).setdefault(entry.task, []).extend(seeds[~np.isnan(seeds)])
        if np.isnan(seeds).any():
            note(f"{entry.folder}: seeds that failed are left out")
        episodes.append(entry.curve.episodes)
    tasks = sorted({task for by_task in scores.values() for task in by_task})
    for method, by_task in scores.items():
        missing = [task for task in tasks if task not in by_task]
        if missing:
            raise UserError(f"{method} has no run on {missing[0]}: compare methods on the same tasks")
        if len({len(by_task[task]) for task in tasks}) > 1:
            raise UserError(f"{method} has different numbers of seeds on its tasks")
    methods = {method: np.array([by_task[task] for task in tasks]).T for method, by_task in scores.items()}
    return methods, min(episodes)


def print_comparison(methods: "dict[str, np.ndarray]", episodes: int) -> None:
    """Print the IQM of each method, and for each pair the probability that one is better."""
    from rich.console import Console
    from rich.table import Table

    from edp.cli.terminal import shown
    from edp.report.statistics import bootstrap_interval, cautions, iqm, mean_interval

    console, names = Console(), list(methods)
    table = Table("method", "IQM", "mean over seeds", "seeds × tasks")
    for name, scores in methods.items():
        mean, size = mean_interval(scores.mean(axis=1)), f"{scores.shape[0]} × {scores.shape[1]}"
        table.add_row(shown(name), str(bootstrap_interval(iqm, scores)), str(mean), size)
    console.print(table)
    if len(names) > 1:
        pairs = Table("is better than", *map(shown, names))
        for first in names:
            cells = ["" if first == second else improvement_text(methods[first], methods[second]) for second in names]
            pairs.add_row(shown(first), *cells)
        console.print(pairs)
    for caution in cautions(min(len(scores) for scores in methods.values()), episodes):
        console.print(f"caution: {caution}", highlight=False)


def improvement_text(first: "np.ndarray", second: "np.ndarray") -> str:
    from edp.report.statistics import bootstrap_interval, probability_of_improvement

    interval = bootstrap_interval(probability_of_improvement, first, second)
    return f"{interval.value:.0%} [{interval.low:.0%}, {interval.high:.0%}]"
