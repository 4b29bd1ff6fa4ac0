"""Controlled sampling and energy-based action selection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from edp.acting.actors import Actors
from edp.acting.selection import Selection, act, select_action
from edp.algorithms import TD3BC, InitialState
from edp.config.spec import DataOptions, EvalOptions, Spec, TrainOptions
from edp.data.tasks import get_task
from edp.data.units import identity_units
from edp.networks import Critic
from edp.policies import DiffusionConfig, GaussianConfig
from edp.policies.base import PLAIN, Control
from edp.policies.gaussian import Gaussian


class Uniform:
    """Samples one of four actions, equally likely."""

    deterministic = False

    def sample(self, obs, key, control=PLAIN):
        return jax.random.randint(key, (obs.shape[0], 1), 0, 4) / 4

    act = sample


def critic(obs, action):
    """The smaller of two Q-functions is four times the action times the state."""
    return jnp.stack([4 * (obs * action)[:, 0], 4 * (obs * action)[:, 0] + 1])


def test_eas_draws_by_exp_q_for_several_states_at_once():
    """With many candidates, EAS draws action a in state s with probability proportional to exp(s · a)."""
    states, draws = jnp.asarray([[0.0], [0.5], [-1.0]]), 3000
    act = jax.jit(jax.vmap(lambda key: select_action(Uniform(), critic, states, key, Selection(200))))  # pyright: ignore
    actions = np.asarray(act(jax.random.split(jax.random.key(0), draws)))[:, :, 0]
    for i, state in enumerate(np.asarray(states)[:, 0]):
        counts = np.bincount((4 * actions[:, i]).astype(int), minlength=4)
        expected = np.exp(state * np.arange(4))
        assert stats.chisquare(counts, draws * expected / expected.sum()).pvalue > 1e-3


def test_eas_with_one_action_is_plain_sampling():
    obs, key = jnp.ones((5, 1)), jax.random.key(0)
    plain = Uniform().sample(obs, jax.random.split(key)[0])
    np.testing.assert_array_equal(select_action(Uniform(), critic, obs, key, Selection()), plain)  # pyright: ignore


def test_eas_at_another_temperature_draws_by_exp_q_over_it_and_at_zero_takes_the_best():
    states, draws = jnp.asarray([[0.5], [-1.0]]), 3000
    for temperature in (0.5, 2.0):
        selection = Selection(200, temperature=temperature)
        choose = lambda key, selection=selection: select_action(Uniform(), critic, states, key, selection)  # pyright: ignore # noqa: E731
        act = jax.jit(jax.vmap(choose))
        actions = np.asarray(act(jax.random.split(jax.random.key(0), draws)))[:, :, 0]
        for i, state in enumerate(np.asarray(states)[:, 0]):
            counts = np.bincount((4 * actions[:, i]).astype(int), minlength=4)
            expected = np.exp(state * np.arange(4) / temperature)
            assert stats.chisquare(counts, draws * expected / expected.sum()).pvalue > 1e-3
    best = select_action(Uniform(), critic, states, jax.random.key(0), Selection(200, temperature=0.0))  # pyright: ignore
    np.testing.assert_array_equal(best, [[0.75], [0]])


POLICIES = {
    "dpm": DiffusionConfig(hidden=(8,), calls=3),
    "ddpm": DiffusionConfig(hidden=(8,), sampler="ddpm", calls=3),
    "gaussian": GaussianConfig(hidden=(8,)),
    "squashed": GaussianConfig(hidden=(8,), squash=True),
}


@pytest.mark.parametrize("name", POLICIES)
def test_controlled_sampling_has_the_right_limits(name):
    """A scale and noise of 1 change nothing; without noise, sampling is deterministic; a sharper policy varies less."""
    policy, obs = POLICIES[name].build(3, 2, jax.random.key(0)), jnp.ones((400, 3))
    sample = jax.jit(lambda key, control: policy.sample(obs, key, control))
    plain = sample(jax.random.key(1), Control())
    np.testing.assert_allclose(plain, policy.sample(obs, jax.random.key(1)), atol=5e-5)  # compiled or not
    assert np.std(plain, axis=0).min() > 0.05
    still = sample(jax.random.key(1), Control(noise=0.0))
    np.testing.assert_array_equal(still, jnp.broadcast_to(still[:1], still.shape))
    np.testing.assert_array_equal(still, sample(jax.random.key(2), Control(noise=0.0)))
    other = sample(jax.random.key(1), Control(scale=1.5))
    assert not np.array_equal(other, plain)
    if isinstance(policy, Gaussian) and not policy.squash:
        inside = (np.abs(plain) < 1) & (np.abs(other) < 1)
        mean = policy.act(obs, jax.random.key(0))
        np.testing.assert_allclose((other - mean)[inside], ((plain - mean) / 1.5**0.5)[inside], rtol=1e-3, atol=1e-5)


def test_the_ways_of_acting_share_one_compiled_program():
    policies = jax.vmap(lambda key: POLICIES["dpm"].build(3, 2, key))(jax.random.split(jax.random.key(0), 2))
    critics = jax.vmap(lambda key: Critic(3, 2, (8,), key))(jax.random.split(jax.random.key(1), 2))
    keys = jax.random.split(jax.random.key(2), (2, 4))
    numbers = jnp.ones((2, 4, 3)), jnp.zeros((2, 4)), jnp.zeros((2, 4), int)
    before = act._cache_size()  # pyright: ignore[reportAttributeAccessIssue]
    seen = [
        act(policies, critics, None, *numbers, keys, Selection(5, "raw", Control(scale, noise), temperature, spread))[1]
        for scale, noise, temperature, spread in ((1.0, 1.0, 1.0, 0.0), (2.0, 0.5, 0.0, 0.0), (1.0, 0.0, 3.0, 0.1))
    ]
    assert act._cache_size() == before + 1  # pyright: ignore[reportAttributeAccessIssue]
    assert not np.array_equal(seen[0], seen[1])


def test_eas_starts_after_its_first_step_unless_it_is_asked_for():
    options = EvalOptions(eas=10, eas_after=500, eas_spread=0.1)
    assert options.at(500) == options
    assert (options.at(499).eas, options.at(499).eas_spread) == (1, 0.0)
    assert options.with_values(eas=4).at(0).eas == 4
    assert options.with_values(eas=4, eas_after=7).at(0).eas == 1
    assert options.with_values(episodes=3).at(0).eas == 1


@pytest.mark.parametrize(("step", "candidates"), [(6, 1), (7, 4)])
def test_actors_of_early_states_do_not_select(step, candidates):
    options, policy = EvalOptions(eas=4, eas_after=7), DiffusionConfig(hidden=(8,), calls=3)
    spec = Spec(
        get_task("hopper-medium-v2"), TD3BC(), policy, DataOptions(), TrainOptions(), options, identity_units(3, 2)
    )
    init = InitialState(spec.algorithm, policy, 3, 2)
    states = jax.vmap(init)(jax.random.split(jax.random.key(0), 2))._replace(step=jnp.full(2, step))
    for place in (states, jax.tree.map(np.asarray, states)):  # on the device, and as loaded from a checkpoint
        assert Actors.from_states(spec, options, place).selection.candidates == candidates
