import numpy as np
import pytest

from edp.data import episodes
from edp.data.dataset import Dataset
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
    tail = episodes.episode_tails(dataset, 0.5)
    np.testing.assert_allclose(tail.reward, [1 + 1, 2, 3 + 2 + 1.25, 4 + 2.5, 5, 6])
    np.testing.assert_allclose(tail.discount, [0, 0, 0.125, 0.25, 0.5, 0.5])
    np.testing.assert_allclose(tail.obs[:, 0], [2, 2, 5, 5, 5, 6])


@pytest.mark.parametrize(
    ("count", "actions", "known"),
    [
        (1, [11, 0, 13, 14, 0, 0], [1, 0, 1, 1, 0, 0]),
        (2, [0, 0, 14, 0, 0, 0], [0, 0, 1, 0, 0, 0]),
        (5, [0] * 6, [0] * 6),
    ],
)
def test_next_actions_are_those_of_the_same_episode(dataset, count, actions, known):
    """Of the state that ``with_n_step_rewards`` gives as the next one."""
    dataset = dataset._replace(action=10 + np.arange(6, dtype=np.float32)[:, None])
    found = episodes.following_actions(dataset, count)
    np.testing.assert_array_equal(found.action[:, 0], actions)
    np.testing.assert_array_equal(found.known, known)
    later = episodes.with_n_step_rewards(dataset, count, 0.9).next_obs[:, 0]
    rows = found.known > 0
    np.testing.assert_array_equal(dataset.action[later[rows].astype(int), 0], found.action[rows, 0])


def test_sequences_know_the_return_to_go_and_the_step(dataset):
    made = episodes.to_sequences(dataset, context=2, return_scale=10.0)
    np.testing.assert_allclose(made.to_go, np.array([3, 2, 12, 9, 5, 6]) / 10)
    np.testing.assert_array_equal(made.step, [0, 1, 0, 1, 2, 0])


def test_windows_stay_within_their_episode(dataset):
    import jax

    made = jax.tree.map(jax.numpy.asarray, episodes.to_sequences(dataset, context=3, return_scale=1.0))
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
    np.testing.assert_array_equal(np.flatnonzero(episodes.mark_best(dataset, share)), rows)
    np.testing.assert_array_equal(episodes.prepare_episodes(dataset, "raw", share).learned.obs[:, 0], rows)


@pytest.mark.parametrize(("share", "rows"), [(0.01, [2, 3, 4]), (0.6, [2, 3, 4]), (0.7, [2, 3, 4, 5])])
def test_the_best_episodes_up_to_a_share_of_the_transitions(dataset, share, rows):
    """The episodes have 2, 3 and 1 of the 6 rows; those that are kept have fewer than the share."""
    kept = episodes.prepare_episodes(dataset, "raw", share, best_of="transitions").learned
    assert list(kept.obs[:, 0]) == rows


def test_the_best_episodes_keep_the_scale_of_all(dataset):
    kept = episodes.prepare_episodes(dataset, "min-max", 0.01).learned
    np.testing.assert_allclose(kept.reward, [-0.2, 0.2, 0.6], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("raw", [1, 2, 3, 4, 5, 6]),
        ("minus-one", [0, 1, 2, 3, 4, 5]),
        ("centred", [2, 6, 10, 14, 18, 22]),
        ("hundredfold", [100, 200, 300, 400, 500, 600]),
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


def slow_n_step(data, count, discount):
    """One row at a time: (reward, the row whose next state is asked for, discount of its value after the first)."""
    found = []
    for row in range(len(data.obs)):
        total, factor, last = 0.0, 1.0, row
        for step in range(count):
            if row + step >= len(data.obs) or data.episode[row + step] != data.episode[row]:
                break
            total, last = total + factor * data.reward[row + step], row + step
            factor *= discount
        found.append((total, data.next_obs[last, 0], data.not_done[last] * factor / discount))
    return np.array(found).T


@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("piece", [2, 65_536])
def test_n_step_returns_go_as_far_as_the_episode(dataset, count, piece, monkeypatch):
    monkeypatch.setattr(episodes, "PIECE", piece)
    made = episodes.with_n_step_rewards(dataset, count, 0.5)
    reward, next_obs, not_done = slow_n_step(dataset, count, 0.5)
    np.testing.assert_allclose(made.reward, reward)
    np.testing.assert_allclose(made.next_obs[:, 0], next_obs)
    np.testing.assert_allclose(made.not_done, not_done)
    np.testing.assert_array_equal(made.obs, dataset.obs)


def test_n_step_targets_agree_with_one_step_targets_of_the_true_values(dataset):
    """With V(s) the true discounted return to the end, any n gives the same target."""
    truth = {float(obs): 2.0 * obs for obs in range(8)}
    reward = np.array(  # such that r + 0.5 not_done V(s') = V(s)
        [
            truth[float(obs)] - 0.5 * alive * truth[float(after)]
            for obs, after, alive in zip(dataset.obs[:, 0], dataset.next_obs[:, 0], dataset.not_done, strict=True)
        ],
        np.float32,
    )
    data = dataset._replace(reward=reward)
    for count in (1, 2, 5):
        made = episodes.with_n_step_rewards(data, count, 0.5)
        target = made.reward + 0.5 * made.not_done * 2.0 * made.next_obs[:, 0]
        np.testing.assert_allclose(target, 2.0 * dataset.obs[:, 0], atol=1e-6)


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.01, 1), (0.34, 1), (0.6, 2), (0.9, 2)])
def test_whole_episodes_are_held_out_and_always_the_same(dataset, share, count):
    marked = episodes.mark_held_out(dataset, share)
    for episode in range(3):
        assert len(set(marked[dataset.episode == episode])) == 1
    assert len(set(dataset.episode[marked])) == count
    np.testing.assert_array_equal(marked, episodes.mark_held_out(dataset, share))


def test_nothing_is_held_out_of_one_episode(dataset):
    alone = dataset._replace(episode=np.zeros(6, int))
    assert not episodes.mark_held_out(alone, 0.5).any()
    assert episodes.prepare_episodes(alone, "raw", 1.0, 0.5).held is None


def test_held_out_episodes_are_not_learned_from(dataset):
    learned, held = episodes.prepare_episodes(dataset, "min-max", 1.0, 0.34)
    assert held is not None
    assert sorted([*learned.obs[:, 0], *held.obs[:, 0]]) == [0, 1, 2, 3, 4, 5]
    both = {obs: reward for part in (learned, held) for obs, reward in zip(part.obs[:, 0], part.reward, strict=True)}
    assert [both[float(obs)] for obs in range(6)] == pytest.approx([-1, -0.6, -0.2, 0.2, 0.6, 1])  # the scale of all


def test_files_stay_files(dataset, tmp_path, monkeypatch):
    """Data on disk is not read into memory as a whole."""
    monkeypatch.setenv("EDP_CACHE", str(tmp_path))
    from edp.data.arrays import from_arrays
    from edp.data.dataset import read_dataset

    ends = np.array([0, 1, 0, 0, 1, 1], bool)
    log = from_arrays(dataset.obs, dataset.action, dataset.reward, ends & False, ends, dataset.next_obs)
    data = read_dataset(log, on_disk=True)
    learned, held = episodes.prepare_episodes(data, "unit", 0.9, 0.34)
    assert held is not None
    for part in (data.obs, learned.obs, held.next_obs, episodes.with_n_step_rewards(data, 2, 0.9).next_obs):
        assert isinstance(part, np.memmap)
