"""How much each option of a sweep matters, by Optuna (PED-ANOVA, Watanabe et al. 2023)."""

import warnings
from typing import Any

from edp.report.markup import Cell, Table
from edp.report.sweep_results import SweepEntry, are_numbers, value_text
from edp.runs.trial_results import Result

FEWEST_TRIALS = 6  # that trained to their end
NOTE = (
    "By Optuna (PED-ANOVA), from {}: how much the values of the best trials differ "
    "from those of all, as shares of 100 %. With few trials this is a rough guide."
)


def importance_table(entry: SweepEntry) -> Table:
    """List the options by importance, or say why that is not known."""
    table = Table("Importance of the options", ["option", "importance"])
    trials, note = comparable(entry)
    names = [name for name in entry.varied if len({value_text(each.trial.values.get(name)) for each in trials}) > 1]
    names = [name for name in names if all(name in each.trial.values for each in trials)]
    if len(trials) < FEWEST_TRIALS:
        done = "1 has" if len(trials) == 1 else f"{len(trials) or 'none'} have"
        table.notes = [f"Not computed: it takes {FEWEST_TRIALS} trials that trained to their end, and {done}."]
    elif len({each.value for each in trials}) == 1:
        table.notes = ["Not computed: the trials that trained to their end all have the same value."]
    elif len(names) < 2:
        table.notes = ["Not computed: the trials that trained to their end differ in fewer than two options."]
    else:
        try:
            shares = importances(entry, trials, names)
        except ImportError:
            table.notes = ['Not computed: Optuna is not installed (pip install "edp-rl[sweep]").']
        except (ValueError, RuntimeError, ArithmeticError) as error:
            table.notes = [f"Not computed: Optuna failed ({error})."]
        else:
            table.rows = [[Cell(name), Cell(f"{100 * share:.0f} %", share)] for name, share in shares.items()]
            table.notes = [note]
    return table


def comparable(entry: SweepEntry) -> tuple[list[Result], str]:
    """The trials whose values can be compared, and a note about them.

    They trained to their end, or, if early stopping left few of those, they reached its first comparison.
    """
    ended = [each for each in entry.finished if are_numbers([each.value])]
    if len(ended) >= FEWEST_TRIALS or not entry.first_rung:
        return ended, NOTE.format("the trials that trained to their end")
    curves = {each.trial.number: after(each, entry.first_rung) for each in entry.results}
    early = [
        each._replace(per_seed=(value,)) for each in entry.results if (value := curves[each.trial.number]) is not None
    ]
    if len(early) < FEWEST_TRIALS:
        return ended, NOTE.format("the trials that trained to their end")
    return early, NOTE.format(f"the values of all trials after {entry.first_rung:,} steps")


def after(result: Result, rung: int) -> float | None:
    """The value of a trial in its first evaluation at a rung or after it."""
    steps = [step for step in result.curve if step >= rung]
    value = result.curve[min(steps)] if steps else None
    return value if are_numbers([value]) else None


def importances(entry: SweepEntry, trials: list[Result], names: list[str]) -> dict[str, float]:
    """Compute the share of each option, the largest first."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    columns = {name: column(entry, name, [each.trial.values[name] for each in trials]) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of this is called experimental
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for i, each in enumerate(trials):
            study.add_trial(
                optuna.trial.create_trial(
                    value=-entry.sign * each.value,  # lower is better
                    params={name: values[i] for name, (values, _) in columns.items()},
                    distributions={name: kind for name, (_, kind) in columns.items()},
                )
            )
        found = optuna.importance.get_param_importances(
            study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def column(entry: SweepEntry, name: str, values: list[Any]) -> tuple[list[Any], Any]:
    """Convert the values of an option to Optuna's, with their distribution. Categories are numbered."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    known = entry.ranges.get(name)
    if known and are_numbers(values):
        low, high = min(known.low, *values), max(known.high, *values)
        return [float(value) for value in values], FloatDistribution(low, high, log=known.log and low > 0)
    texts = sorted({value_text(value) for value in values})
    return [texts.index(value_text(value)) for value in values], CategoricalDistribution(range(len(texts)))
