"""A problem whose answer is known: two modes in the data, one of them good (see examples/bandit.py)."""

import numpy as np
import pytest
from scipy import stats

import bandit as example
import contextual_bandit

HELD_OUT = contextual_bandit.make(1000, seed=99)
RL = [name for name in example.CASES if not name.startswith("BC")]


class TestImitation:
    def test_diffusion_bc_reproduces_both_modes(self):
        """A Kolmogorov-Smirnov test does not tell its samples from data that it has not seen."""
        actions = example.sample(example.fit(example.CASES["BC, diffusion"]), HELD_OUT.obs)
        assert stats.ks_2samp(actions[:, 0], HELD_OUT.action[:, 0]).pvalue > 0.01  # pyright: ignore[reportAttributeAccessIssue]
        shares = (contextual_bandit.share_in_good_mode(HELD_OUT.obs, sign * actions) for sign in (1, -1))
        assert all(share > 0.4 for share in shares)

    def test_gaussian_bc_puts_its_mass_between_them(self):
        policy = example.fit(example.CASES["BC, Gaussian"])
        middle = policy.act(HELD_OUT.obs, None)
        assert np.abs(middle).max() < 0.2, "the likeliest action is one that the data never shows"
        actions = example.sample(policy, HELD_OUT.obs)
        assert stats.ks_2samp(actions[:, 0], HELD_OUT.action[:, 0]).pvalue < 1e-6  # pyright: ignore[reportAttributeAccessIssue]
        assert np.mean(np.abs(actions) < 0.3) > 10 * np.mean(np.abs(HELD_OUT.action) < 0.3)


class TestImprovement:
    @pytest.mark.parametrize("name", RL)
    def test_rl_with_the_diffusion_policy_moves_to_the_good_mode(self, name):
        """With the surrogate likelihood and with the ELBO alike."""
        actions = example.sample(example.fit(example.CASES[name]), HELD_OUT.obs)
        assert contextual_bandit.share_in_good_mode(HELD_OUT.obs, actions) > 0.9


def test_the_data_is_half_good():
    assert contextual_bandit.share_in_good_mode(HELD_OUT.obs, HELD_OUT.action) == pytest.approx(0.5, abs=0.05)
    assert (
        HELD_OUT.reward[(HELD_OUT.action * contextual_bandit.good(HELD_OUT.obs))[:, 0] > 0].min()
        > HELD_OUT.reward.mean()
    )
