"""Tables with a time: order, gaps, rates, and rows that are averaged."""

import gzip
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edp.cli import main
from edp.data import formats, health
from edp.data.dataset import read_steps
from edp.data.formats import times
from edp.errors import UserError

MEANING = {"time_column": "time"}


def write(path, moments, **columns):
    """Write a table whose only observation counts the rows."""
    rows = len(moments)
    content = {"time": moments, "observation_x": np.arange(rows), "action_y": np.linspace(-1, 1, rows)}
    content |= {"reward": np.arange(rows) % 7} | columns
    lines = [",".join(content), *(",".join(str(cell) for cell in row) for row in zip(*content.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def minutes(rows, start=0):
    return [f"2026-03-02 {10 + minute // 60:02}:{minute % 60:02}" for minute in range(start, start + rows)]


def steps_of(path, **options):
    return read_steps(formats.open_log(path, MEANING | options))


def findings(path, **options):
    found = health.examine_log(formats.open_log(path, MEANING | options)).findings
    return [finding.what for finding in found if finding.level != "note"]


@pytest.mark.parametrize(
    ("moment", "time_format"),
    [
        ("{}", ""),
        ("{}:30", ""),
        ("{}:30.25Z", ""),
        ("{}+01:00", ""),
        ("02.03.26 {clock}", "%d.%m.%y %H:%M"),
        ("{number}", ""),
    ],
)
def test_times_of_many_kinds(tmp_path, moment, time_format):
    texts = [moment.format(each, clock=each[-5:], number=60.5 * i) for i, each in enumerate(minutes(20))]
    path = write(tmp_path / "a.csv", texts[:10] + texts[15:])
    whole = steps_of(path, time_format=time_format)
    assert whole.timeouts.sum() == 1
    cut = steps_of(path, time_format=time_format, max_gap="2min")
    assert np.flatnonzero(cut.timeouts).tolist() == [9, 14]


def test_times_of_parquet(tmp_path):
    moments = pa.array(np.arange(20) * 60_000, pa.timestamp("ms"))
    rows = {"time": moments, "observation_x": np.arange(20.0), "action_y": np.linspace(-1, 1, 20)}
    pq.write_table(pa.table(rows).take([*range(8), *range(12, 20)]), tmp_path / "a.parquet")
    assert np.flatnonzero(steps_of(str(tmp_path / "a.parquet"), max_gap="90s").timeouts).tolist() == [7, 15]


@pytest.mark.parametrize("form", ["csv", "csv.gz"])
def test_tables_that_are_newest_first_are_refused_or_turned(tmp_path, form, monkeypatch):
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", 500)
    path = write(tmp_path / "a.csv", minutes(200)[::-1], episode=[1] * 90 + [0] * 110)
    if form == "csv.gz":
        content = gzip.compress((tmp_path / "a.csv").read_bytes())
        path = str(tmp_path / "a.csv.gz")
        (tmp_path / "a.csv.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.csv.*: the rows are newest first: turn them with `newest_first`"):
        steps_of(path)
    turned = steps_of(path, newest_first=True)
    assert turned.observations[:, 0].tolist() == list(range(199, -1, -1))
    assert np.flatnonzero(turned.timeouts).tolist() == [109, 199]
    bad = write(tmp_path / "c.csv", minutes(30)[::-1], reward=["1"] * 4 + ["inf"] + ["1"] * 25)
    with pytest.raises(UserError, match=r"first in row 4 \(line 6\)"):
        steps_of(bad, newest_first=True)
    with pytest.raises(UserError, match="not newest first: leave `newest_first` out"):
        steps_of(write(tmp_path / "b.csv", minutes(30)), newest_first=True)


def test_what_looks_wrong_about_times(tmp_path):
    sound = minutes(300)
    assert findings(write(tmp_path / "a.csv", sound)) == findings(write(tmp_path / "a.csv", np.arange(300)))
    assert not any("time" in what for what in findings(write(tmp_path / "a.csv", sound)))
    (gap,) = [what for what in findings(write(tmp_path / "a.csv", sound[:100] + sound[130:])) if "gap" in what]
    missing = "1 gap in time within episodes: about 30 rows are missing at one each 1 min"
    assert gap == f"{missing}; the longest gap (31 min) ends in row 100 (line 102), at 2026-03-02 12:10"
    (again,) = [what for what in findings(write(tmp_path / "a.csv", sound[:100] + sound[97:])) if "time" in what]
    assert "time goes back 1 time, first in row 100 (line 102)" in again
    twice = sorted(sound + sound[40:43])
    assert "3 rows have the same time as the row before, first in row 41 (line 43)" in findings(
        write(tmp_path / "a.csv", twice)
    )
    rate = [*range(0, 6000, 60), *range(6000, 7000, 10)]
    (change,) = [what for what in findings(write(tmp_path / "a.csv", rate)) if "apart" in what]
    assert change == "rows are 1 min apart, but 99 of 199 are 10 s apart"


@pytest.mark.parametrize(("unit", "each"), [("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_numbers_that_are_no_seconds(tmp_path, unit, each):
    path = write(tmp_path / "a.csv", [f"{(1_772_434_800 + 60 * i) * each:.0f}" for i in range(20)])
    with pytest.raises(
        UserError, match=rf"in row 0 \(line 2\), which would be after the year 5000.*`time_format={unit}`"
    ):
        steps_of(path)
    assert span_of(path, time_format=unit) == "one row each 1 min, 2026-03-02 07:00 to 2026-03-02 07:19"
    assert span_of(write(tmp_path / "b.csv", np.arange(20)), time_format="s") == "one row each 1 s, 0 to 19"


def span_of(path, **options):
    return health.examine_log(formats.open_log(path, MEANING | options)).span


def test_the_rate_and_the_span(tmp_path, capsys):
    path = write(tmp_path / "a.csv", minutes(100))
    assert span_of(path, every="10min") == "one row each 10 min, 2026-03-02 10:00 to 2026-03-02 11:30"
    assert main(["data", "check", path, "--no-picture", "--time-column", "time"]) == 0
    assert "\ntime: one row each 1 min, 2026-03-02 10:00 to 2026-03-02 11:39\n" in capsys.readouterr().out
    assert health.examine_log(formats.open_log(path)).span == ""


def test_what_every_cures_is_only_noted(tmp_path):
    rate = [*range(0, 6000, 60), *range(6000, 7000, 10), *range(6990, 7000)]
    path = write(tmp_path / "a.csv", sorted([*rate, 60, 120]))
    assert sum("apart" in what or "the same time" in what for what in findings(path)) == 2
    assert findings(path, every="1min") == []
    notes = health.examine_log(formats.open_log(path, MEANING | {"every": "1min"})).findings
    assert sum("apart" in each.what or "the same time" in each.what for each in notes) == 2
    gap = write(tmp_path / "b.csv", minutes(300)[:100] + minutes(300)[150:])
    (what,) = [what for what in findings(gap, every="10min") if "few" not in what]
    assert "1 gap in time within episodes: about 5 rows are missing at one each 10 min" in what


def test_every_that_is_finer_than_the_rows(tmp_path):
    log = formats.open_log(write(tmp_path / "a.csv", minutes(200)), MEANING | {"every": "10s"})
    told = [each.what for each in health.examine_log(log).findings]
    assert "rows are 1 min apart: none are averaged over 10 s" in told


def test_clock_changes(tmp_path):
    late = [f"2026-03-29 {1 + (minute >= 60) + minute // 60:02}:{minute % 60:02}" for minute in range(120)]
    (spring,) = findings(write(tmp_path / "a.csv", late))
    assert "the longest gap (61 min) ends in row 60 (line 62), at 2026-03-29 03:00; it is one hour: a clock" in spring
    early = [f"2026-10-25 {1 + minute // 60 - (minute >= 120):02}:{minute % 60:02}" for minute in range(180)]
    (autumn,) = findings(write(tmp_path / "a.csv", early))
    assert autumn.startswith("time goes back 1 time, first in row 120 (line 122); it is one hour: a clock change?")
    (other,) = findings(write(tmp_path / "a.csv", minutes(100) + minutes(100, 120)))
    assert "clock" not in other


@pytest.mark.parametrize("row", [7, 70, 199])
def test_one_bad_time_is_named(tmp_path, row):
    for cell, options, what in (
        ("oops", {}, f"'oops' in row {row} \\(line {row + 2}\\), which is not a time like those before it"),
        ("2026-03-02 10:00Z", {}, f"'2026-03-02 10:00Z' in row {row} "),
        ("", {}, rf"has no time in row {row} \(line {row + 2}\).*`missing=time=drop`"),
    ):
        moments = minutes(200)
        moments[row] = cell
        with pytest.raises(UserError, match=what):
            steps_of(write(tmp_path / "a.csv", moments), **options)


@pytest.mark.parametrize("missing", ["drop", "time=drop"])
def test_rows_without_a_time_are_left_out(tmp_path, missing):
    moments = minutes(200)
    for row in (0, 70, 71):
        moments[row] = ""
    path = write(tmp_path / "a.csv", moments, terminal=(np.arange(200) == 70).astype(int))
    steps = steps_of(path, missing=(missing,))
    assert len(steps.rewards) == 197
    assert np.flatnonzero(steps.timeouts).tolist() == [68, 196]
    log = formats.open_log(path, MEANING | {"missing": (missing,)})
    assert any(each.what == "rows left out: 3" for each in health.examine_log(log).findings)


def test_gaps_between_episodes_are_no_gaps(tmp_path):
    path = write(tmp_path / "a.csv", minutes(100) + minutes(100, 400), episode=[0] * 100 + [1] * 100)
    assert not any("gap" in what for what in findings(path))


def test_two_files_with_the_same_time(tmp_path):
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "a.csv", minutes(100))
    write(tmp_path / "logs" / "b.csv", minutes(100, 90))
    assert "b.csv begins before a.csv ends, at 2026-03-02 11:30" in findings(str(tmp_path / "logs"))
    write(tmp_path / "logs" / "b.csv", minutes(100, 100))
    assert not any("begins before" in what for what in findings(str(tmp_path / "logs")))


@pytest.mark.parametrize("block", [300, 2**20])
def test_rows_are_averaged_over_time(tmp_path, monkeypatch, block):
    monkeypatch.setattr("edp.data.formats.csv_faults.BLOCK", block)
    path = write(tmp_path / "a.csv", minutes(100), terminal=(np.arange(100) == 43).astype(int))
    steps = steps_of(path, every="10min", resample=("mean", "action_y=last", "reward=sum"))
    rows = np.arange(100)
    edges = [0, 10, 20, 30, 40, 44, 50, 60, 70, 80, 90, 100]  # the episode ends in row 43
    groups = [rows[start:stop] for start, stop in pairwise(edges)]
    assert steps.observations[:, 0].tolist() == [group.mean() for group in groups]
    np.testing.assert_allclose(steps.actions[:, 0], [np.linspace(-1, 1, 100)[group[-1]] for group in groups], atol=1e-6)
    assert steps.rewards.tolist() == [(group % 7).sum() for group in groups]
    assert np.flatnonzero(steps.terminals).tolist() == [4]


def test_the_calendar_is_observed(tmp_path):
    moments = ["2026-03-02 00:00", "2026-03-02 06:00", "2026-03-02 12:00", "2026-03-08 18:00"]  # Monday to Sunday
    log = formats.open_log(write(tmp_path / "a.csv", moments), MEANING | {"calendar": ("hour", "weekday")})
    assert log.observation_names == ("observation_x", "hour_sin", "hour_cos", "weekday_sin", "weekday_cos")
    waves = read_steps(log).observations[:, 1:]
    np.testing.assert_allclose(waves[:, 0], [0, 1, 0, -1], atol=1e-6)
    np.testing.assert_allclose(waves[:, 1], [1, 0, -1, 0], atol=1e-6)
    np.testing.assert_allclose(waves[0, 2:], [0, 1], atol=1e-6)
    angle = 2 * np.pi * 6.75 / 7
    np.testing.assert_allclose(waves[3, 2:], [np.sin(angle), np.cos(angle)], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_gap": "soon"}, "`max_gap` must be a time such as 30s, 5min or 2h, not 'soon'"),
        ({"every": "0s"}, "`every` must be a time such as"),
        ({"calendar": ("moon",)}, "unknown choice of `calendar` 'moon'"),
        ({"resample": ("median",), "every": "1h"}, "unknown choice of `resample` 'median'"),
        ({"resample": ("reword=sum",), "every": "1h"}, "did you mean 'reward'"),
        ({"time_format": "%d.%m.%Y"}, "column 'time' has no times (say how they are written with `time_format`)"),
        ({"time_format": "%d.%m.%Y"}, "such as '2026-03-02 10:00' in row 0 (line 2)"),
        ({"resample": ("last",)}, "`resample` says how rows become one: say of which time each, with `every`"),
        ({"missing": ("time=ffill",)}, "`missing`: a time cannot be filled: leave such rows out with `time=drop`"),
        ({"time_column": "tme"}, "did you mean 'time'"),
        ({"time_column": "", "every": "1h"}, "`every` needs the column of the time: say it with `time_column`"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    path = write(tmp_path / "a.csv", minutes(20))
    with pytest.raises(UserError) as error:
        read_steps(formats.open_log(path, {name: value for name, value in (MEANING | options).items() if value}))
    assert message in str(error.value)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5h", 5400), ("min", 60), ("2 d", 172_800), ("", 0)])
def test_durations(text, seconds):
    assert times.parse_duration(text, "every") == seconds
    assert times.show_duration(60) == "1 min"
