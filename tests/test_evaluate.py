import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from edp.evaluate import roll_out, select_by_energy


class Uniform:
    """Samples one of four actions, equally likely."""

    deterministic = False

    def sample(self, obs, key):
        return jax.random.randint(key, (obs.shape[0], 1), 0, 4).astype(jnp.float32)

    act = sample


def critic(obs, action):
    """The smaller of two Q-functions is the action times the state."""
    return jnp.stack([(obs * action)[:, 0], (obs * action)[:, 0] + 1])


def test_eas_draws_by_exp_q_for_several_states_at_once():
    """With many candidates, EAS draws action a in state s with probability proportional to exp(s · a)."""
    states, draws = jnp.asarray([[0.0], [0.5], [-1.0]]), 3000
    act = jax.jit(jax.vmap(lambda key: select_by_energy(Uniform(), critic, states, key, 200)))  # pyright: ignore
    actions = np.asarray(act(jax.random.split(jax.random.key(0), draws)))[:, :, 0]
    for i, state in enumerate(np.asarray(states)[:, 0]):
        counts = np.bincount(actions[:, i].astype(int), minlength=4)
        expected = np.exp(state * np.arange(4))
        assert stats.chisquare(counts, draws * expected / expected.sum()).pvalue > 1e-3


def test_eas_with_one_action_is_plain_sampling():
    obs, key = jnp.ones((5, 1)), jax.random.key(0)
    plain = Uniform().sample(obs, jax.random.split(key)[0])
    np.testing.assert_array_equal(select_by_energy(Uniform(), critic, obs, key, 1), plain)  # pyright: ignore


class Countdown(gymnasium.Env):
    """Rewards the action for as many steps as the seed of its reset says."""

    def reset(self, *, seed=None, options=None):
        self.left = seed
        return np.array([float(seed)]), {}

    def step(self, action):
        self.left -= 1
        assert self.left >= 0, "stepped after its end"
        return np.array([float(self.left)]), float(action[0]), self.left == 0, False, {}


def test_episodes_of_different_lengths_end_on_their_own():
    envs = [[Countdown() for _ in range(3)] for _ in range(2)]
    scale = np.array([[[1.0]] * 3, [[10.0]] * 3])
    episodes = roll_out(lambda obs, rewards, step: scale, envs, first_seed=2)
    np.testing.assert_array_equal(episodes.lengths, [[2, 3, 4]] * 2)
    assert episodes.returns == pytest.approx(np.array([[2, 3, 4], [20, 30, 40]]))
