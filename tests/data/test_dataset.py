"""Transitions from steps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edp.data.dataset import read_dataset, with_next_observations
from edp.data.log import Log, Steps, join_steps
from support.logs import (
    assert_same_steps,
    examples,
    random_logs,
)
from support.malformed import (
    small_log,
)


def slowly_followed(steps):
    """The rows of the transitions, their next states, and the number of their episodes, from the words in log.py."""
    rows, following, episode, number = [], [], [], 0
    for row in range(len(steps.rewards)):
        last, ended = row + 1 == len(steps.rewards), steps.terminals[row] or steps.timeouts[row]
        if steps.next_observations is not None:
            rows, following = [*rows, row], [*following, steps.next_observations[row]]
            episode.append(number)
        elif steps.terminals[row] or not (ended or last):
            rows, following = [*rows, row], [*following, steps.observations[row if last else row + 1]]
            episode.append(number)
        number += ended
    return rows, following, episode


@examples(100)
@given(steps=random_logs(), size=st.integers(1, 5))
def test_the_next_state_is_found_as_a_slow_loop_finds_it(steps, size):
    rows, following, episode = slowly_followed(steps)
    cut = [steps.rows(slice(at, at + size)) for at in range(0, len(steps.rewards), size)]
    found = list(with_next_observations(iter(cut)))
    assert sum(len(part.rewards) for part, _ in found) == len(rows)
    if rows:
        together = join_steps([part for part, _ in found])
        assert_same_steps(
            together,
            steps._replace(next_observations=steps.observations)
            .rows(rows)
            ._replace(next_observations=np.array(following)),
        )
        np.testing.assert_array_equal(np.concatenate([numbers for _, numbers in found]), episode)


def test_a_log_that_claims_any_size_is_read():
    steps = Steps(**small_log())
    for size in (-1, 10**15, 10**30):
        assert len(read_dataset(Log("a", lambda: iter([steps]), size)).obs) == 12
