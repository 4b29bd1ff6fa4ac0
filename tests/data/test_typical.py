"""Which day or episode of a log is typical."""

import numpy as np
import pytest

from edp.data.arrays import from_arrays
from edp.data.formats import open_log
from edp.data.health import examine_log
from edp.data.typical import find_typical

HOUR, DAY = 3600, 86_400
START = 20_000 * DAY  # 2024-10-04


def write_days(path, levels, minutes=30, start=START, skip=()):
    """Write a log with a wave for each day around its level; ``skip`` are (day, hour) that are not in it."""
    lines = ["time,observation_level,action_valve,reward"]
    for day, level in enumerate(levels):
        for minute in range(0, 24 * 60, minutes):
            if (day, minute // 60) not in skip:
                value = level + np.sin(2 * np.pi * minute / 1440)
                lines.append(f"{start + day * DAY + 60 * minute},{value:.4f},{value / 2:.4f},{-abs(value):.4f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def typical(log, labels=None):
    health = examine_log(log)
    assert health.sample is not None
    return find_typical(health, health.sample, labels), health


def timed(path):
    return open_log(path, {"time_column": "time"})


def test_the_typical_day_is_the_one_nearest_to_the_median(tmp_path):
    found, health = typical(timed(write_days(tmp_path / "log.csv", [0.0, 9.0, 2.0, 1.0, -9.0])))
    assert found.about == "Monday 2024-10-07, nearest to the median of 5 days"
    assert found.across == "hour of the day"
    (trace,) = found.traces
    np.testing.assert_allclose(trace.at, np.arange(0, 24, 0.5))
    np.testing.assert_array_equal(trace.rows, np.arange(3 * 48, 4 * 48))
    assert health.times is not None and health.times[trace.rows[0]] == START + 3 * DAY


def test_days_that_are_not_whole_are_not_typical(tmp_path):
    half = {(3, hour) for hour in range(12)}
    found, _ = typical(timed(write_days(tmp_path / "log.csv", [0.0, 9.0, 2.0, 1.5, -9.0, 1.0], skip=half)))
    assert found.about == "Wednesday 2024-10-09, nearest to the median of 5 days"


def test_times_that_are_no_dates_and_short_logs(tmp_path):
    found, _ = typical(timed(write_days(tmp_path / "log.csv", [0.0, 5.0, 1.0], start=0)))
    assert found.about == "day 2, nearest to the median of 3 days"
    few = {(0, hour) for hour in range(3, 24)}
    found, _ = typical(timed(write_days(tmp_path / "short.csv", [0.0], skip=few)))
    assert (found.about, found.across) == ("episode 1 of 1", "step of the episode")


def make_episodes(levels, lengths):
    levels, step = np.repeat(levels, lengths), np.concatenate([np.arange(length) for length in lengths])
    ends = np.isin(np.arange(len(step)), np.cumsum(lengths) - 1)
    return from_arrays((levels + step / 10)[:, None], levels[:, None] + np.eye(len(levels), 1), levels * 1.0, ends)


def test_the_typical_episode_has_a_medium_length():
    lengths = [20, 20, 500, 20, 20, 3]
    found, _ = typical(make_episodes([8.0, -3.0, 1.1, 1.3, 0.0, 1.0], lengths))
    assert found.about == "episode 4 of 6, nearest to the median of 4 episodes"
    assert found.traces[0].at.tolist() == list(range(20))
    assert found.traces[0].rows[0] == 540


def test_a_sample_of_the_rows_is_enough(monkeypatch):
    monkeypatch.setattr("edp.data.health.SAMPLE", 100)
    found, health = typical(make_episodes([8.0, 1.0, 1.1, -9.0, 1.5], [100] * 5))
    assert health.every == 5
    assert found.about == "episode 3 of 5, nearest to the median of 5 episodes"
    assert found.traces[0].at.tolist() == list(range(0, 100, 5))


def test_each_operator_with_days_of_their_own_has_a_typical_one(tmp_path):
    log = timed(write_days(tmp_path / "log.csv", [0.0, 10.0, 1.0, 11.0, 5.0, 12.0]))
    names = np.repeat(["anna", "bert", "anna", "bert", "anna", "bert"], 48)
    found, _ = typical(log, names)
    assert [names[trace.rows[0]] for trace in found.traces] == ["anna", "bert"]
    assert [trace.rows[0] // 48 for trace in found.traces] == [2, 3]
    assert "anna: Sunday 2024-10-06, bert: Monday 2024-10-07" in found.about


@pytest.mark.parametrize("names", [["anna", "bert"], ["anna", "anna"], ["", ""]])
def test_one_day_is_enough_if_operators_share_days_or_are_not_told_apart(tmp_path, names):
    log = timed(write_days(tmp_path / "log.csv", [0.0, 10.0, 1.0]))
    found, _ = typical(log, np.tile(np.repeat(names, 24), 3))
    assert [trace.rows[0] // 48 for trace in found.traces] == [2]


def test_episodes_of_one_step_have_no_traces():
    rng = np.random.default_rng(0)
    found, _ = typical(from_arrays(rng.normal(size=(50, 2)), rng.normal(size=(50, 1)), np.zeros(50), np.ones(50, bool)))
    assert found.about == "the first 50 steps"
