"""The share of noise in a log's actions, and how often its reward changes."""

import numpy as np
import pytest

from edp.data.dataset import Dataset
from edp.data.smoothness import noise_share, reward_changes


def walk(rng, noise, memory, episodes=40, length=100):
    """A state that the actions move, and actions that depend on it: with independent noise, and with slow noise."""
    obs, action, episode = [], [], []
    for number in range(episodes):
        state, slow = rng.standard_normal(2), np.zeros(2)
        for _ in range(length):
            slow = 0.95 * slow + memory * rng.standard_normal(2)
            act = -0.5 * state + noise * rng.standard_normal(2) + slow
            obs.append(state)
            action.append(act)
            episode.append(number)
            state = state + 0.1 * act
    obs, action = (np.array(part, np.float32) for part in (obs, action))
    ones = np.ones(len(obs), np.float32)
    return Dataset(obs, action, ones, obs, ones, np.array(episode), np.zeros(episodes), [])


def test_a_policy_with_independent_noise_has_only_noise(rng):
    assert noise_share(walk(rng, noise=0.3, memory=0.0)) == pytest.approx(1.0, abs=0.02)


def test_actions_that_move_slowly_have_little(rng):
    """The slow part is 0.95 of the one before it and new noise, which is 1 - 0.95² of its variance."""
    assert noise_share(walk(rng, noise=0.0, memory=0.1)) == pytest.approx(1 - 0.95**2, abs=0.05)


def test_both_together_are_in_between(rng):
    assert 0.3 < noise_share(walk(rng, noise=0.3, memory=0.1)) < 0.95


def test_what_follows_from_the_state_is_no_noise_and_no_memory(rng):
    data = walk(rng, noise=0.0, memory=0.0)
    assert noise_share(data) == 1.0
    constant = data._replace(action=np.ones_like(data.action))
    assert noise_share(constant) == 1.0


def test_too_little_data_tells_nothing(rng):
    assert noise_share(walk(rng, noise=0.0, memory=0.1, episodes=1, length=10)) == 1.0
    assert noise_share(walk(rng, noise=0.0, memory=0.1, episodes=40, length=1)) == 1.0


def test_rows_of_two_episodes_are_no_pair(rng):
    """Episodes of two rows whose second action repeats the first; the next episode begins with another one."""
    action = rng.standard_normal((500, 1)).repeat(2, axis=0).astype(np.float32)
    obs, ones = rng.standard_normal((1000, 3)).astype(np.float32), np.ones(1000, np.float32)
    data = Dataset(obs, action, ones, obs, ones, np.arange(500).repeat(2), np.zeros(500), [])
    assert noise_share(data) < 0.01


def test_changes_of_the_reward_are_counted_within_episodes():
    """Of the four pairs of neighbours, one differs; so do the rewards at the border of the two episodes."""
    obs, reward = np.zeros((6, 1), np.float32), np.array([0, 0, 1, 2, 2, 2], np.float32)
    data = Dataset(obs, obs, reward, obs, reward, np.array([0, 0, 0, 1, 1, 1]), np.zeros(2), [])
    assert reward_changes(data) == 0.25
    assert reward_changes(data._replace(episode=np.arange(6))) == 1.0  # nothing to compare
