"""The networks of the paper: multi-layer perceptrons, a time embedding, and an ensemble of critics."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

TIME_WIDTH = 16
MAX_PERIOD = 10_000


@jax.custom_jvp
def mish(x: Array) -> Array:
    """x · tanh(softplus(x)), exactly, with one exponential.

    With e = exp(x) and n = e (e + 2), tanh(log(1 + e)) = n / (n + 2). Above x = 20 that is 1 in float32 (and within
    1e-17 in float64), so the exponent is limited to 20, which avoids an overflow.
    """
    e = jnp.exp(jnp.minimum(x, 20))
    n = e * (e + 2)
    return x * (n / (n + 2))


@jax.checkpoint  # the backward pass computes the exponential again, which is cheaper than storing the slope
def _times_mish_slope(x: Array, tangent: Array) -> Array:
    e = jnp.exp(jnp.minimum(x, 20))
    inverse = 1 / (e * (e + 2) + 2)
    slope = 1 - 2 * inverse + x * (4 * e * (e + 1) * inverse * inverse)
    return slope * tangent


@mish.defjvp
def _mish_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return mish(*primals), _times_mish_slope(*primals, *tangents)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"mish": mish, "relu": jax.nn.relu}


def dropout(x: Array, rate: float, key: PRNGKeyArray) -> Array:
    """x with a random share ``rate`` of its entries set to 0, and the others scaled up so that the mean stays."""
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


class Linear(eqx.Module):
    """x · weight + bias for each row x."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, key: PRNGKeyArray):
        self.weight = jax.nn.initializers.lecun_normal()(key, (inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        return x @ self.weight + self.bias[None]


class MLP(eqx.Module):
    """Linear layers with activations between them.

    With ``norm``, there is a layer norm (without parameters) before each activation.
    """

    layers: tuple[Linear, ...]
    norm: bool = eqx.field(static=True, default=False)
    activation: str = eqx.field(static=True, default="mish")

    def __init__(
        self,
        inputs: int,
        hidden: tuple[int, ...],
        outputs: int,
        key: PRNGKeyArray,
        norm: bool = False,
        activation: str = "mish",
    ):
        self.norm, self.activation = norm, activation
        widths = (inputs, *hidden, outputs)
        keys = jax.random.split(key, len(widths) - 1)
        self.layers = tuple(Linear(*pair, key=k) for *pair, k in zip(widths[:-1], widths[1:], keys, strict=True))

    def __call__(self, x: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        return self.after_first(self.layers[0](x))

    def after_first(self, x: Float[Array, "n hidden"]) -> Float[Array, "n outputs"]:
        """The output of the network, from the output of its first layer."""
        for layer in self.layers[1:]:
            x = layer(self.activate(x))
        return x

    def activate(self, x: Float[Array, "n hidden"]) -> Float[Array, "n hidden"]:
        return ACTIVATIONS[self.activation](jax.nn.standardize(x) if self.norm else x)

    def with_dropout(self, x: Float[Array, "n inputs"], rate: float, key: PRNGKeyArray) -> Float[Array, "n outputs"]:
        """The output of the network with dropout after each activation."""
        x = self.layers[0](x)
        for layer, layer_key in zip(self.layers[1:], jax.random.split(key, len(self.layers) - 1), strict=True):
            x = layer(dropout(self.activate(x), rate, layer_key))
        return x


def sinusoidal(k: Float[Array, " n"]) -> Float[Array, "n 16"]:
    """cos and sin of k at geometrically spaced frequencies."""
    half = TIME_WIDTH // 2
    frequencies = jnp.exp(-math.log(MAX_PERIOD) * jnp.arange(half, dtype=k.dtype) / half)
    angles = k[:, None] * frequencies[None]
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)


class NoiseNet(eqx.Module):
    """The noise prediction network epsilon(a^k, k; s), or the velocity of a flow (``edp.policies.flow``)."""

    time: MLP
    body: MLP

    def __init__(self, obs_dim: int, act_dim: int, hidden: tuple[int, ...], key: PRNGKeyArray):
        time_key, body_key = jax.random.split(key)
        self.time = MLP(TIME_WIDTH, (2 * TIME_WIDTH,), TIME_WIDTH, time_key)
        self.body = MLP(obs_dim + act_dim + TIME_WIDTH, hidden, act_dim, body_key)

    def __call__(self, obs: Array, action: Array, k: Float[Array, " n"]) -> Array:
        return self.body(jnp.concatenate([obs, action, self.time(sinusoidal(k))], axis=-1))

    def at_states(self, obs: Array, ks: Float[Array, " calls"]) -> Callable[[Array, Array], Array]:
        """The same network for fixed states, as a function of (action, i) at step ``ks[i]``.

        The first layer's products with the states and with the steps are computed once, not in each call.
        """
        first, start = self.body.layers[0], obs.shape[1]
        end = first.weight.shape[0] - TIME_WIDTH
        from_obs = obs @ first.weight[:start] + first.bias[None]
        from_time = self.time(sinusoidal(ks)) @ first.weight[end:]
        return lambda action, i: self.body.after_first(
            action @ first.weight[start:end] + (from_obs + from_time[i][None])
        )


class Critic(eqx.Module):
    """An ensemble of Q-networks. Every array has a leading axis over the members."""

    members: MLP

    def __init__(
        self,
        obs_dim: int,
        act_dim: int,
        hidden: tuple[int, ...],
        key: PRNGKeyArray,
        size: int = 2,
        norm: bool = False,
        activation: str = "mish",
    ):
        keys = jax.random.split(key, size)
        self.members = eqx.filter_vmap(lambda k: MLP(obs_dim + act_dim, hidden, 1, k, norm, activation))(keys)

    def __call__(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"]) -> Float[Array, "members n"]:
        x = jnp.concatenate([obs, action], axis=-1)
        return jax.vmap(lambda member: member(x)[:, 0])(self.members)

    def one_of(self, obs: Array, action: Array, key: PRNGKeyArray) -> Float[Array, " n"]:
        """The values of one random member, the same for the whole batch."""
        return self.member(jax.random.randint(key, (), 0, self.members.layers[0].bias.shape[0]), obs, action)

    def member(self, index: int | Int[Array, ""], obs: Array, action: Array) -> Float[Array, " n"]:
        """The values of one member."""
        chosen = jax.tree.map(lambda leaf: leaf[index], self.members)
        return chosen(jnp.concatenate([obs, action], axis=-1))[:, 0]
