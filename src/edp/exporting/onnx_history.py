"""Decision Transformer as ONNX: the latest steps are the input, and the action of the last step is the output."""

from typing import Any

import numpy as np

from edp.exporting.graph import Graph
from edp.exporting.plan import NORM_EPSILON, Plan
from edp.policies import Transformer
from edp.policies.transformer import EPISODE_LIMIT, Block, LayerNorm

HIDDEN = -1e30  # attention to what must not be seen


def write_history(graph: Graph, plan: Plan) -> str:
    policy, units = plan.policy, plan.units
    assert isinstance(policy, Transformer)
    for given in plan.inputs:
        graph.input(*given[:3])
    shift, scale, centre, half, low, high = units.arrays
    time, tokens = policy.context, 3 * policy.context
    width = len(policy.head.weight)
    obs = graph.add("Div", graph.add("Sub", "observations", shift), scale)
    action = graph.add("Div", graph.add("Sub", "actions", centre), half)
    to_go = graph.add("Unsqueeze", graph.add("Div", "returns_to_go", policy.scale), graph.integers(2))
    number = graph.add("Min", "steps", graph.constant(EPISODE_LIMIT - 1, "int64"))
    step = graph.add("Gather", policy.embed_step, number, axis=0)
    parts = [(to_go, policy.embed_return), (obs, policy.embed_obs), (action, policy.embed_action)]
    embedded = [graph.add("Add", linear(graph, x, layer), step) for x, layer in parts]
    stacked = graph.add("Concat", *(graph.reshape(part, -1, time, 1, width) for part in embedded), axis=2)
    x = normalised(graph, graph.reshape(stacked, -1, tokens, width), policy.first_norm)
    bias = attention_bias(graph, time)
    for block in policy.blocks:
        x = block_output(graph, x, block, bias)
    last = graph.add("Gather", x, graph.constant(tokens - 2, "int64"), axis=1)  # the token of the last observation
    head = graph.linear(normalised(graph, last, policy.last_norm), policy.head.weight, policy.head.bias)
    action = graph.add("Add", graph.add("Mul", graph.add("Tanh", head), half), centre)
    action = graph.add("Min", graph.add("Max", action, low), high)
    # Minimum and maximum may hide a NaN (see onnx_writer).
    spoiled = graph.add("ReduceSum", graph.add("Mul", "observations", 0.0), graph.integers(1, 2), keepdims=0)
    return graph.add("Add", action, graph.add("Unsqueeze", spoiled, graph.integers(1)), name="action")


def attention_bias(graph: Graph, time: int) -> str:
    """0 where a token may look, and ``HIDDEN`` elsewhere: at itself, and at earlier tokens of the episode."""
    tokens = 3 * time
    steps = graph.add("Expand", graph.reshape("mask", -1, time, 1), graph.integers(1, 1, 3))
    real = graph.reshape(steps, -1, 1, tokens)
    past, itself = np.tril(np.ones((tokens, tokens))), np.eye(tokens)
    visible = graph.add("Max", graph.add("Mul", real, past[None]), itself[None])
    hidden = graph.add("Mul", graph.add("Sub", 1.0, visible), HIDDEN)
    return graph.reshape(hidden, -1, 1, tokens, tokens)


def block_output(graph: Graph, x: str, block: Block, bias: str) -> str:
    """Self-attention and a perceptron, as ``edp.policies.transformer.Block``."""
    width, heads = len(block.merge.weight), block.heads
    size = width // heads
    parts = graph.add("Split", linear(graph, normalised(graph, x, block.norms[0]), block.attend), axis=2, outputs=3)
    query, key, value = (graph.add("Reshape", part, graph.integers(0, 0, heads, size)) for part in parts)
    query, value = (graph.add("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, value))
    logits = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 2, 3, 1]))
    logits = graph.add("Add", graph.add("Mul", logits, 1 / np.sqrt(size)), bias)
    seen = graph.add("MatMul", graph.add("Softmax", logits, axis=-1), value)
    merged = graph.add("Reshape", graph.add("Transpose", seen, perm=[0, 2, 1, 3]), graph.integers(0, 0, width))
    x = graph.add("Add", x, linear(graph, merged, block.merge))
    hidden = linear(graph, normalised(graph, x, block.norms[1]), block.mlp.layers[0])
    for layer in block.mlp.layers[1:]:
        hidden = linear(graph, graph.activate(hidden, block.mlp.activation), layer)
    return graph.add("Add", x, hidden)


def linear(graph: Graph, x: str, layer: Any) -> str:
    """A layer for arrays with more than two axes."""
    return graph.add("Add", graph.add("MatMul", x, layer.weight), layer.bias)


def normalised(graph: Graph, x: str, norm: LayerNorm) -> str:
    return graph.add("LayerNormalization", x, norm.scale, norm.shift, axis=-1, epsilon=NORM_EPSILON)
