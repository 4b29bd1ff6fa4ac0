"""Logs from arrays and from lists of episodes."""

import re

import numpy as np
import pytest
from hypothesis import given

import edp
from edp.data.arrays import from_arrays, from_episodes, split_episodes
from edp.data.dataset import read_dataset
from edp.errors import UserError
from support.logs import (
    assert_same,
    examples,
    random_logs,
    transitions,
)


@examples(50)
@given(steps=random_logs())
def test_episodes_and_arrays_are_the_same_log(steps):
    episodes = []
    for part in split_episodes(steps):
        after = [] if part.next_observations is None else part.next_observations[-1:]
        content = {"observations": np.concatenate([part.observations, *([after] if len(after) else [])])}
        episodes.append(content | {"actions": part.actions, "rewards": part.rewards, "terminated": part.terminals[-1]})
    a, b = transitions(from_arrays(*steps[:6])), transitions(from_episodes(episodes))
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert_same(a, b)
        np.testing.assert_array_equal(a.episode, b.episode)
        if steps.ends[-1]:
            np.testing.assert_array_equal(a.returns, b.returns)


def test_lists_of_different_lengths_are_no_arrays():
    with pytest.raises(UserError, match="mine: "):
        from_arrays([[1], [1, 2]], [[1], [1]], [0, 0], [0, 0], name="mine")


def an_episode(**changed):
    found = {"observations": np.zeros((5, 2)), "actions": np.zeros((5, 1)), "rewards": np.zeros(5), "terminated": True}
    return {key: value for key, value in (found | changed).items() if value is not None}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"terminated": [False] * 5}, "episode 0: terminated must be one True or False for the whole episode"),
        ({"terminated": np.zeros(5, bool)}, "not an array of shape (5,)"),
        ({"terminated": "False"}, "not 'False'"),
        ({"terminated": np.nan}, "not nan"),
        ({"terminated": 0}, "not 0"),
        ({"truncated": [True]}, "truncated must be one True or False"),
        ({"terminated": None}, "has no terminated"),
        ({"termnated": True}, "unknown key 'termnated': did you mean 'terminated'?"),
        ({"infos": {}}, "unknown key 'infos'"),
        ({"observations": np.zeros((6, 2)), "next_observations": np.zeros((5, 2))}, "give one of them"),
        ({"observations": np.zeros(5)}, "observations has shape (5,): give a row for each step, (5, 1) for one number"),
    ],
)
def test_episodes_that_are_not_understood(changed, message):
    with pytest.raises(UserError, match=re.escape(message)):
        edp.from_episodes([an_episode(**changed)])


def test_an_episode_that_is_no_dict():
    with pytest.raises(UserError, match="episode 1: must be a dict"):
        edp.from_episodes([an_episode(), (np.zeros((5, 2)), np.zeros((5, 1)))])  # pyright: ignore


@pytest.mark.parametrize(
    ("flags", "ended"),
    [
        ({"terminated": np.bool_(True)}, True),
        ({"terminated": np.True_, "truncated": True}, True),
        ({"terminated": False, "truncated": False}, False),
        ({"terminated": None, "truncated": True}, False),
        ({"terminated": None, "truncated": False}, True),
    ],
)
def test_either_flag_of_an_episode_tells_how_it_ended(flags, ended):
    (steps,) = edp.from_episodes([an_episode(**flags)]).pieces()
    np.testing.assert_array_equal(steps.terminals, [False] * 4 + [ended])
    np.testing.assert_array_equal(steps.timeouts, [False] * 4 + [not ended])


def test_episodes_may_have_the_states_after_their_steps(rng):
    after = rng.normal(size=(5, 2))
    data = read_dataset(edp.from_episodes([an_episode(next_observations=after, terminated=False)]))
    np.testing.assert_array_equal(data.next_obs, after.astype(np.float32))
