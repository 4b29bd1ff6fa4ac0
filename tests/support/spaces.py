"""Random Gymnasium spaces and samples of them."""

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st


def leaves():
    sizes = st.integers(1, 4)
    shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)
    kinds = st.sampled_from([np.float32, np.float64, np.int64, np.uint8])
    return st.one_of(
        st.builds(lambda shape, kind: spaces.Box(0, 9, shape, kind), shapes, kinds),
        st.builds(lambda n, start: spaces.Discrete(n, start=start), sizes, st.integers(-3, 3)),
        st.builds(spaces.MultiBinary, sizes | st.lists(sizes, min_size=1, max_size=2)),
        st.builds(
            lambda nvec, start: spaces.MultiDiscrete(nvec, start=[start] * len(nvec)),
            st.lists(sizes, min_size=1, max_size=3),
            st.integers(-3, 3),
        ),
        st.builds(spaces.MultiDiscrete, st.lists(st.lists(sizes, min_size=2, max_size=2), min_size=1, max_size=2)),
    )


def nested():
    return st.recursive(
        leaves(),
        lambda part: st.one_of(
            st.dictionaries(st.sampled_from("xyzab"), part, min_size=1, max_size=3).map(spaces.Dict),
            st.lists(part, min_size=1, max_size=3).map(spaces.Tuple),
        ),
        max_leaves=6,
    )


def stacked(space, values):
    """Samples side by side, as Minari keeps them."""
    if isinstance(space, spaces.Dict):
        return {key: stacked(part, [value[key] for value in values]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(stacked(part, [value[i] for value in values]) for i, part in enumerate(space.spaces))
    return np.array(values)


def sampled(space, count, seed):
    space.seed(seed)
    return [space.sample() for _ in range(count)]
