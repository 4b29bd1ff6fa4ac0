"""Rollouts: all episodes of all seeds in one batch."""

import gymnasium
import jax
import numpy as np
import pytest

from edp.acting.actors import Actors
from edp.acting.rollout import Pool, roll_out, roll_out_policies
from edp.acting.selection import Selection
from edp.envs.make import make_env
from edp.networks import Critic
from edp.policies import DiffusionConfig, TransformerConfig


class Countdown(gymnasium.Env):
    """An episode lasts as many steps as the seed of its reset. The reward is the action."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))

    def reset(self, *, seed=None, options=None):
        self.left = seed
        return np.array([float(seed)]), {}

    def step(self, action):
        self.left -= 1
        assert self.left >= 0, "stepped after its end"
        return np.array([float(self.left)]), float(action[0]), self.left == 0, False, {}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_episodes_of_different_lengths_end_on_their_own(size):
    pools = [Pool(Countdown, size) for _ in range(2)]
    scale = np.array([[[1.0]] * 3, [[10.0]] * 3])
    episodes = roll_out(lambda obs, rewards, steps: scale, pools, 3, first_seed=2)
    np.testing.assert_array_equal(episodes.lengths, [[2, 3, 4]] * 2)
    assert episodes.returns == pytest.approx(np.array([[2, 3, 4], [20, 30, 40]]))
    assert episodes.failures == {}


class Faulty(Countdown):
    """Raises or returns NaN in the episodes of some seeds."""

    def reset(self, *, seed=None, options=None):
        if seed == 5:
            raise RuntimeError("no power\nand more")
        self.seed = seed
        return super().reset(seed=seed)

    def step(self, action):  # pyright: ignore
        obs, reward, *rest = super().step(action)
        if self.seed == 3 and self.left == 1:
            raise ValueError("the arm is stuck")
        return obs * (np.nan if self.seed == 4 and self.left == 2 else 1), reward, *rest


@pytest.mark.parametrize("size", [1, 5])
def test_an_environment_that_fails_costs_its_episode_only(size):
    episodes = roll_out(lambda *_: np.ones((1, 5, 1)), [Pool(Faulty, size)], 5, first_seed=2)
    np.testing.assert_array_equal(episodes.returns, [[2, np.nan, np.nan, np.nan, 6]])
    assert episodes.failures == {
        (0, 1): "ValueError at step 1: the arm is stuck",
        (0, 2): "NaN or Inf at step 1",
        (0, 3): "RuntimeError at step 0: no power",
    }


@pytest.mark.parametrize(
    "config", [DiffusionConfig(hidden=(8,), calls=3), TransformerConfig(context=4, width=8, layers=1)]
)
def test_scores_do_not_depend_on_the_number_of_environments(config):
    """Bit for bit, on real physics."""
    policies = jax.vmap(lambda key: config.build(11, 3, key))(jax.random.split(jax.random.key(0), 2))
    critics = jax.vmap(lambda key: Critic(11, 3, (8,), key))(jax.random.split(jax.random.key(1), 2))
    actors = Actors(policies, None, Selection(1)) if config.deterministic else Actors(policies, critics, Selection(3))
    found = [
        roll_out_policies(
            actors,
            [Pool(lambda: make_env("edp/hopper-d4rl-v2"), size) for _ in range(2)],
            episodes=4,
            seed=7,
        )
        for size in (1, 3, 4)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].returns, other.returns)
        np.testing.assert_array_equal(found[0].lengths, other.lengths)
    assert len(np.unique(found[0].returns)) == 8
