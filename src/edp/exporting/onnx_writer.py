"""Policies as ONNX models: the loop over the sampler's calls is unrolled, and all candidates are rows of one matrix."""

from typing import Any

import numpy as np

from edp.data.units import Units
from edp.errors import UserError
from edp.exporting.graph import Graph
from edp.exporting.onnx_history import write_history
from edp.exporting.plan import NORM_EPSILON, Call, Chain, Choice, Direct, Layers, Plan
from edp.policies import Transformer

SMALLEST = 1e-7  # of uniform random numbers, whose logarithm is taken; and in the place of a factor of 0
MOST_CALLS = 2000  # of a loop that is unrolled


def write_onnx(plan: Plan, random: str = "input", seed: int | None = None) -> Any:
    """The model of a plan.

    With ``random="inside"``, it draws its random numbers itself, and the observation is its only input. ``seed`` makes
    them the same each time that the model is loaded.
    """
    graph = Graph()
    if isinstance(plan.policy, Chain) and len(plan.policy.calls) > MOST_CALLS:
        calls = f"{len(plan.policy.calls):,} network calls"
        raise UserError(f"{calls} are too many for an ONNX model, whose loop is unrolled: use fewer `act_calls`")
    if isinstance(plan.policy, Transformer):
        action = write_history(graph, plan)
    else:
        action = Writer(graph, plan, Randomness(graph, plan, random == "inside", seed)).act()
    return graph.model(action, ("batch", plan.units.dims[1]), "edp_policy")


Terms = dict[str, float]  # a linear combination of arrays: their names and factors


class Randomness:
    """The model's random numbers: inputs, or nodes that draw them."""

    def __init__(self, graph: Graph, plan: Plan, inside: bool, seed: int | None):
        self.graph, self.plan, self.inside = graph, plan, inside
        self.seed: dict[str, Any] = {} if seed is None else {"seed": float(seed)}
        for given in plan.inputs:
            if not inside or given.name == "observation":
                graph.input(*given[:3])

    def zeros(self, *shape: int) -> str:
        """Zeros, with the batch as the first axis."""
        batch = self.graph.add("Shape", "observation", start=0, end=1)
        whole = self.graph.add("Concat", batch, self.graph.integers(*shape), axis=0)
        return self.graph.add("Expand", 0.0, whole)

    def noise(self) -> list[str]:
        """Normal random numbers: for each draw, a row for each candidate of each state."""
        candidates, draws, act = self.plan.candidates, self.plan.draws, self.plan.units.dims[1]
        if not draws:
            return []
        if self.inside:
            noise = self.graph.add("RandomNormalLike", self.zeros(candidates, draws, act), dtype=1, **self.seed)
        else:
            noise = "noise"
        rows = self.graph.reshape(noise, -1, draws * act)
        return [rows] if draws == 1 else self.graph.add("Split", rows, axis=1, outputs=draws)

    def gumbel(self) -> str:
        if not self.inside:
            return "gumbel"
        like = self.zeros(self.plan.candidates)
        uniform = self.graph.add("RandomUniformLike", like, dtype=1, low=SMALLEST, high=1.0, **self.seed)
        return self.graph.add("Neg", self.graph.add("Log", self.graph.add("Neg", self.graph.add("Log", uniform))))


class Writer:
    """Writes the nodes of a policy that acts on the current observation."""

    def __init__(self, graph: Graph, plan: Plan, random: Randomness):
        self.graph, self.plan, self.random = graph, plan, random
        self.candidates = plan.candidates

    def act(self) -> str:
        graph, plan = self.graph, self.plan
        obs = observations_to_network(graph, "observation", plan.units)
        noise = self.random.noise()
        policy = plan.policy
        assert not isinstance(policy, Transformer)
        policy = policy._replace(net=for_activation(policy.net))
        if isinstance(policy, Chain):
            rows = self.sample_chain(policy, obs, noise)
        else:
            rows = self.sample_direct(policy, obs, noise)
        if plan.choice:
            rows = self.choose(plan.choice, obs, rows, noise)
        action = actions_from_network(graph, rows, plan.units)
        # Minimum and maximum may hide a NaN, so the observation's is added: the action is NaN then, and not a number.
        spoiled = graph.add("ReduceSum", graph.add("Mul", "observation", 0.0), graph.integers(1), keepdims=1)
        return graph.add("Add", action, spoiled, name="action")

    def to_rows(self, x: str, width: int) -> str:
        """Repeat a number of each state for all of its candidates."""
        if self.candidates == 1:
            return x
        graph = self.graph
        wide = graph.add("Expand", graph.reshape(x, -1, 1, width), graph.integers(1, self.candidates, 1))
        return graph.reshape(wide, -1, width)

    def layers(self, net: Layers, x: str, last: int | None = None) -> str:
        """The output of a network (as ``for_activation``), or of its layers before ``last``, from the first layer's."""
        for weight, bias in zip(net.weights[1:last], net.biases[1:last], strict=True):
            if net.norm:
                x = self.graph.standardise(x, len(weight), NORM_EPSILON)
            x = self.graph.linear(self.activate(net, x), weight, bias)
        return x

    def activate(self, net: Layers, x: str) -> str:
        return self.graph.mish_of_negative(x) if net.activation == "mish" else self.graph.add("Relu", x)

    def first_layer(self, net: Layers, obs: str) -> tuple[str, np.ndarray]:
        """The observation's share of the first layer, in a row for each candidate; and the weights of the action."""
        width = self.plan.units.dims[0]
        share = self.graph.linear(obs, net.weights[0][:width], net.biases[0])
        return self.to_rows(share, net.biases[0].size), net.weights[0][width:]

    def sample_chain(self, chain: Chain, obs: str, noise: list[str]) -> str:
        """``edp.diffusion.samplers.integrate``, without a loop.

        Between two network calls, everything but the clip is linear, so it becomes one or two nodes.
        """
        graph, (state, weight), noise = self.graph, self.first_layer(chain.net, obs), list(noise)
        zeros = lambda: graph.reshape(self.random.zeros(self.candidates, len(weight)), -1, len(weight))  # noqa: E731
        y = scaled(graph, noise.pop(0), chain.start) if chain.start else zeros()
        base, kept = y, {}
        for call in chain.calls:
            time = -call.time if chain.net.activation == "mish" else call.time
            shift = graph.add("Add", state, time[None])
            data = self.estimate(chain, call, y, graph.linear(y, weight, shift))
            now = {data: 1.0} if chain.predicts_data else {y: 1 / call.sigma, data: -call.alpha / call.sigma}
            drawn = {noise.pop(0): 1.0} if call.noise else {}
            terms = (call.base, {base: 1.0}), (call.kept, kept), (call.now, now), (call.noise, drawn)
            y = self.combine(add_terms(*terms))
            base, kept = y if call.advance else base, now if call.keep else kept
        return graph.add("Clip", y, -1.0, 1.0)

    def estimate(self, chain: Chain, call: Call, y: str, first: str) -> str:
        """The estimate of the action from the output of the first layer. The last layer computes both of its parts."""
        graph, net, factor = self.graph, chain.net, call.factor
        part = call.part or SMALLEST  # the bias is divided by it
        hidden = self.activate(net, self.layers(net, first, last=-1))
        shifted = graph.add("Add", y, (factor / part * net.biases[-1])[None])
        data = graph.add("Gemm", hidden, net.weights[-1], shifted, alpha=factor, beta=part)
        return graph.add("Clip", data, -1.0, 1.0) if chain.clip else data

    def combine(self, terms: Terms) -> str:
        """A linear combination. It is a multiplication of matrices, which is quicker than many nodes."""
        graph, identity = self.graph, np.eye(self.plan.units.dims[1])
        if len(terms) > 2:
            matrix = np.concatenate([factor * identity for factor in terms.values()])
            return graph.add("Gemm", graph.add("Concat", *terms, axis=1), matrix)
        (first, factor), *second = terms.items()
        if not second:
            return scaled(graph, first, factor)
        return graph.add("Gemm", first, factor * identity, second[0][0], beta=second[0][1])

    def sample_direct(self, policy: Direct, obs: str, noise: list[str]) -> str:
        graph, net = self.graph, policy.net
        out, act = self.layers(net, graph.linear(obs, net.weights[0], net.biases[0])), self.plan.units.dims[1]
        if not policy.factor:
            return self.to_rows(graph.add("Tanh", out), act)
        if policy.log_std is None:
            out, log_std = graph.add("Split", out, axis=1, outputs=2)
            std = graph.add("Exp", graph.add("Clip", log_std, *policy.limits))
            std = self.to_rows(scaled(graph, std, policy.factor), act)
        else:
            std = graph.constant((np.exp(policy.log_std) * np.float32(policy.factor))[None])
        mean = self.to_rows(out if policy.squash else graph.add("Tanh", out), act)
        raw = graph.add("Add", mean, graph.add("Mul", std, noise[0]))
        return graph.add("Tanh", raw) if policy.squash else graph.add("Clip", raw, -1.0, 1.0)

    def choose(self, choice: Choice, obs: str, rows: str, noise: list[str]) -> str:
        """The chosen candidate of each state."""
        graph, count = self.graph, choice.candidates
        if choice.spread:
            rows = graph.add("Clip", graph.add("Add", rows, scaled(graph, noise[-1], choice.spread)), -1.0, 1.0)
        values = []
        for critic in map(for_activation, choice.critics):
            share, weight = self.first_layer(critic, obs)
            values.append(self.layers(critic, graph.linear(rows, weight, share)))
        q = graph.reshape(graph.add("Concat", *values, axis=1), -1, count, len(values))
        score = ENERGIES[choice.energy](graph, q)
        if choice.temperature:
            score = graph.add("Add", score, scaled(graph, self.random.gumbel(), choice.temperature))
        best = graph.add("ArgMax", score, axis=1, keepdims=1)
        return graph.add("GatherND", graph.reshape(rows, -1, count, self.plan.units.dims[1]), best, batch_dims=1)


def for_activation(net: Layers) -> Layers:
    """The network with hidden layers whose outputs are the negative ones, if its activation is Mish: see ``Graph``."""
    if net.activation != "mish":
        return net
    flip = lambda arrays: (*(-array for array in arrays[:-1]), arrays[-1])  # noqa: E731
    return net._replace(weights=flip(net.weights), biases=flip(net.biases))


def add_terms(*parts: tuple[float, Terms]) -> Terms:
    """The sum of linear combinations, each multiplied by a factor, without the terms that are 0."""
    total: Terms = {}
    for factor, terms in parts:
        for name, value in terms.items():
            total[name] = total.get(name, 0.0) + factor * value
    return {name: value for name, value in total.items() if value}


def raw_energy(graph: Graph, q: str) -> str:
    return graph.add("ReduceMin", q, axes=[2], keepdims=0)


def relative_energy(graph: Graph, q: str) -> str:
    """``edp.algorithms.energies.relative_energy`` for q of (batch, candidates, critics)."""
    advantage = graph.add("Sub", q, graph.mean(q, 1))
    mean = graph.mean(advantage, 2)
    square = graph.mean(squared(graph, graph.add("Sub", advantage, mean)), 2)
    low = graph.add("Sub", mean, graph.add("Sqrt", square))
    above = graph.add("Sub", low, graph.mean(low, 1))
    variance = graph.add("Add", graph.mean(squared(graph, above), 1), graph.mean(square, 1))
    energy = graph.add("Div", above, graph.add("Add", graph.add("Sqrt", variance), 1e-12))
    return graph.add("Squeeze", energy, graph.integers(2))


ENERGIES = {"raw": raw_energy, "relative": relative_energy}


def observations_to_network(graph: Graph, obs: str, units: Units) -> str:
    shift, scale, *_ = units.arrays
    obs = graph.add("Sub", obs, shift[None]) if shift.any() else obs
    return graph.add("Div", obs, scale[None]) if (scale != 1).any() else obs


def actions_from_network(graph: Graph, action: str, units: Units) -> str:
    """Actions in the units of the data, within their ranges."""
    _, _, centre, half, low, high = units.arrays
    if not centre.any() and (half == 1).all():
        return action
    action = graph.add("Add", graph.add("Mul", action, half[None]), centre[None])
    return graph.add("Min", graph.add("Max", action, low[None]), high[None])


def scaled(graph: Graph, x: str, factor: Any) -> str:
    return x if factor == 1 else graph.add("Mul", x, factor)


def squared(graph: Graph, x: str) -> str:
    return graph.add("Mul", x, x)
