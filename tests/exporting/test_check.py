"""The comparison with the JAX policy, on numbers made by hand."""

import numpy as np
import pytest

from edp.data.units import Units
from edp.errors import UserError
from edp.exporting.check import Comparison, Reference, compare, refuse_difference

UNITS = Units((0.0,), (1.0,), (0.0, -1.0), (100.0, 1.0))
CANDIDATES = np.array([[[10.0, 0.5], [90.0, -0.5], [50.0, 0.0]]] * 2)


def reference(scores):
    return Reference({}, np.zeros((2, 2)), CANDIDATES[:, 0], CANDIDATES, np.array([scores] * 2))


def test_differences_are_shares_of_the_range():
    actions = CANDIDATES[:, 0] + [[0.001, 0.0], [0.0, -0.0001]]
    found = compare(actions, reference([3.0, 1.0, 0.0]), UNITS)
    assert found.greatest_difference == pytest.approx(0.0001 / 2)
    assert (found.states, found.ties) == (2, 0)
    assert refuse_difference(found) is found


def test_another_candidate_may_be_chosen_if_it_is_as_good():
    actions = np.array([[10.0, 0.5], [90.001, -0.5]])  # the second candidate in the second state
    found = compare(actions, reference([3.0, 2.99, 0.0]), UNITS)
    assert found.greatest_difference == pytest.approx(1e-5)
    assert found.ties == 1
    refuse_difference(found)
    found = compare(actions, reference([3.0, 2.9, 0.0]), UNITS)
    assert found.greatest_difference == pytest.approx(0.80001)
    with pytest.raises(UserError, match=r"differs .* by up to 8.0e-01 of the action's range .* nothing was written"):
        refuse_difference(found)


def test_many_other_choices_are_refused():
    with pytest.raises(UserError, match="another candidate in 20 of 256 states"):
        refuse_difference(Comparison(256, 1e-6, 20))
    refuse_difference(Comparison(256, 1e-6, 12))


@pytest.mark.parametrize("actions", [np.full((2, 2), np.nan), np.zeros((2, 3))])
def test_actions_that_are_none(actions):
    with pytest.raises(UserError, match="not finite numbers of the right shape"):
        compare(actions, reference([1.0, 0.0, 0.0]), UNITS)


def test_a_difference_of_nan_is_refused():
    with pytest.raises(UserError):
        refuse_difference(Comparison(1, float("nan"), 0))
