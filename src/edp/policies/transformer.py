"""The causal transformer of Decision Transformer (Chen et al. 2021): actions from a history and a target return."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from edp.batches import Windows
from edp.errors import UserError
from edp.networks import ACTIVATIONS, MLP, Linear, dropout
from edp.options import option
from edp.policies.base import Policy, PolicyConfig, check_activation

EPISODE_LIMIT = 1024  # steps of an episode with separate embeddings; later steps share the last one


class LayerNorm(eqx.Module):
    """Layer normalisation over the last axis."""

    scale: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __init__(self, width: int):
        self.scale, self.shift = jnp.ones(width), jnp.zeros(width)

    def __call__(self, x: Float[Array, "n time width"]) -> Float[Array, "n time width"]:
        return jax.nn.standardize(x, axis=-1) * self.scale[None, None] + self.shift[None, None]


class Block(eqx.Module):
    """Self-attention and a perceptron, both with normalised inputs and a residual connection."""

    norms: tuple[LayerNorm, LayerNorm]
    attend: Linear  # queries, keys and values
    merge: Linear
    mlp: MLP
    heads: int = eqx.field(static=True)

    def __init__(self, width: int, heads: int, key: PRNGKeyArray, activation: str = "mish"):
        keys = jax.random.split(key, 3)
        self.norms = LayerNorm(width), LayerNorm(width)
        self.attend, self.merge = Linear(width, 3 * width, keys[0]), Linear(width, width, keys[1])
        self.mlp = MLP(width, (4 * width,), width, keys[2], activation=activation)
        self.heads = heads

    def __call__(
        self, x: Float[Array, "n time width"], visible: Bool[Array, "n time time"], drop: Callable[[Array, int], Array]
    ) -> Array:
        """``drop(output, i)`` is applied to the outputs of both parts, before they are added."""
        parts = jnp.split(apply_to_rows(self.attend, self.norms[0](x)), 3, axis=-1)
        query, key, value = (part.reshape(*part.shape[:2], self.heads, -1) for part in parts)
        out = jax.nn.dot_product_attention(query, key, value, mask=visible[:, None])
        x = x + drop(apply_to_rows(self.merge, out.reshape(x.shape)), 0)
        return x + drop(apply_to_rows(self.mlp, self.norms[1](x)), 1)


def apply_to_rows(layer: Callable[[Array], Array], x: Float[Array, "n time inputs"]) -> Float[Array, "n time outputs"]:
    """Apply a layer for rows to an array with two leading axes."""
    return layer(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:2], -1)


class Memory(NamedTuple):
    """The most recent steps of running episodes. The action of the last step is not yet known."""

    seen: Windows
    goal: Float[Array, " n"]  # the (scaled) return to reach in the rest of the episode


class Transformer(Policy):
    """A causal transformer over (return to go, state, action) of each step."""

    embed_obs: Linear
    embed_action: Linear
    embed_return: Linear
    embed_step: Float[Array, "steps width"]
    first_norm: LayerNorm
    blocks: tuple[Block, ...]
    last_norm: LayerNorm
    head: Linear
    context: int = eqx.field(static=True)
    target: float = eqx.field(static=True)  # the (scaled) target return of an episode
    scale: float = eqx.field(static=True)  # returns are divided by it
    dropout: float = eqx.field(static=True, default=0.0)  # in training

    deterministic: ClassVar[bool] = True

    def __call__(self, seen: Windows, dropout_key: PRNGKeyArray | None = None) -> Float[Array, "n time act"]:
        """An action for each step, from its return to go, its state, and all earlier steps.

        With a key, there is dropout: of the embeddings, and of what each block adds.
        """

        def drop(output: Array, place: int) -> Array:
            if dropout_key is None or not self.dropout:
                return output
            return dropout(output, self.dropout, jax.random.fold_in(dropout_key, place))

        count, time = seen.mask.shape
        step = self.embed_step[jnp.minimum(seen.step, EPISODE_LIMIT - 1)]
        tokens = [
            apply_to_rows(self.embed_return, seen.to_go[..., None]) + step,
            apply_to_rows(self.embed_obs, seen.obs) + step,
            apply_to_rows(self.embed_action, seen.action) + step,
        ]
        x = self.first_norm(jnp.stack(tokens, axis=2).reshape(count, 3 * time, -1))
        past = jnp.tril(jnp.ones((3 * time, 3 * time), bool))
        real = jnp.repeat(seen.mask, 3, axis=1)
        itself = jnp.eye(3 * time, dtype=bool)  # otherwise padding would attend to nothing
        visible = (past[None] & real[:, None]) | itself[None]
        x = drop(x, 0)
        for number, block in enumerate(self.blocks):
            x = block(x, visible, lambda output, part, first=1 + 2 * number: drop(output, first + part))
        return jnp.tanh(apply_to_rows(self.head, self.last_norm(x)[:, 1::3]))

    def memory(self, count: int) -> Memory:
        obs_dim, act_dim = self.embed_obs.weight.shape[0], self.embed_action.weight.shape[0]
        shape = (count, self.context)
        seen = Windows(
            obs=jnp.zeros((*shape, obs_dim)),
            action=jnp.zeros((*shape, act_dim)),
            to_go=jnp.zeros(shape),
            step=jnp.zeros(shape, int),
            mask=jnp.zeros(shape, bool),
        )
        return Memory(seen, jnp.full(count, self.target))

    def step(
        self, memory: Memory, obs: Float[Array, "n obs"], reward: Float[Array, " n"], step: int | Int[Array, ""]
    ) -> tuple[Memory, Float[Array, "n act"]]:
        """The memory with the new state, and the action there. The reward of the last action is taken off the goal."""
        seen, goal = memory.seen, memory.goal - reward / self.scale
        count = len(goal)
        now = Windows(obs, jnp.zeros_like(seen.action[:, 0]), goal, jnp.full(count, step), jnp.ones(count, bool))
        seen = jax.tree.map(lambda old, new: jnp.concatenate([old[:, 1:], new[:, None]], axis=1), seen, now)
        action = self(seen)[:, -1]
        return Memory(seen._replace(action=seen.action.at[:, -1].set(action)), goal), action


@dataclass(frozen=True)
class TransformerConfig(PolicyConfig):
    """Options of the transformer."""

    context: int = option(20, "steps of the history that the network reads", low=1)
    width: int = option(128, "width of the transformer", low=1, high=65_536)
    layers: int = option(3, "blocks of the transformer", low=1, high=1000)
    heads: int = option(1, "attention heads", low=1)
    activation: str = option("mish", f"activation function of the policy's network: {', '.join(ACTIVATIONS)}")
    dropout: float = option(0.0, "share of units that are dropped in training", low=0.0, high=0.99)
    target_return: float = option(1.0, "the target return when acting")
    return_scale: float = option(1.0, "returns are divided by this number before the network reads them", low=1e-9)

    has_likelihood: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    reads_histories: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {"eas": 1}

    @property
    def no_entropy(self) -> str:
        return "a deterministic policy has none"

    def __post_init__(self) -> None:
        check_activation(self.activation)
        if self.width % self.heads:
            raise UserError(f"`heads` must divide `width`, and {self.heads} does not divide {self.width}")

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Transformer:
        keys = jax.random.split(key, 5 + self.layers)
        steps = jax.random.normal(keys[3], (EPISODE_LIMIT, self.width)) / math.sqrt(self.width)
        return Transformer(
            embed_obs=Linear(obs_dim, self.width, keys[0]),
            embed_action=Linear(act_dim, self.width, keys[1]),
            embed_return=Linear(1, self.width, keys[2]),
            embed_step=steps,
            first_norm=LayerNorm(self.width),
            blocks=tuple(Block(self.width, self.heads, k, self.activation) for k in keys[5:]),
            last_norm=LayerNorm(self.width),
            head=Linear(self.width, act_dim, keys[4]),
            context=self.context,
            target=self.target_return / self.return_scale,
            scale=self.return_scale,
            dropout=self.dropout,
        )
