"""Which trials a sweep runs: all points of a grid, random ones, or those that Optuna suggests."""

import re
from collections.abc import Container
from typing import Any

import numpy as np

from edp.runs.sweep import AGAIN, EARLY, Sweep, Trial
from edp.runs.trial_results import Result, ranked, read_result
from edp.sweeps.plan import Plan, show_value
from edp.sweeps.space import Choices, Range, Values, as_tuple

TRIES = 100  # draws in search of a trial that is not there yet
LONGEST_NAME = 100


class Search:
    """Chooses the trials of a sweep, one after another. A resumed sweep goes on where it stopped."""

    def __init__(self, plan: Plan, sweep: Sweep):
        self.plan, self.sweep = plan, sweep
        sweep.check_trials()
        self.known = sweep.trials()
        self.points = planned_points(plan)

    def next(self, results: list[Result], failed: Container[int] = ()) -> Trial | None:
        """Plan one more trial, given what came of the others; None if there are enough for now.

        When all trials are done or ``failed``, the best ones are trained again, with fresh seeds.
        """
        first = [trial for trial in self.known if trial.again is None]
        if len(first) < self.plan.size:
            return self.add(self.choose(len(first), results), len(self.known))
        done = [each for each in results if each.trial.again is None]
        if len(done) < self.plan.size or not all(each.is_done or each.trial.number in failed for each in done):
            return None
        repeated = {trial.again for trial in self.known}
        for each in self.best(done):
            if each.trial.number not in repeated:
                return self.add(fresh_seeds(self.sweep, each.trial), len(self.known), each.trial)
        return None

    def is_over(self, results: list[Result]) -> bool:
        """Whether all trials are done, but perhaps for those with fresh seeds."""
        return len(results) >= self.plan.size and all(each.is_done for each in results)

    def best(self, results: list[Result]) -> list[Result]:
        """The trials to train again: the best ``confirm`` on each data set."""
        found, used = list[Result](), list[Any]()
        for each in ranked(results, self.sweep.sign):
            data = self.sweep.data_of(each.trial)
            if each.state == "finished" and used.count(data) < self.plan.search.confirm:
                found.append(each)
                used.append(data)
        return found

    def add(self, values: Values, number: int, again: Trial | None = None) -> Trial:
        name = f"{AGAIN}{again.name}" if again else trial_name(number, values, self.plan.varied)
        trial = Trial(number, name, values, again.number if again else None)
        self.known.append(self.sweep.add_trial(trial))
        return trial

    def choose(self, number: int, results: list[Result]) -> Values:
        if self.plan.search.method == "optuna":
            return suggest(self.plan, number, results)
        return self.points[number]


def planned_points(plan: Plan) -> list[Values]:
    """All trials of a grid or of a random search, which do not depend on results."""
    if plan.search.method == "grid":
        return [values for space in plan.spaces for values in space.grid()]
    if plan.search.method == "optuna":
        return []
    points: list[Values] = []
    for number in range(plan.search.trials):
        rng = np.random.default_rng([plan.search.seed, number])
        draws = (plan.spaces[int(rng.integers(len(plan.spaces)))].draw(rng) for _ in range(TRIES))
        point = next(draws)
        while point in points and (point := next(draws, point)) in points:
            if next(draws, None) is None:
                break
        points.append(point)
    return points


def example_points(plan: Plan) -> list[Values]:
    """Points to check before anything runs: all, or for Optuna the ends of every dimension."""
    if plan.search.method != "optuna":
        return planned_points(plan)
    ends = [
        [each.values[0], each.values[-1]] if isinstance(each, Choices) else [each.low, each.high]
        for space in plan.spaces
        for each in space.dimensions.values()
    ]
    points, offset = [], 0
    for space in plan.spaces:
        own = ends[offset : offset + len(space.dimensions)]
        offset += len(space.dimensions)
        points += [
            space.fixed | dict(zip(space.dimensions, [pair[end] for pair in own], strict=True)) for end in (0, 1)
        ]
        for name, each in space.dimensions.items():
            choices = each.values[1:-1] if isinstance(each, Choices) else ()
            points += [points[-1] | {name: value} for value in choices]
    return points


def suggest(plan: Plan, number: int, results: list[Result]) -> Values:
    """The trial that Optuna's TPE suggests. It depends on the results and the trial's number alone."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seed = int(np.random.SeedSequence([plan.search.seed, number]).generate_state(1)[0])
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    sign = -1 if plan.search.metric == "bc_loss" else 1
    for each in results:
        if each.trial.again is None and each.is_done:
            study.add_trial(as_optuna_trial(plan, each, sign))
    tried = [as_tuples(each.trial.values) for each in results]
    point = suggest_point(plan, study.ask())
    for _ in range(TRIES):  # the same trial again would give the same numbers
        if as_tuples(point) not in tried:
            break
        point = suggest_point(plan, study.ask())
    return point


def suggest_point(plan: Plan, asked: Any) -> Values:
    index = asked.suggest_categorical("space", range(len(plan.spaces))) if len(plan.spaces) > 1 else 0
    space = plan.spaces[index]
    return space.fixed | {name: suggest_value(asked, index, name, each) for name, each in space.dimensions.items()}


def as_tuples(values: Values) -> Values:
    return {name: as_tuple(value) for name, value in values.items()}


def suggest_value(asked: Any, index: int, name: str, dimension: Choices | Range) -> Any:
    """One value. The name is that of the option in its space, since spaces may have different values for it."""
    name = f"{index}.{name}"
    if isinstance(dimension, Choices):
        return dimension.values[asked.suggest_categorical(name, range(len(dimension.values)))]
    if dimension.whole:
        return asked.suggest_int(name, int(dimension.low), int(dimension.high), log=dimension.log)
    return dimension.rounded(asked.suggest_float(name, dimension.low, dimension.high, log=dimension.log))


def as_optuna_trial(plan: Plan, result: Result, sign: int) -> Any:
    """A result as Optuna keeps it: a value, or for early-stopped and failed trials the last one before the end."""
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    index = next((i for i, space in enumerate(plan.spaces) if space.holds(result.trial.values)), 0)
    space, values = plan.spaces[index], result.trial.values
    params: Values = {"space": index} if len(plan.spaces) > 1 else {}
    distributions: dict[str, Any] = {"space": CategoricalDistribution(range(len(plan.spaces)))} if params else {}
    for name, each in space.dimensions.items():
        label = f"{index}.{name}"
        if isinstance(each, Choices):
            options = [as_tuple(value) for value in each.values]
            value = options.index(as_tuple(values[name]))
            params[label], distributions[label] = value, CategoricalDistribution(range(len(options)))
        elif each.whole:
            params[label], distributions[label] = values[name], IntDistribution(int(each.low), int(each.high), each.log)
        else:
            params[label], distributions[label] = values[name], FloatDistribution(each.low, each.high, each.log)
    state, known = optuna.trial.TrialState, not np.isnan(result.value)
    if result.state == "failed" or not known:
        return optuna.trial.create_trial(state=state.FAIL, params=params, distributions=distributions)
    steps = {step: sign * value for step, value in result.curve.items() if not np.isnan(value)}
    early = result.state == EARLY
    return optuna.trial.create_trial(
        state=state.PRUNED if early else state.COMPLETE,
        value=None if early else sign * result.value,
        params=params,
        distributions=distributions,
        intermediate_values=steps,
    )


def fresh_seeds(sweep: Sweep, trial: Trial) -> Values:
    """The values of a trial with seeds that no trial has used, except for those with fresh seeds."""
    used = [run.config["training"] for each in sweep.trials() if each.again is None and (run := sweep.run(each))]
    return trial.values | {"seed": max((part["seed"] + part["seeds"] for part in used), default=0)}


def trial_name(number: int, values: Values, varied: list[str]) -> str:
    """The name of a trial's run directory: its number, and the values in which trials differ."""
    shown = [f"{name}={show_value(values[name])}" for name in varied if name in values]
    text = re.sub(r"[^A-Za-z0-9._=+,-]+", "-", "_".join([f"{number:04d}", *shown]))
    return text[:LONGEST_NAME].rstrip("._-")


def read_results(sweep: Sweep, before: dict[int, Result]) -> list[Result]:
    """What came of all trials. Results of trials that were done ``before`` are not read again."""
    for trial in sweep.trials():
        known = before.get(trial.number)
        if known is None or not known.is_done:
            before[trial.number] = read_result(sweep, trial)
    return list(before.values())
