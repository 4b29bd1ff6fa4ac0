"""The paper's measures, and rliable's, against numbers worked out by hand or by SciPy."""

import numpy as np
import pytest
from scipy import stats

from edp.runs import scores as metrics
from edp.runs.directory import Run


def row(step, scores, **more):
    return {"step": step, "scores": scores, **more}


def test_rat_is_the_mean_of_the_last_ten_and_oms_the_best_of_all(tmp_path):
    """For each seed; failed episodes, and evaluations that training did not make, do not count."""
    rows = [row(i, [[float(i), float(i)], [100.0 - i, None]]) for i in range(15)]
    run = Run(tmp_path)
    for entry in [*rows, row(15, [[1000.0, 1000.0]] * 2, kind="eval")]:
        run.log_evaluation(entry)
    curve = metrics.curve(run.training_evaluations())
    np.testing.assert_allclose(curve.rat, [np.mean(range(5, 15)), np.mean(range(86, 96))])
    np.testing.assert_allclose(curve.oms, [14, 100])
    assert curve.episodes == 2


def test_the_interval_of_a_mean_is_students(rng):
    values = rng.standard_normal(7)
    found = metrics.mean_interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    np.testing.assert_allclose(found, [values.mean(), *expected])
    assert str(metrics.mean_interval(np.array([3.0]))) == "3.0"


def test_iqm_is_the_mean_of_the_middle_half():
    scores = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 1000.0]])
    assert metrics.iqm(scores) == np.mean([2, 3, 4, 5])


def test_the_probability_of_improvement_is_mann_whitneys_u_over_the_pairs(rng):
    first, second = np.round(rng.standard_normal((6, 3)), 1), np.round(rng.standard_normal((5, 3)), 1)
    u = [stats.mannwhitneyu(first[:, i], second[:, i]).statistic / 30 for i in range(3)]
    assert metrics.improvement(first, second) == pytest.approx(np.mean(u))
    assert metrics.improvement(first, second) + metrics.improvement(second, first) == pytest.approx(1)


def test_bootstrap_intervals_cover_the_truth_as_often_as_they_say(rng):
    """With 30 runs of one task, about 95 of 100 intervals hold the true mean."""
    covered = 0
    for _ in range(100):
        found = metrics.bootstrap(lambda x: float(x.mean()), rng.standard_normal((30, 1)), resamples=300)
        covered += found.low <= 0 <= found.high
    assert 85 <= covered <= 100


def test_runs_are_drawn_again_within_each_task():
    """Two tasks that never vary leave nothing to draw, however far apart they are."""
    found = metrics.bootstrap(metrics.iqm, np.array([[0.0, 100.0]] * 4), resamples=50)
    assert found == (50, 50, 50)


def test_too_few_seeds_or_episodes_are_called_so():
    assert metrics.cautions(5, 10) == []
    assert "2 seeds" in metrics.cautions(2, 10)[0]
    assert "4 episodes" in metrics.cautions(5, 4)[0]


def test_sparklines_go_from_the_lowest_to_the_highest():
    assert metrics.sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert metrics.sparkline([5, np.nan, 9]) == "▁ █"
    assert len(metrics.sparkline(range(1000), 20)) == 20
    assert metrics.sparkline([3, 3]) == "▄▄"
    assert metrics.sparkline([]) == metrics.sparkline([np.nan]) == ""
