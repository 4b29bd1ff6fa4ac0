"""Confidence intervals and rliable's statistics, against numbers worked out by hand or by SciPy."""

import numpy as np
import pytest
from scipy import stats

from edp.report.statistics import bootstrap_interval, cautions, iqm, mean_interval, probability_of_improvement


def test_the_interval_of_a_mean_is_students(rng):
    values = rng.standard_normal(7)
    found = mean_interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    np.testing.assert_allclose(found, [values.mean(), *expected])
    assert str(mean_interval(np.array([3.0]))) == "3.0"


def test_iqm_is_the_mean_of_the_middle_half():
    scores = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 1000.0]])
    assert iqm(scores) == np.mean([2, 3, 4, 5])


def test_the_probability_of_improvement_is_mann_whitneys_u_over_the_pairs(rng):
    first, second = np.round(rng.standard_normal((6, 3)), 1), np.round(rng.standard_normal((5, 3)), 1)
    u = [stats.mannwhitneyu(first[:, i], second[:, i]).statistic / 30 for i in range(3)]
    assert probability_of_improvement(first, second) == pytest.approx(np.mean(u))
    assert probability_of_improvement(first, second) + probability_of_improvement(second, first) == pytest.approx(1)


def test_bootstrap_intervals_cover_the_truth_as_often_as_they_say(rng):
    """With 30 runs of one task, about 95 of 100 intervals hold the true mean."""
    covered = 0
    for _ in range(100):
        found = bootstrap_interval(lambda x: float(x.mean()), rng.standard_normal((30, 1)), resamples=300)
        covered += found.low <= 0 <= found.high
    assert 85 <= covered <= 100


def test_runs_are_drawn_again_within_each_task():
    """Tasks whose scores do not vary give an interval of width 0, however different the tasks are."""
    found = bootstrap_interval(iqm, np.array([[0.0, 100.0]] * 4), resamples=50)
    assert found == (50, 50, 50)


def test_too_few_seeds_or_episodes_are_called_so():
    assert cautions(5, 10) == []
    assert "2 seeds" in cautions(2, 10)[0]
    assert "4 episodes" in cautions(5, 4)[0]
