import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from edp.diffusion import Sampler, Schedule
from edp.networks import MLP, Critic, NoiseNet, dropout, mish


def reference_mish(x):
    return x * np.tanh(np.logaddexp(0, x))


def test_mish_is_exact_and_does_not_overflow():
    x = np.concatenate([np.linspace(-120, 120, 4001), [1e30, -1e30]]).astype(np.float32)
    got = np.asarray(mish(jnp.asarray(x)))
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got[:-2], reference_mish(x[:-2].astype(np.float64)), rtol=2e-6, atol=1e-30)


def test_mish_derivative():
    x = jnp.linspace(-30, 30, 1001)
    got = jax.vmap(jax.grad(mish))(x)
    with jax.enable_x64(True):
        expected = jax.vmap(jax.grad(lambda v: v * jnp.tanh(jax.nn.softplus(v))))(jnp.asarray(x, jnp.float64))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
    assert float(jax.grad(mish)(jnp.float32(500.0))) == 1.0
    assert float(jax.grad(mish)(jnp.float32(-500.0))) == 0.0


def test_state_and_time_parts_computed_once_give_the_same_network(rng):
    net = jax.jit(lambda key: NoiseNet(11, 3, (32, 32, 32), key))(jax.random.key(0))
    obs, action = (
        jnp.asarray(rng.standard_normal((7, 11)), jnp.float32),
        jnp.asarray(rng.standard_normal((7, 3)), jnp.float32),
    )
    ks = jnp.asarray([999.0, 500.5, 0.0])
    at = net.at_states(obs, ks)
    for i, k in enumerate(ks):
        np.testing.assert_allclose(at(action, i), net(obs, action, jnp.full(7, k)), rtol=1e-5, atol=1e-5)


def test_sampling_computes_the_state_part_once():
    """No matmul inside the sampling loop has the observation's width."""
    from edp.policies import Diffusion

    policy = Diffusion(NoiseNet(37, 3, (32, 32), jax.random.key(0)), 3, Schedule(), Sampler())
    jaxpr = jax.make_jaxpr(policy.sample)(jnp.zeros((5, 37)), jax.random.key(0))
    loops = [eqn for eqn in jaxpr.jaxpr.eqns if eqn.primitive.name == "scan"]
    assert len(loops) == 1

    def dots(eqn):
        inner = [each for part in jaxprs_in_params(eqn.params) for each in part.eqns]
        return [eqn] if eqn.primitive.name == "dot_general" else [dot for each in inner for dot in dots(each)]

    widths = {v.aval.shape[-1] for dot in dots(loops[0]) for v in dot.invars}
    assert widths == {3, 32}  # actions and hidden layers: neither observations nor time embeddings


def test_one_of_is_a_fair_coin(rng):
    critic = jax.jit(lambda key: Critic(4, 2, (8,), key))(jax.random.key(0))
    obs, action = (
        jnp.asarray(rng.standard_normal((3, 4)), jnp.float32),
        jnp.asarray(rng.standard_normal((3, 2)), jnp.float32),
    )
    both = critic(obs, action)
    ones = jax.jit(jax.vmap(lambda key: critic.one_of(obs, action, key)))(jax.random.split(jax.random.key(1), 400))
    is_first = np.isclose(ones, both[0][None], rtol=1e-5).all(axis=1)
    is_second = np.isclose(ones, both[1][None], rtol=1e-5).all(axis=1)
    assert (is_first ^ is_second).all()
    assert is_first.mean() == pytest.approx(0.5, abs=0.1)


def test_relu_networks_by_hand():
    net = MLP(1, (2,), 1, jax.random.key(0), activation="relu")
    (w1, b1), (w2, b2) = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in net.layers)
    x = np.array([[-2.0], [0.5], [3.0]], np.float32)
    np.testing.assert_allclose(net(jnp.asarray(x)), np.maximum(x @ w1 + b1, 0) @ w2 + b2, rtol=1e-5)


def test_the_activation_does_not_change_the_arrays():
    """Checkpoints know arrays by their names, and seeds give the same initial parameters."""
    named = [
        {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(net)}
        for net in (MLP(2, (4,), 1, jax.random.key(0)), MLP(2, (4,), 1, jax.random.key(0), activation="relu"))
    ]
    assert named[0].keys() == named[1].keys() == {f".layers[{i}].{part}" for i in (0, 1) for part in ("weight", "bias")}
    assert all((named[0][name] == named[1][name]).all() for name in named[0])


def test_dropout_keeps_the_mean_and_drops_the_share():
    x = jnp.ones((200, 500))
    dropped = np.asarray(dropout(x, 0.2, jax.random.key(0)))
    assert set(np.unique(dropped)) == {0.0, np.float32(1 / 0.8)}
    assert dropped.mean() == pytest.approx(1, abs=0.01)
    assert (dropped == 0).mean() == pytest.approx(0.2, abs=0.01)


def test_a_network_with_dropout_is_the_network_on_average():
    """Exactly so with one hidden layer, since the output is linear in what is dropped."""
    net, x = MLP(3, (64,), 2, jax.random.key(0), activation="relu"), jnp.ones((1, 3))
    many = jax.vmap(lambda key: net.with_dropout(x, 0.1, key))(jax.random.split(jax.random.key(1), 4000))
    np.testing.assert_allclose(many.mean(axis=0), net(x), atol=0.02)
    np.testing.assert_allclose(net.with_dropout(x, 0.0, jax.random.key(2)), net(x), rtol=1e-6)
