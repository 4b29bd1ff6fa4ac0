"""Means without NaN, and the paper's measures, against numbers worked out by hand."""

import numpy as np

from edp.runs.directory import Run
from edp.runs.scores import curve_from_evaluations, nan_mean


def row(step, scores, **more):
    return {"step": step, "scores": scores, **more}


def test_rat_is_the_mean_of_the_last_ten_and_oms_the_best_of_all(tmp_path):
    """For each seed; failed episodes, and evaluations that training did not make, do not count."""
    rows = [row(i, [[float(i), float(i)], [100.0 - i, None]]) for i in range(15)]
    run = Run(tmp_path)
    for entry in [*rows, row(15, [[1000.0, 1000.0]] * 2, kind="eval")]:
        run.log_evaluation(entry)
    curve = curve_from_evaluations(run.training_evaluations())
    np.testing.assert_allclose(curve.rat, [np.mean(range(5, 15)), np.mean(range(86, 96))])
    np.testing.assert_allclose(curve.oms, [14, 100])
    assert curve.episodes == 2


def test_means_leave_out_nan():
    np.testing.assert_array_equal(nan_mean([[1.0, None], [np.nan, np.nan]], axis=1), [1.0, np.nan])
    assert nan_mean([1.0, np.nan, 3.0]) == 2.0
    assert np.isnan(nan_mean([]))
    assert isinstance(nan_mean([1.0]), float)


def test_rows_that_are_no_evaluations_are_left_out():
    """Of another number of seeds or episodes, or no numbers at all; a score beyond all bounds is NaN."""
    rows = [row(1, "none"), row(2, [[1.0, 2.0]]), row(3, [[1.0], [2.0]]), row(4, [[1.0, 3.0], [None, 1e300]])]
    curve = curve_from_evaluations(rows, seeds=2)
    assert curve is not None and curve.steps.tolist() == [4]
    np.testing.assert_array_equal(curve.scores, [[2.0, np.nan]])
    np.testing.assert_array_equal(curve.means, [2.0])
    assert curve_from_evaluations([]) is curve_from_evaluations(rows[:1], seeds=2) is None
