"""Intervals, and the sentence that they make."""

import numpy as np
import pytest

from edp.acting.verdict import (
    Gains,
    Interval,
    bootstrap_interval,
    decide,
    gain_over,
    give_verdict,
    sums_by_episode,
)

LOW, ZERO, HIGH = Interval(-3.0, -2.0, -1.0), Interval(-1.0, 0.1, 1.0), Interval(1.0, 2.0, 3.0)


def test_the_interval_covers(rng):
    """Sums of episodes around a true difference of 0.5 a step: about 95 of 100 intervals have it."""
    covered = 0
    for seed in range(100):
        sums = 5.0 + 3.0 * rng.standard_normal((1, 30))
        found = bootstrap_interval(sums, sums, np.full(30, 10.0), np.arange(30), seed)
        covered += found.low < 0.5 < found.high
    assert 88 <= covered <= 99


def test_stretches_of_one_episode_are_drawn_together(rng):
    sums = np.repeat(rng.standard_normal((1, 20)), 5, axis=1)
    steps = np.ones(100)
    apart = bootstrap_interval(sums, sums, steps, np.arange(100))
    together = bootstrap_interval(sums, sums, steps, np.repeat(np.arange(20), 5))
    assert together.high - together.low > 1.8 * (apart.high - apart.low)


def test_disagreement_of_members_widens_the_interval():
    sums = np.array([[1.0], [3.0]]) * np.ones((2, 20))
    found = bootstrap_interval(sums, sums, np.ones(20), np.arange(20))
    assert found == Interval(1.0, 2.0, 3.0)


def test_the_ends_are_the_pessimist_s_and_the_optimist_s():
    lower, upper = -np.ones((1, 20)), np.ones((1, 20))
    assert bootstrap_interval(lower, upper, np.full(20, 2.0), np.arange(20)) == Interval(-0.5, -0.5, 0.5)


@pytest.mark.parametrize(
    ("replays", "fitted_q", "word"),
    [
        (HIGH, HIGH, "better"),
        (HIGH, ZERO, "cannot tell"),
        (HIGH, LOW, "cannot tell"),
        (ZERO, HIGH, "cannot tell"),
        (ZERO, LOW, "cannot tell"),
        (LOW, LOW, "worse"),
        (LOW, ZERO, "worse"),
        (LOW, HIGH, "cannot tell"),
    ],
)
def test_words(replays, fitted_q, word):
    assert decide(replays, fitted_q) == word


def test_sentences_say_why():
    verdict = lambda *parts: give_verdict(*parts, log=-5.0, unit="euros per step", operators={})  # noqa: E731
    better = verdict(HIGH, HIGH, 0.0)
    assert better.sentence == "The policy is better than the log: +2 euros per step (95 % interval +1 to +3)."
    assert (better.policy, better.log) == (-3.0, -5.0)
    assert "the two estimates disagree (+2 (+1 to +3) by replays, -2 (-3 to -1)" in verdict(HIGH, LOW, 0.0).sentence
    assert "in 40% of its steps it would be far from everything in the log" in verdict(ZERO, HIGH, 0.4).sentence
    assert "the difference is within its noise" in verdict(ZERO, ZERO, 0.0).sentence
    assert better.to_json()["difference"] == [1.0, 2.0, 3.0]


def test_policies_are_compared_in_pairs(rng):
    """Their stretches vary by far more than the policies differ."""
    weather = 10 * rng.standard_normal((1, 40))
    gains = lambda shift: Gains(weather + shift, weather + shift, np.full(40, 10.0), np.arange(40.0))  # noqa: E731
    found = gain_over(gains(1.0), gains(0.0))
    np.testing.assert_allclose(found, 0.1)
    assert gains(1.0).interval.low < 0 < gains(1.0).interval.high
    again = Gains.from_json(gains(1.0).to_json())
    np.testing.assert_allclose(again.lower, gains(1.0).lower, rtol=1e-5)


def test_sums_by_episode():
    sums, counts = sums_by_episode(np.array([0, 0, 1, 4, 4]), np.arange(10.0).reshape(2, 5))
    assert sums.tolist() == [[1, 2, 7], [11, 7, 17]]
    assert counts.tolist() == [2, 1, 2]
