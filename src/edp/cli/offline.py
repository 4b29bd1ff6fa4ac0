"""edp eval RUN --offline, and edp compare for runs without an environment: verdicts from the log alone."""

from typing import TYPE_CHECKING, Any

from edp.cli.parser import given_options
from edp.errors import UserError, counted, printable
from edp.options import check_options

if TYPE_CHECKING:
    from edp.acting.judge import Judgement
    from edp.report.collect import Entry
    from edp.runs.directory import Run


def judge_run(values: Any) -> int:
    """Judge the checkpoints of a run by its log, write the verdicts into the run, and print them."""
    from edp.acting.actors import Actors
    from edp.acting.judge import Judge, JudgeOptions, judgement_row
    from edp.cli.locate import find_file
    from edp.cli.progress import counting, note
    from edp.config.spec import EvalOptions, acting_sampler
    from edp.data.formats.times import show_duration
    from edp.runs import load
    from edp.runs.checkpoints import Checkpoints
    from edp.runs.directory import Run

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
    judge_options = check_options(JudgeOptions(**given_options([JudgeOptions], values)))
    acting_sampler(spec.algorithm, spec.policy, options)  # refuses wrong options before the data is read
    steps = Checkpoints(run.checkpoints).steps() or [None]  # a run of schema 2 has one without a step
    if values.checkpoint is not None:
        steps = [load.load_checkpoint(run, values.checkpoint)[1].step]
    data = load.read_run_data(run, spec, values.data or load.locate_run_data(run, spec, find_file))
    if not data.reward.any():
        raise UserError(f"{run.folder}: all rewards of its log are 0, so that nothing is better or worse")
    judge = Judge(data, judge_options, reward_name(run))
    found: dict[int, Judgement] = {}
    with counting("checkpoints judged", len(steps)) as advance:
        for done, step in enumerate(reversed(steps), 1):
            try:
                _, checkpoint = load.load_checkpoint(run, step)
            except UserError as error:  # damaged, or removed by training that is still running
                note(str(error))
                continue
            actors = Actors.from_states(spec, options, checkpoint.tree)
            failed = [seed - spec.training.seed for seed in checkpoint.failed]
            if len(failed) == spec.training.seeds:
                note(f"step {checkpoint.step}: all seeds failed")
                continue
            if not found:
                policies = len(steps) * (spec.training.seeds - len(failed))
                seconds = float(f"{judge.seconds(actors, policies):.1g}")
                what = "1 policy" if policies == 1 else f"{policies} policies"
                note(f"judging {what} by the log takes about {show_duration(seconds)}")
            found[checkpoint.step] = judgement = judge(actors, failed)
            last = next(iter(found.values()))
            run.log_offline(judgement_row(checkpoint.step, judgement, last, options, judge_options))
            advance(done)
    if not found:
        raise UserError(f"{run.folder}: no checkpoint of it can be used")
    print_judgements(run, dict(sorted(found.items())), judge)
    return 0


def reward_name(run: "Run") -> str:
    columns = run.config.get("columns")
    return printable(str((columns if isinstance(columns, dict) else {}).get("reward_column") or "reward"))


def print_judgements(run: "Run", found: "dict[int, Judgement]", judge: Any) -> None:
    """Print the verdict on each checkpoint, what it means, and which checkpoint to use."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from edp.cli.terminal import score_text, shown

    console, scores = Console(), {row["step"]: row["scores"] for row in run.training_evaluations()}
    heads = ["step", "policy", "policy - log:\nreplays", "\nfitted Q", "far from\nthe log", "verdict"]
    table = Table(*heads, *(["score"] if scores else []), title=f"{shown(run.title)}, {shown(judge.unit)}")
    for step, judgement in found.items():
        verdict = judgement.verdict
        cells = [
            f"{step:,}",
            f"{verdict.policy:.4g}",
            *(str(each).replace(" (", "\n(") for each in (verdict.difference, verdict.fitted_q)),
        ]
        score = [score_text(np.array(scores[step], float)) if step in scores else "-"] if scores else []
        table.add_row(*cells, f"{verdict.outside:.0%}", verdict.word, *score)
    console.print(table)
    last = list(found.values())[-1].verdict
    operators = ", ".join(f"{shown(name)} {value:.4g}" for name, value in last.operators.items())
    count = len(judge.stretches.reward)
    lines = [
        f"the log: {last.log:.4g} {shown(judge.unit)}" + (f" ({operators})" if operators else ""),
        f"{count:,} recorded {'stretch' if count == 1 else 'stretches'} of up to {counted(judge.horizon, 'step')} "
        f"{'was' if count == 1 else 'were'} replayed with the policy in a model of the process; fitted Q evaluation "
        f"has the discount {judge.discount:.3g}.",
        f"[bold]{shown(last.sentence)}[/bold]",
        *choice_of_checkpoint(found),
    ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def choice_of_checkpoint(found: "dict[int, Judgement]") -> list[str]:
    """Recommend another checkpoint than the last one, if it is better by more than the noise."""
    from edp.acting.verdict import gain_over

    if len(found) < 2:
        return []
    last, best = max(found), max(found, key=lambda step: found[step].verdict.policy)
    if best == last:
        return ["No checkpoint has a higher value than the last one."]
    gain = gain_over(found[best].gains, found[last].gains)
    if gain.low > 0:
        return [f"Step {best:,} is better than the last one by {gain}: use it with --checkpoint offline."]
    return [f"Step {best:,} has the highest value, but its difference to the last one may be noise: {gain}."]


def compare_offline(entries: "list[Entry]") -> None:
    """Print the last verdicts of some runs on one log, and for each pair which is better."""
    from rich.console import Console
    from rich.table import Table

    from edp.acting.verdict import Gains, Interval, gain_over
    from edp.cli.terminal import shown
    from edp.runs.directory import Run

    rows: dict[str, Any] = {}
    short = len({entry.folder.name for entry in entries}) == len(entries)
    for entry in entries:
        run = Run.open(entry.folder)
        judged = [row for row in run.offline() if "verdict" in row and "gains" in row]
        if not judged:
            raise UserError(
                f"{entry.folder}: no evaluations in it yet; judge it by its log with: edp eval RUN --offline"
            )
        last = max(reversed(judged), key=lambda row: row["step"])  # of several verdicts on a step, the last one
        name = entry.folder.name if short else str(entry.folder)
        rows[name] = last | {"data": run.config.get("data_sha256")}
    if len({row["data"] for row in rows.values()}) > 1:
        raise UserError("these runs have different logs, so that their verdicts cannot be compared")
    gains = {name: Gains.from_json(row["gains"]) for name, row in rows.items()}
    if len({(each.steps.tobytes(), each.episode.tobytes(), len(each.lower)) for each in gains.values()}) > 1:
        raise UserError("these runs were judged with different options: use the same ones for edp eval RUN --offline")
    first = next(iter(rows.values()))["verdict"]
    console, table = Console(), Table("run", "step", "policy", "policy - log", "verdict", title=shown(first["unit"]))
    for name, row in rows.items():
        verdict = row["verdict"]
        difference = str(Interval(*verdict["difference"]))
        table.add_row(shown(name), f"{row['step']:,}", f"{verdict['policy']:.4g}", difference, verdict["word"])
    console.print(table)
    if len(rows) > 1:
        pairs = Table("row - column", *map(shown, rows))
        for name in rows:
            cells = ["" if name == other else gain_text(gain_over(gains[name], gains[other])) for other in rows]
            pairs.add_row(shown(name), *cells)
        console.print(pairs)
    console.print("Verdicts are from the log alone. A difference whose interval has both signs may be noise.")


def gain_text(gain: Any) -> str:
    return str(gain) if gain.low > 0 or gain.high < 0 else f"cannot tell: {gain}"
