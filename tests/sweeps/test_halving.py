"""Early stopping, with hand-computed decisions."""

import math

import pytest

from edp.runs.sweep import Sweep, Trial
from edp.sweeps.halving import Halving, is_among_best


def new_sweep(folder, metric):
    plan = {"search": {"metric": metric}, "stopping": {"first": 100, "factor": 2}, "train": {}, "content": {}}
    return Sweep.create(folder, plan)


@pytest.fixture
def sweep(tmp_path):
    return new_sweep(tmp_path / "sweep", "score")


def add(sweep, trial):
    """Halving compares the trials that the sweep has planned."""
    return sweep.add_trial(trial)


def test_rungs_grow_by_the_factor_and_end_before_the_last_step(sweep):
    halving = Halving(sweep, 100, 3)
    assert halving.rungs(1000) == [100, 300, 900]
    assert halving.rungs(900) == [100, 300]
    assert halving.rungs(901) == [100, 300, 900]
    assert halving.rungs(100) == []
    assert Halving(sweep, 0, 3).rungs(1000) == []


def test_one_of_factor_trials_goes_on():
    assert is_among_best(1.0, [], 3)
    assert not is_among_best(1.0, [2.0], 3)
    assert is_among_best(3.0, [2.0], 3)
    assert is_among_best(4.0, [5.0, 1.0, 2.0, 3.0, 0.0], 3)  # the best two of six
    assert not is_among_best(3.0, [5.0, 4.0, 2.0, 1.0, 0.0], 3)
    assert is_among_best(2.0, [2.0], 2)
    assert is_among_best(0.0, [0.0] * 9, 3)  # nothing is known yet, so nothing is stopped


def test_decisions_are_made_once_and_kept(sweep):
    halving = Halving(sweep, 100, 2)
    first, second, third = (add(sweep, Trial(number, str(number), {})) for number in range(3))
    assert not halving.stops(first, {50: 9.0, 100: 1.0}, 1000)
    assert not halving.stops(second, {120: 2.0}, 1000)  # the evaluation after the rung counts
    assert halving.stops(third, {100: 0.5}, 1000)
    assert halving.stops(third, {100: 5.0}, 1000)  # decided before
    assert not halving.stops(first, {100: 1.0, 200: 0.0}, 1000)  # the first at the next rung
    assert [(row["number"], row["rung"], row["stops"]) for row in sweep.rungs()] == [
        (0, 100, False),
        (1, 100, False),
        (2, 100, True),
        (0, 200, False),
    ]
    again = Halving(Sweep.open(sweep.folder), 100, 2)
    assert again.stops(third, {100: 0.5}, 1000)


def test_a_trial_without_a_value_is_the_worst(sweep):
    halving = Halving(sweep, 100, 2)
    assert not halving.stops(add(sweep, Trial(0, "0", {})), {100: -5.0}, 1000)
    assert halving.stops(add(sweep, Trial(1, "1", {})), {100: math.nan}, 1000)
    assert sweep.rungs()[-1]["value"] is None  # JSON has no infinity


def test_trials_with_fresh_seeds_are_not_stopped(sweep):
    halving = Halving(sweep, 100, 2)
    halving.stops(add(sweep, Trial(0, "0", {})), {100: 5.0}, 1000)
    assert not halving.stops(Trial(1, "1", {}, again=0), {100: 1.0}, 1000)


def test_lower_losses_are_better(tmp_path):
    sweep = new_sweep(tmp_path / "losses", "bc_loss")
    halving = Halving(sweep, 100, 2)
    assert not halving.stops(add(sweep, Trial(0, "0", {})), {100: 5.0}, 1000)
    assert not halving.stops(add(sweep, Trial(1, "1", {})), {100: 1.0}, 1000)
    assert halving.stops(add(sweep, Trial(2, "2", {})), {100: 3.0}, 1000)


def test_trials_on_different_data_are_not_compared(sweep):
    halving = Halving(sweep, 100, 2)
    easy = [add(sweep, Trial(number, str(number), {"task": "easy"})) for number in range(2)]
    hard = [add(sweep, Trial(number, str(number), {"task": "hard"})) for number in range(2, 4)]
    assert [halving.stops(each, {100: 90.0}, 1000) for each in easy] == [False, False]
    assert not halving.stops(hard[0], {100: 1.0}, 1000)
    assert halving.stops(hard[1], {100: 0.5}, 1000)
