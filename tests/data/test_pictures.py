"""The page of pictures of a log, and what is drawn in it."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from edp.data.arrays import from_arrays
from edp.data.health import examine_log
from edp.data.pictures import health_figure
from edp.drawing import BLUE, COLOURS, LIGHT, ORANGE, drawing_style


def figure_of(log, labels=None):
    with drawing_style():
        return health_figure(examine_log(log), labels)


def waves(length=40, count=5, width=2, **about):
    step = np.tile(np.arange(length), count)
    obs = np.stack([np.sin(step / 5 + i) + np.repeat(np.arange(count), length) for i in range(width)], axis=1)
    return from_arrays(obs, np.cos(step / 5)[:, None], step / length, step == length - 1, **about)


def traces(figure):
    """The axes with traces, by the names of their columns."""
    return {axes.get_ylabel(): axes for axes in figure.axes if axes.get_xlabel().startswith(("step of", "hour of"))}


def test_each_column_has_a_histogram_and_a_trace_with_named_axes():
    figure = figure_of(waves(action_names=("valve_%",), observation_names=("level_%", "temp_C")))
    assert list(traces(figure)) == ["level_%", "temp_C", "valve_%", "reward"]
    names = [axes.get_xlabel() for axes in figure.axes if axes.get_ylabel() == "steps"]
    assert names == ["observation level_%", "observation temp_C", "action valve_%", "reward"]
    (line,) = traces(figure)["valve_%"].lines
    np.testing.assert_allclose(np.asarray(line.get_ydata()), np.cos(np.arange(40) / 5))
    assert to_hex(line.get_color()) == ORANGE
    title = figure.get_suptitle()
    assert title.endswith("Traces: episode 3 of 5, nearest to the median of 5 episodes")


def test_operators_have_their_colours_in_traces_and_histograms():
    labels = np.tile(np.repeat(["bert", "anna", "", "bert"], 10), 5)
    figure = figure_of(waves(), labels)
    legend = next(axes.get_legend() for axes in figure.axes if axes.get_legend())
    assert [text.get_text() for text in legend.get_texts()] == ["anna", "bert", "others, or unknown"]
    first = traces(figure)["observation 0"]
    drawn = {to_hex(line.get_color()): np.isfinite(line.get_ydata()) for line in first.lines}
    assert list(drawn) == [COLOURS[0], COLOURS[1], LIGHT]
    assert np.flatnonzero(drawn[COLOURS[0]]).tolist() == list(range(10, 21))  # and up to the next row
    assert np.flatnonzero(drawn[COLOURS[1]]).tolist() == [*range(11), *range(30, 40)]
    bars = next(axes for axes in figure.axes if axes.get_xlabel() == "observation 0")
    assert [to_hex(part[0].get_facecolor()) for part in bars.containers] == [COLOURS[0], COLOURS[1], LIGHT]  # pyright: ignore
    heights = [sum(patch.get_height() for patch in part) for part in bars.containers]
    assert heights == [50, 100, 50]


def test_without_operators_there_is_no_legend():
    figure = figure_of(waves())
    assert not any(axes.get_legend() for axes in figure.axes)
    assert {to_hex(line.get_color()) for line in traces(figure)["observation 0"].lines} == {BLUE}


def test_lines_are_not_joined_over_gaps(tmp_path):
    from edp.data.formats import open_log

    minutes = [minute for minute in range(0, 1440, 10) if not 600 <= minute < 720]
    lines = ["time,observation_a,action_b,reward", *(f"{60 * minute},{minute},{minute % 7},0" for minute in minutes)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    axes = traces(figure_of(open_log(str(tmp_path / "log.csv"), {"time_column": "time"})))["observation_a"]
    (line,) = axes.lines
    hours, values = line.get_data()
    assert np.isnan(values[60]) and hours[59] == pytest.approx(590 / 60) and hours[61] == 12.0  # pyright: ignore
    assert np.isnan(values).sum() == 1 and axes.get_xlim() == (0, 24)


def test_many_observations_have_traces_and_one_picture_of_their_quantiles():
    figure = figure_of(waves(width=45))
    assert len(traces(figure)) == 40 + 2
    assert any("the first 40 of 45" in text.get_text() for text in figure.findobj(Text))  # pyright: ignore


def test_a_column_without_numbers_says_so():
    log = waves()
    steps = next(log.pieces())
    steps.observations[:, 1] = np.nan
    figure = figure_of(from_arrays(*steps[:4]))
    assert any(text.get_text() == "no number" for text in traces(figure)["observation 1"].texts)
