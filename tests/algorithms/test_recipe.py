"""Options that the recipe uses, against values computed by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from edp.algorithms import IQL, TD3BC
from edp.algorithms.actor_critic import learning_rate
from edp.algorithms.energies import raw_energy, relative_energy
from edp.algorithms.td3bc import gain_in_slopes, gain_in_spreads, gain_in_values
from edp.algorithms.weighted import exponential, weigh
from edp.errors import UserError
from edp.networks import MLP, Critic, mish
from edp.policies import DiffusionConfig, Fit, FlowConfig, Policy
from support.tiny_batch import BATCH


def test_the_learning_rate_rises_and_falls_along_a_cosine():
    rate = learning_rate(0.1, warmup=10, decay=110)
    assert callable(rate)
    got = [float(rate(step)) for step in (0, 5, 10, 60, 110, 200)]
    np.testing.assert_allclose(got, [0, 0.05, 0.1, 0.05, 0, 0], atol=1e-6)
    assert learning_rate(0.1, 0, 0) == 0.1
    np.testing.assert_allclose(float(learning_rate(0.1, 0, 100)(0)), 0.1)  # pyright: ignore
    np.testing.assert_allclose(float(learning_rate(0.1, 4, 0)(2)), 0.05)  # pyright: ignore


def test_layer_norm_is_before_each_activation():
    net, x = MLP(3, (5, 4), 2, jax.random.key(0), norm=True), jax.random.normal(jax.random.key(1), (7, 3))
    h = np.asarray(x)
    for layer in net.layers[:-1]:
        h = h @ np.asarray(layer.weight) + np.asarray(layer.bias)
        h = np.asarray(mish(jnp.asarray((h - h.mean(axis=1, keepdims=True)) / h.std(axis=1, keepdims=True))))
    expected = h @ np.asarray(net.layers[-1].weight) + np.asarray(net.layers[-1].bias)
    np.testing.assert_allclose(net(x), expected, rtol=1e-3, atol=1e-4)


def test_an_ensemble_of_any_size_is_valued_by_its_min_or_below_its_mean():
    q = jnp.asarray([[1.0, 2.0], [4.0, 2.0], [1.0, 5.0]])
    np.testing.assert_allclose(TD3BC().low(q), [1, 2])
    got = TD3BC(ensemble="mean-std", rho=0.5).low(q)
    np.testing.assert_allclose(got, np.mean(q, axis=0) - 0.5 * np.std(q, axis=0), rtol=1e-6)
    state = TD3BC(critics=5, critic_hidden=(8,)).init_critic(3, 2, jax.random.key(0))
    assert state.model(jnp.zeros((4, 3)), jnp.zeros((4, 2))).shape == (5, 4)


def test_min_of_two_is_mean_minus_std():
    q = jax.random.normal(jax.random.key(0), (2, 50))
    np.testing.assert_allclose(TD3BC().low(q), TD3BC(ensemble="mean-std").low(q), atol=1e-6)


def test_the_weight_of_values_grows_over_the_ramp():
    algorithm = TD3BC(loss_weight=0.4, ramp=100)
    weights = [float(algorithm.at(jnp.asarray(step)).loss_weight) for step in (0, 25, 100, 500)]
    np.testing.assert_allclose(weights, [0, 0.1, 0.4, 0.4], rtol=1e-6)
    assert TD3BC().at(jnp.asarray(3)) == TD3BC()


def test_standard_advantages_do_not_depend_on_the_scale_of_rewards():
    advantage, weight = jnp.asarray([0.3, -2.0, 1.0, 0.1]), exponential(1.0, 100.0)
    got = weigh(advantage, weight, standard=True)
    expected = np.exp(np.asarray(advantage) / np.std(advantage))
    np.testing.assert_allclose(got, expected / expected.mean(), rtol=1e-5)
    np.testing.assert_allclose(weigh(1000 * advantage, weight, standard=True), got, rtol=1e-4)
    np.testing.assert_allclose(weigh(jnp.zeros(3), weight, standard=True), np.ones(3))


def fitted(action):
    return Fit(jnp.zeros(len(action)), action, jnp.zeros(len(action)))


def test_slopes_pull_in_the_direction_of_q_with_a_size_that_does_not_depend_on_its_scale():
    action = jnp.asarray([[0.5, 0.2], [-0.1, 0.4], [0.3, -0.3]])
    values = lambda action, scale=1.0: scale * jnp.sum(jnp.asarray([1.0, -2.0])[None] * action**2, axis=-1)  # noqa: E731
    slope = 2 * np.array([1.0, -2.0]) * np.asarray(action)
    expected = slope / np.sqrt(np.mean(slope**2)) / action.size
    for scale in (1.0, 1e4):
        pull = jax.grad(lambda a, scale=scale: gain_in_slopes(lambda x: values(x, scale), fitted(a), a, 1.0)[1])(action)
        np.testing.assert_allclose(pull, expected, rtol=1e-5)
    for gain in (gain_in_slopes, gain_in_spreads, gain_in_values):
        np.testing.assert_allclose(gain(values, fitted(action), action, 1.0)[0], values(action))


def test_guidance_by_spreads_moves_a_gaussian_by_a_given_number_of_its_standard_deviations():
    """Minimise |a - data|² - w · gain over a constant action. Q is linear, so the best shift is known."""
    stds, slope, weight = np.array([0.3, 0.01]), np.array([2.0, -5.0]), 1.5
    data = jnp.asarray(stds * np.random.default_rng(0).standard_normal((20_000, 2)), jnp.float32)
    data -= data.mean(axis=0)[None]

    def loss(mean, scale):
        action = jnp.broadcast_to(mean, data.shape)
        gain = gain_in_spreads(lambda a: scale * (a @ jnp.asarray(slope, jnp.float32)), fitted(action), data, weight)[1]
        return jnp.mean((action - data) ** 2) - weight * gain

    for scale in (1.0, 1e4):
        mean = jnp.zeros((1, 2))
        descend = jax.jit(lambda mean, scale=scale: mean - 0.5 * jax.grad(loss)(mean, scale))
        for _ in range(200):
            mean = descend(mean)
        step = stds**2 * slope
        step *= weight / 2 / np.sqrt(np.mean((step / stds) ** 2))
        np.testing.assert_allclose(mean[0], step, rtol=0.05)


@pytest.mark.parametrize(
    "config",
    [
        DiffusionConfig(prediction="v", diffusion_steps=100, sampler="ddim", calls=20, hidden=(32, 32)),
        FlowConfig(sampler="midpoint", calls=20, hidden=(32, 32)),
    ],
)
def test_guidance_by_spreads_shifts_the_samples(config):
    """By w/2 standard deviations of the data, also where the dimensions of actions have different ones."""
    stds, slope, weight = jnp.asarray([0.15, 0.3]), jnp.asarray([-3.0, 2.0]), 1.0
    optimiser = optax.adam(optax.cosine_decay_schedule(1e-2, 1000))

    def loss(policy, key):
        data_key, fit_key = jax.random.split(key)
        data = stds[None] * jax.random.normal(data_key, (256, 2))
        fit = policy.fit(jnp.zeros((256, 1)), data, fit_key)
        return fit.bc.mean() - weight * gain_in_spreads(lambda a: a @ slope, fit, data, weight)[1]

    def step(carry, key):
        policy, opt = carry
        updates, opt = optimiser.update(jax.grad(loss)(policy, key), opt)
        return (optax.apply_updates(policy, updates), opt), None

    policy = config.build(1, 2, jax.random.key(0))
    train = jax.jit(lambda *start: jax.lax.scan(step, start, jax.random.split(jax.random.key(1), 1000))[0][0])
    samples = train(policy, optimiser.init(policy)).sample(jnp.zeros((10_000, 1)), jax.random.key(2))
    shift = stds**2 * slope * weight / 2 / jnp.sqrt(jnp.mean((stds * slope) ** 2))
    np.testing.assert_allclose(samples.mean(axis=0) / stds, shift / stds, atol=0.1)


def test_choices_are_checked():
    for wrong in ({"guidance": "slopes"}, {"ensemble": "mean"}, {"advantages": "z"}):
        with pytest.raises(UserError, match="unknown choice"):
            TD3BC(**wrong)
    with pytest.raises(UserError, match="unknown choice"):
        IQL(ensemble="max")


def test_the_raw_energy_is_the_smaller_q():
    q = jax.random.normal(jax.random.key(0), (2, 5, 3))
    np.testing.assert_array_equal(raw_energy(q), q.min(axis=0))


def test_the_relative_energy_has_one_scale_for_all_tasks():
    """It does not change if every Q is scaled and shifted, by state and by critic, and its std is at most 1."""
    q = jax.random.normal(jax.random.key(0), (2, 200, 3))
    q = jnp.stack([q[0], q[0] + 0.1 * q[1]])
    energy = relative_energy(q)
    shift = jnp.asarray([100.0, -5.0, 0.0])[None, None] + jnp.asarray([1.0, -30.0])[:, None, None]
    np.testing.assert_allclose(relative_energy(50 * q + shift), energy, atol=1e-3)
    np.testing.assert_allclose(energy.mean(axis=0), 0, atol=1e-5)
    std = np.std(energy, axis=0)
    assert (std > 0.98).all() and (std <= 1).all()


def test_the_disagreement_of_critics_counts_against_an_action():
    """Preferences of opposite critics cancel, and an action on which they differ counts less than one they share."""
    preference = jnp.asarray([1.0, 0.0, -1.0])[:, None]
    opposite = relative_energy(jnp.stack([preference, -preference]))
    spread = np.sqrt(np.var([-1, 0, -1]) + 2 / 3)  # mean advantages are 0, and the std over the critics is |preference|
    np.testing.assert_allclose(opposite[:, 0], np.array([-1 / 3, 2 / 3, -1 / 3]) / spread, rtol=1e-5)
    q = jnp.asarray([[[1.0], [1.0], [-2.0]], [[1.0], [3.0], [-4.0]]])  # the second action is better on average
    energy = relative_energy(q)[:, 0]
    assert energy[2] < energy[0] and energy[2] < energy[1]
    np.testing.assert_allclose(energy[0], energy[1], atol=1e-5)  # 1 ± 0 and 2 ± 1


def test_a_ramped_update_begins_with_imitation_alone():
    class Data(Policy):
        def fit(self, obs, action, key):
            return Fit(jnp.asarray([0.1, 0.3]), jnp.asarray([[0.2], [-0.6]]), jnp.zeros(2))

    critic = Critic(1, 1, (8,), jax.random.key(0))
    loss, metrics = TD3BC(ramp=10).at(jnp.asarray(0)).policy_loss(Data(), critic, BATCH, jax.random.key(0))
    assert float(loss) == pytest.approx(float(metrics["bc_loss"]))
