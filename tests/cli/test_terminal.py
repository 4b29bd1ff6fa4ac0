"""Numbers as text."""

import numpy as np

from edp.cli.terminal import sparkline


def test_sparklines_go_from_the_lowest_to_the_highest():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5, np.nan, 9]) == "▁ █"
    assert len(sparkline(range(1000), 20)) == 20
    assert sparkline([3, 3]) == "▄▄"
    assert sparkline([]) == sparkline([np.nan]) == ""
