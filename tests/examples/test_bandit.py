"""A problem whose answer is known: two modes in the data, one of them good (see examples/bandit.py)."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import bandit as example
import contextual_bandit
from edp.training import epoch

HELD_OUT = contextual_bandit.make(1000, seed=99)
RL = [name for name in example.CASES if not name.startswith("BC")]
OPTIMISED = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": True}


@pytest.fixture
def train(monkeypatch):
    """Trains a case with an optimising compiler, which thousands of steps are worth, and draws its actions."""
    optimised = jax.jit(inspect.unwrap(epoch.epoch), static_argnames="batch_size", compiler_options=OPTIMISED)
    monkeypatch.setattr(epoch, "epoch", optimised)
    states = jnp.asarray(HELD_OUT.obs)

    def run(name):
        policy = example.fit((example.CASES | example.LATER)[name])
        return {"sampled": example.sample(policy, states), "acted": np.asarray(policy.act(states, jax.random.key(0)))}

    return run


def test_diffusion_bc_reproduces_both_modes(train):
    """A Kolmogorov-Smirnov test does not tell its samples from data that it has not seen."""
    actions = train("BC, diffusion")["sampled"]
    assert stats.ks_2samp(actions[:, 0], HELD_OUT.action[:, 0]).pvalue > 0.01  # pyright: ignore
    shares = (contextual_bandit.share_in_good_mode(HELD_OUT.obs, sign * actions) for sign in (1, -1))
    assert all(share > 0.4 for share in shares)


def test_gaussian_bc_puts_its_mass_between_them(train):
    found = train("BC, Gaussian")
    assert np.abs(found["acted"]).max() < 0.2, "the likeliest action is one that the data never shows"
    actions = found["sampled"]
    assert stats.ks_2samp(actions[:, 0], HELD_OUT.action[:, 0]).pvalue < 1e-6  # pyright: ignore
    assert np.mean(np.abs(actions) < 0.3) > 10 * np.mean(np.abs(HELD_OUT.action) < 0.3)


@pytest.mark.parametrize("name", [*RL, "TD3+BC, mean flow", "DAC"])
def test_rl_moves_to_the_good_mode(name, train):
    """With the surrogate likelihood and with the ELBO alike."""
    assert contextual_bandit.share_in_good_mode(HELD_OUT.obs, train(name)["sampled"]) > 0.9


def test_the_data_is_half_good():
    assert contextual_bandit.share_in_good_mode(HELD_OUT.obs, HELD_OUT.action) == pytest.approx(0.5, abs=0.05)
    good = (HELD_OUT.action * contextual_bandit.good(HELD_OUT.obs))[:, 0] > 0
    assert HELD_OUT.reward[good].min() > HELD_OUT.reward.mean()
