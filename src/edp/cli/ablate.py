"""edp ablate NAME RUN, edp ablate NAME TASK"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from edp.cli.parser import Parser, add_columns, add_overwrite, columns_of, given_options
from edp.errors import UserError, printable, unknown


class Acting(NamedTuple):
    """An ablation that evaluates one run over a range of values of one option of acting."""

    option: str
    values: tuple[Any, ...]
    label: str


class Training(NamedTuple):
    """An ablation that trains several runs, which differ in some options of training."""

    variants: dict[str, list[str]]
    label: str


ACTING = {
    "eas": Acting("eas", (1, 2, 4, 10, 20, 50, 100, 200), "actions that EAS chooses from"),
    "calls": Acting("act_calls", (3, 5, 8, 10, 12, 15, 20, 25, 30), "network calls of the sampler"),
    "scale": Acting("policy_scale", (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0), "factor of the network's output"),
    "noise": Acting("initial_noise", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), "factor of the initial noise"),
}
K100 = ["--sampler", "ddpm", "--calls", "0", "--diffusion-steps", "100"]
FEED_FORWARD = ["--policy", "deterministic"]
TRAINING = {
    "approximation": Training(
        {
            "approximated action": [*K100, "--train-action", "approximate"],
            "full chain": [*K100, "--train-action", "chain"],
        },
        "how the policy's action is made in training (K = 100)",
    ),
    "network": Training(
        {
            "feed-forward": [*FEED_FORWARD, "--hidden", "256,256,256"],
            "twice as wide": [*FEED_FORWARD, "--hidden", "512,512,512"],
        },
        "the policy's network",
    ),
}

DESCRIPTION = f"""The paper's ablations, each with its data and a picture.
On a trained run ({", ".join(ACTING)}): evaluate it over a range of one option of acting, the others as in the run or as
given; NAME.json and NAME.png go to the run's folder ablations/.
On a task or your own data ({", ".join(TRAINING)}): train each variant with the options of edp train that are given, in
--out DIR, and compare them. Finished runs are used as they are, and unfinished ones are resumed."""


def main(argv: list[str]) -> int:
    first = Parser("edp ablate", DESCRIPTION, "NAME RUN|TASK", add_help=False)
    first.add_argument("name", nargs="?")
    name = first.parse_known_args(argv)[0].name
    if name in TRAINING:
        return ablate_training(argv, TRAINING[name])
    if name is not None and name not in ACTING:
        raise unknown("ablation", name, [*ACTING, *TRAINING])
    return ablate_acting(argv)


def ablate_acting(argv: list[str]) -> int:
    from edp.config.spec import EvalOptions, acting_sampler

    parser = Parser("edp ablate", DESCRIPTION, "NAME RUN")
    parser.add_argument("name", metavar="NAME", help=", ".join(ACTING))
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--env", metavar="ID", help="environment of a run on your own data (ID or module:ID)")
    add_overwrite(parser)
    parser.add_fields(EvalOptions, "evaluation (defaults: those of the run)")
    values = parser.parse(argv)
    ablation = ACTING[values.name]
    chosen = given_options([EvalOptions], values)
    if ablation.option in chosen:
        raise UserError(f"edp ablate {values.name} varies that option: leave it out")

    from edp.acting.evaluator import Evaluator
    from edp.cli.display import evaluation_line
    from edp.cli.locate import load_noting
    from edp.runs.directory import Run
    from edp.runs.load import with_environment
    from edp.runs.rows import finite_or_none

    folder = Run.open(values.run)
    out = folder.folder / "ablations"
    check_ablation(out / values.name, values.overwrite)
    spec, found = load_noting(folder)
    spec = with_environment(spec, values.env or "", folder)
    if not spec.task.env:
        raise UserError(f"{folder.folder}: has no environment to evaluate in: give one with --env")
    options = [spec.evaluation.with_values(**chosen, **{ablation.option: value}) for value in ablation.values]
    options = [replace(option, eas_spread=0.0) if option.eas == 1 else option for option in options]
    for option in options:
        acting_sampler(spec.algorithm, spec.policy, option)
    scores = []
    for value, option in zip(ablation.values, options, strict=True):
        evaluate = Evaluator(spec, option)
        evaluation = evaluate(found.tree, found.step, folder, f"ablation {values.name}", failed=found.failed)
        scores.append([finite_or_none(row) for row in evaluation.scores.tolist()])
        print(evaluation_line(evaluation, spec, f"{ablation.label}: {value:<4g}"), flush=True)
    about = {"run": str(folder.folder), "step": found.step, "option": ablation.option, "chosen": chosen}
    content = {"title": folder.title, "label": ablation.label, "values": list(ablation.values), "scores": scores}
    save_ablation(out / values.name, about | content, spec.task.measure)
    return 0


def ablate_training(argv: list[str], ablation: Training) -> int:
    parser = Parser("edp ablate", DESCRIPTION, "NAME TASK")
    parser.add_argument("name", metavar="NAME", help=", ".join(TRAINING))
    parser.add_argument("task", metavar="TASK", help="a task's name (edp data list), or your own data with --env")
    parser.add_argument("--env", metavar="ID", help="environment of your own data (ID or module:ID)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="for the runs (default: ablations/NAME)")
    add_overwrite(parser)
    values, rest = parser.parse_known_args(argv)
    env = ["--env", values.env] if values.env else []
    varied = {word for words in ablation.variants.values() for word in words if word.startswith("--")}
    for word in rest:
        if word.split("=")[0] in varied:
            raise UserError(f"edp ablate {values.name} sets {word.split('=')[0]} itself: leave it out")

    from edp.report.collect import summarise
    from edp.report.statistics import mean_interval
    from edp.report.tables import score_kind
    from edp.runs.directory import Run

    out = values.out or Path("ablations") / f"{values.name}_{values.task.replace('/', '-')}"
    check_ablation(out / values.name, values.overwrite)
    check_environment(values.task, values.env or "", rest)
    scores, speeds, curves, entries = [], [], [], []
    for variant, words in ablation.variants.items():
        folder = out / variant.replace(" ", "-")
        if code := train_variant([values.task, *words, *rest, *env, "--out", str(folder)], folder, env):
            return code
        run = Run.open(folder)
        entry, last = summarise(run), run.training_evaluations()[-1]
        assert entry.curve is not None
        rates = sorted(row["steps_per_second"] for row in run.times() if "steps_per_second" in row)
        entries.append(entry)
        scores.append(last["scores"])
        curves.append({"rat": entry.curve.rat.tolist(), "oms": entry.curve.oms.tolist(), "step": last["step"]})
        speeds.append(rates[len(rates) // 2])
        print(f"{variant}: RAT {mean_interval(entry.curve.rat)}, {speeds[-1]:.1f} steps/s", flush=True)
    about = {"task": values.task, "options": rest, "curves": curves, "steps_per_second": speeds, "title": values.task}
    content = about | {"label": ablation.label, "values": list(ablation.variants), "scores": scores}
    save_ablation(out / values.name, content, score_kind(entries))
    return 0


def check_environment(task: str, env: str, words: list[str]) -> None:
    """Refuse data without an environment, in which variants could be compared. ``words`` may describe its columns."""
    from edp.training import prepare

    parser = Parser("edp ablate", "")
    parser.add_argument("--data", default="")
    add_columns(parser)
    given = parser.parse_known_args(words)[0]
    if not prepare.open_source(task, data=given.data, columns=columns_of(given).meaning, env=env).task.env:
        raise UserError(f"{task}: has no environment to evaluate in: give one with --env")


def train_variant(words: list[str], folder: Path, env: list[str]) -> int:
    """Train a run with these words of edp train, resume it, or leave a finished one alone; return the exit code."""
    from edp.cli import train
    from edp.runs.directory import Run

    if not (folder / "config.json").exists():
        return train.main(words)
    run = Run.open(folder)
    if run.config.get("command") != ["edp", "train", *words]:
        raise UserError(f"{folder}: made with another command; remove it, or choose another --out")
    return 0 if run.status["state"] == "finished" else train.main(["--resume", str(folder), *env])


def check_ablation(path: Path, overwrite: bool) -> None:
    """Refuse an ablation that has been made, or cannot be written."""
    from edp.files import check_writable

    for suffix in (".json", ".png"):
        check_writable(path.with_suffix(suffix), overwrite)


def save_ablation(path: Path, content: dict[str, Any], measure: str) -> None:
    """Write the scores as JSON, and a picture of them."""
    from edp.drawing import save_figure
    from edp.files import write_json
    from edp.report.ablations import ablation_from_scores
    from edp.report.figures import single_ablation_figure

    write_json(path.with_suffix(".json"), content)
    print(printable(str(path.with_suffix(".json"))))
    ablation = ablation_from_scores(content["label"], content["values"], content["scores"])
    save_figure(single_ablation_figure(content["title"], measure, ablation), path.with_suffix(".png"))
    print(printable(str(path.with_suffix(".png"))))
