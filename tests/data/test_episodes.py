import numpy as np
import pytest

from edp.data import episodes
from edp.data.log import Dataset
from edp.errors import UserError


@pytest.fixture
def dataset():
    """Three episodes of 2, 3 and 1 steps; the first ends in a terminal."""
    return Dataset(
        obs=np.arange(6, dtype=np.float32)[:, None],
        action=np.zeros((6, 1), np.float32),
        reward=np.array([1, 2, 3, 4, 5, 6], np.float32),
        next_obs=np.arange(1, 7, dtype=np.float32)[:, None],
        not_done=np.array([1, 0, 1, 1, 1, 1], np.float32),
        episode=np.array([0, 0, 1, 1, 1, 2]),
        returns=np.array([3.0, 12.0]),
        behaviours=[],
    )


def test_tails_are_discounted_returns_to_the_end_of_the_episode(dataset):
    tail = episodes.tails(dataset, 0.5)
    np.testing.assert_allclose(tail.reward, [1 + 1, 2, 3 + 2 + 1.25, 4 + 2.5, 5, 6])
    np.testing.assert_allclose(tail.discount, [0, 0, 0.125, 0.25, 0.5, 0.5])
    np.testing.assert_allclose(tail.obs[:, 0], [2, 2, 5, 5, 5, 6])


def test_sequences_know_the_return_to_go_and_the_step(dataset):
    made = episodes.sequences(dataset, context=2, return_scale=10.0)
    np.testing.assert_allclose(made.to_go, np.array([3, 2, 12, 9, 5, 6]) / 10)
    np.testing.assert_array_equal(made.step, [0, 1, 0, 1, 2, 0])


def test_windows_stay_within_their_episode(dataset):
    import jax

    made = jax.tree.map(jax.numpy.asarray, episodes.sequences(dataset, context=3, return_scale=1.0))
    windows = made.draw(jax.random.key(0), 300)
    assert windows.mask.shape == (100, 3)
    for obs, step, mask in zip(windows.obs[:, :, 0], windows.step, windows.mask, strict=True):
        end = int(obs[-1])
        length = int(made.step[end]) + 1
        np.testing.assert_array_equal(mask, np.arange(3) >= 3 - length)
        np.testing.assert_array_equal(obs[mask], np.arange(end - min(length, 3) + 1, end + 1))
        np.testing.assert_array_equal(step[mask], made.step[obs[mask].astype(int)])
    assert set(np.asarray(windows.obs[:, -1, 0]).astype(int)) == set(range(6))


@pytest.mark.parametrize(("share", "rows"), [(0.01, [2, 3, 4]), (0.34, [2, 3, 4, 5]), (1.0, range(6))])
def test_the_best_episodes_by_return(dataset, share, rows):
    np.testing.assert_array_equal(np.flatnonzero(episodes.best(dataset, share)), rows)
    np.testing.assert_array_equal(episodes.prepare(dataset, "raw", share).learned.obs[:, 0], rows)


def test_the_best_episodes_keep_the_scale_of_all(dataset):
    kept = episodes.prepare(dataset, "min-max", 0.01).learned
    np.testing.assert_allclose(kept.reward, [-0.2, 0.2, 0.6], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("raw", [1, 2, 3, 4, 5, 6]),
        ("minus-one", [0, 1, 2, 3, 4, 5]),
        ("centred", [2, 6, 10, 14, 18, 22]),
        ("min-max", [-1, -0.6, -0.2, 0.2, 0.6, 1]),
        ("return-range", np.array([1, 2, 3, 4, 5, 6]) * 1000 / 9),
    ],
)
def test_rewards(dataset, name, expected):
    np.testing.assert_allclose(episodes.with_rewards(dataset, name).reward, expected, atol=1e-6)


def test_constant_rewards_have_no_range(dataset):
    flat = dataset._replace(reward=np.ones(6, np.float32), episode=np.arange(6))
    np.testing.assert_allclose(episodes.with_rewards(flat, "min-max").reward, 0)
    np.testing.assert_allclose(episodes.with_rewards(flat, "return-range").reward, 1)


def test_unknown_rewards_are_refused(dataset):
    with pytest.raises(UserError, match="did you mean 'min-max'"):
        episodes.with_rewards(dataset, "minmax")
