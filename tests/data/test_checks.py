"""Episodes that are cut at a limit."""

from hypothesis import given
from hypothesis import strategies as st

from edp.data.dataset import read_steps
from edp.data.log import Log
from support.logs import (
    assert_same_steps,
    examples,
    random_logs,
)


@examples(100)
@given(steps=random_logs(), limit=st.integers(1, 7), size=st.integers(1, 5))
def test_episodes_are_cut_off_as_a_slow_loop_cuts_them(steps, limit, size):
    terminals, timeouts, count = steps.terminals.copy(), steps.timeouts.copy(), 0
    for row in range(len(terminals)):
        count += 1
        if count == limit:
            terminals[row], timeouts[row], count = False, True, 0
        if steps.ends[row]:
            count = 0
    cut = [steps.rows(slice(at, at + size)) for at in range(0, len(terminals), size)]
    found = read_steps(Log("recorded", lambda: iter(cut), limit=limit))
    assert_same_steps(found, steps._replace(terminals=terminals, timeouts=timeouts))
