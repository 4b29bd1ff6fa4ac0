import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from edp.errors import UserError
from edp.policies import GaussianConfig

OBS = jnp.asarray(np.random.default_rng(0).standard_normal((6, 3)), jnp.float32)


def build(act_dim=2, **options):
    return GaussianConfig(hidden=(8,), **options).build(3, act_dim, jax.random.key(0))


@pytest.mark.parametrize("std", [0.0, 0.4])
def test_the_likelihood_is_scipys(std):
    policy = build(std=std)
    action = np.random.default_rng(1).uniform(-1, 1, (6, 2)).astype(np.float32)
    fit = policy.fit(OBS, jnp.asarray(action), jax.random.key(0))
    mean, log_std = map(np.asarray, policy.moments(OBS))
    expected = stats.norm.logpdf(action, mean, np.exp(log_std)).sum(axis=1)
    np.testing.assert_allclose(fit.log_prob, expected, rtol=1e-4)
    np.testing.assert_allclose(fit.bc, -expected, rtol=1e-4)
    np.testing.assert_allclose(fit.action, mean, rtol=1e-6)
    if std:
        np.testing.assert_allclose(log_std, np.log(0.4), rtol=1e-6)


def test_the_squashed_density_integrates_to_one_and_is_that_of_its_samples():
    policy, obs = build(act_dim=1, squash=True), OBS[:1]
    density = jax.jit(lambda a: jnp.exp(policy.fit(obs, a[None, None], jax.random.key(0)).log_prob[0]))
    total, _ = integrate.quad(lambda a: float(density(jnp.float32(a))), -0.99999, 0.99999, limit=100)
    assert total == pytest.approx(1, abs=1e-2)
    many = jnp.tile(obs, (500, 1))
    action, log_prob = policy.sample_with_log_prob(many, jax.random.key(1))
    again = policy.fit(many, action, jax.random.key(0)).log_prob
    inside = np.abs(np.asarray(action))[:, 0] < 0.999  # nearer to the border, float32 cannot tell actions apart
    assert inside.mean() > 0.8
    np.testing.assert_allclose(np.asarray(log_prob)[inside], np.asarray(again)[inside], atol=0.02)


@pytest.mark.parametrize("squash", [False, True])
def test_samples_spread_around_what_acts(squash):
    policy = build(std=0.1, squash=squash)
    samples = jax.vmap(policy.sample, (None, 0))(OBS, jax.random.split(jax.random.key(0), 4000))
    assert np.abs(samples).max() <= 1
    np.testing.assert_allclose(np.median(samples, axis=0), policy.act(OBS, jax.random.key(0)), atol=0.01)


def test_dropout_is_for_fitting_only():
    dropped, plain = build(dropout=0.5), build()
    action = jnp.zeros((6, 2))
    losses = [np.asarray(dropped.fit(OBS, action, jax.random.key(i)).log_prob) for i in range(2)]
    assert (losses[0] != losses[1]).any()
    for key in jax.random.split(jax.random.key(0), 2):
        np.testing.assert_array_equal(dropped.act(OBS, key), plain.act(OBS, key))
        np.testing.assert_array_equal(dropped.sample(OBS, key), plain.sample(OBS, key))


def test_a_standard_deviation_shared_by_all_states():
    policy = build(shared_std=True)
    assert policy.net.layers[-1].bias.shape == (2,)
    policy = eqx.tree_at(lambda p: p.log_std, policy, jnp.asarray([-1.0, 7.0]))
    mean, log_std = policy.moments(OBS)
    np.testing.assert_allclose(log_std, np.tile([-1.0, 2.0], (6, 1)))  # at most `max_log_std`
    expected = stats.norm.logpdf(np.zeros((6, 2)), np.asarray(mean), np.exp(np.asarray(log_std))).sum(axis=1)
    np.testing.assert_allclose(policy.fit(OBS, jnp.zeros((6, 2)), jax.random.key(0)).log_prob, expected, rtol=1e-4)
    assert len(jax.tree.leaves(build())) == len(jax.tree.leaves(policy)) - 1  # otherwise there is no such array
    with pytest.raises(UserError, match="leave one of them out"):
        build(shared_std=True, std=0.1)


def test_the_largest_standard_deviation():
    assert float(build(max_log_std=-3.0).moments(100 * OBS)[1].max()) == -3.0
