"""Spaces of several parts become rows of numbers."""

import gymnasium
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edp.data.formats import spaces as flat_spaces
from support.logs import (
    examples,
)
from support.spaces import nested, sampled, stacked


@examples(150)
@given(space=nested(), count=st.integers(1, 4), seed=st.integers(0, 2**16))
def test_spaces_are_flattened_as_gymnasium_does_it(space, count, seed):
    values = sampled(space, count, seed)
    found = flat_spaces.flatten_values(space, stacked(space, values), count)
    np.testing.assert_array_equal(found, [gymnasium.spaces.flatten(space, value) for value in values])
    names = flat_spaces.part_names(space)
    assert len(names) == len(set(names)) == found.shape[1]
