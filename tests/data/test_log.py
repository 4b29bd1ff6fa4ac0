"""Timeouts from terminals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edp.data.log import find_timeouts
from support.logs import (
    examples,
)


@examples(100)
@given(terminals=st.lists(st.booleans(), max_size=40), limit=st.none() | st.integers(0, 9))
def test_timeouts_are_found_as_a_slow_loop_finds_them(terminals, limit):
    wanted, count = [], 0
    for ended in terminals:
        count += 1
        wanted.append(count == limit)
        if ended or count == limit:
            count = 0
    np.testing.assert_array_equal(find_timeouts(np.array(terminals, bool), limit), np.array(wanted, bool))
