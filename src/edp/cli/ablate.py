"""edp ablate NAME RUN"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from edp.cli.options import Parser, given
from edp.errors import UserError, unknown


class Ablation(NamedTuple):
    option: str  # of acting, that is varied
    values: tuple[Any, ...]
    label: str


ABLATIONS = {
    "eas": Ablation("eas", (1, 2, 4, 10, 20, 50, 100, 200), "actions that EAS chooses from"),
    "calls": Ablation("act_calls", (3, 5, 8, 10, 12, 15, 20, 25, 30), "network calls of the sampler"),
    "scale": Ablation("policy_scale", (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0), "factor of the network's output"),
    "noise": Ablation("initial_noise", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), "factor of the initial noise"),
}

DESCRIPTION = f"""The paper's ablations of acting, on a finished run: evaluate it over a range of one option, the others
as in the run or as given. Writes NAME.json and NAME.png in the run's folder ablations/.
Names: {", ".join(ABLATIONS)}."""


def main(argv: list[str]) -> int:
    from edp import experiment

    parser = Parser("edp ablate", DESCRIPTION, "NAME RUN")
    parser.add_argument("name", metavar="NAME", help=", ".join(ABLATIONS))
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_fields(experiment.EvalOptions, "evaluation (defaults: those of the run)")
    values = parser.parse(argv)
    if values.name not in ABLATIONS:
        raise unknown("ablation", values.name, ABLATIONS)
    ablation = ABLATIONS[values.name]
    chosen = given([experiment.EvalOptions], values)
    if ablation.option in chosen:
        raise UserError(f"edp ablate {values.name} varies that option itself: leave it out")

    from edp.cli.display import evaluation_line
    from edp.options import check
    from edp.run import Run, write_json

    folder = Run.open(values.run)
    spec, states = experiment.load(folder)
    options = [check(replace(spec.evaluation, **chosen, **{ablation.option: value})) for value in ablation.values]
    for one in options:
        experiment.check_acting(spec, one)
    scores = []
    for value, one in zip(ablation.values, options, strict=True):
        evaluation = experiment.Evaluator(spec, one)(
            states, spec.training.steps, folder, kind=f"ablation {values.name}"
        )
        scores.append(evaluation.scores)
        print(evaluation_line(evaluation, f"{ablation.label}: {value:<4g}"), flush=True)
    out = folder.folder / "ablations" / f"{values.name}.json"
    out.parent.mkdir(exist_ok=True)
    result = {
        "run": str(folder.folder),
        "task": folder.title,
        "option": ablation.option,
        "label": ablation.label,
        "values": ablation.values,
        "scores": [experiment.without_nan(rows) for rows in scores],
    }
    write_json(out, result)
    picture(result, out.with_suffix(".png"))
    print(out)
    return 0


def picture(result: dict[str, Any], path: Path) -> None:
    """Scores over the option: each seed, and their mean."""
    try:
        import matplotlib
    except ImportError:
        print("(for a picture as well: pip install matplotlib)")
        return
    import numpy as np

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    means = np.nanmean(np.array(result["scores"], float), axis=2)  # (values, seeds)
    places = np.arange(len(means))
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(places, means, color="0.7", linewidth=1)
    axes.plot(places, means.mean(axis=1), marker="o", color="C0", label=f"mean over {means.shape[1]} seed(s)")
    axes.set_xticks(places, [f"{value:g}" for value in result["values"]])
    axes.set(xlabel=result["label"], ylabel="normalised score", title=result["task"])
    axes.set_ylim(bottom=min(0, np.nanmin(means)))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(path)
