"""An acting policy as plain NumPy numbers: what the writers of ONNX and C write down.

Every random number is an input, so the same noise gives the same action in JAX and in the exported file.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.policy import LoadedPolicy
from edp.acting.selection import Selection
from edp.data.units import Units
from edp.diffusion.tables import Row, Table, table_of_rows
from edp.errors import UserError
from edp.networks import MLP, TIME_WIDTH, NoiseNet, sinusoidal
from edp.policies import Deterministic, Diffusion, Distilled, Flow, Gaussian, MeanFlow, Transformer
from edp.policies.base import Control, Policy
from edp.policies.flow import SMALLEST_SIGNAL, TIME_SCALE
from edp.policies.gaussian import LOG_STD_LOW

NORM_EPSILON = 1e-5  # of jax.nn.standardize
ACTIVATIONS = ("mish", "relu")  # that the writers know


class Layers(NamedTuple):
    """Linear layers, x · weight + bias, with activations between them."""

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: str
    norm: bool  # a layer norm before each activation


class Call(NamedTuple):
    """One network call of a sampler (see ``edp.diffusion.tables``). Its numbers are those of float32.

    The estimate of the action is ``part · y + factor · output``, for a point y and the network's output there.
    """

    time: np.ndarray  # the time's share of the first layer
    part: float
    factor: float
    alpha: float
    sigma: float
    base: float
    now: float
    kept: float
    noise: float  # with the factor of all random numbers
    keep: bool
    advance: bool


class Chain(NamedTuple):
    """A diffusion or flow policy.

    The first layer of ``net`` reads observation and action; ``calls`` have the time's share.
    """

    net: Layers
    calls: tuple[Call, ...]
    predicts_data: bool  # the sampler combines estimates of the action, instead of noise
    clip: bool  # estimates are clipped to [-1, 1]
    start: float  # factor of the noise at the start

    @property
    def draws(self) -> int:
        return int(self.start != 0) + sum(bool(call.noise) for call in self.calls)


class Direct(NamedTuple):
    """tanh of a network's output; or, with ``factor`` above 0, a Gaussian sample around it."""

    net: Layers
    factor: float = 0.0  # of the standard deviation
    log_std: np.ndarray | None = None  # None: the second half of the network's output, within ``limits``
    limits: tuple[float, float] = (0.0, 0.0)
    squash: bool = False  # tanh of a Gaussian sample, instead of a clipped one

    @property
    def draws(self) -> int:
        return int(self.factor != 0)


class Choice(NamedTuple):
    """How one of several candidates is chosen (EAS)."""

    candidates: int
    critics: tuple[Layers, ...]
    energy: str
    temperature: float  # 0 takes the best
    spread: float  # std of noise around the candidates


class Input(NamedTuple):
    """An input of the exported file. "batch" in its shape is the number of states."""

    name: str
    type: str
    shape: tuple[str | int, ...]
    about: str


class Plan(NamedTuple):
    """A policy of one seed with everything that it needs to act."""

    units: Units
    policy: Chain | Direct | Transformer  # a transformer has NumPy arrays
    choice: Choice | None

    @property
    def candidates(self) -> int:
        return self.choice.candidates if self.choice else 1

    @property
    def draws(self) -> int:
        """Normal random numbers for each candidate and each number of an action."""
        assert not isinstance(self.policy, Transformer)
        return self.policy.draws + (self.choice is not None and self.choice.spread > 0)

    @property
    def gumbel(self) -> bool:
        return self.choice is not None and self.choice.temperature > 0

    @property
    def inputs(self) -> list[Input]:
        obs, act = self.units.dims
        if isinstance(self.policy, Transformer):
            return history_inputs(obs, act, self.policy.context)
        inputs = [Input("observation", "float32", ("batch", obs), "in the units of the data")]
        if self.draws:
            shape = ("batch", self.candidates, self.draws, act)
            inputs.append(Input("noise", "float32", shape, "standard normal random numbers"))
        if self.gumbel:
            inputs.append(Input("gumbel", "float32", ("batch", self.candidates), "standard Gumbel random numbers"))
        return inputs


def history_inputs(obs: int, act: int, context: int) -> list[Input]:
    return [
        Input(
            "observations", "float32", ("batch", context, obs), "the latest observations, the present one at the end"
        ),
        Input("actions", "float32", ("batch", context, act), "the actions that followed; the last one is not used"),
        Input("returns_to_go", "float32", ("batch", context), "the target return minus the rewards so far"),
        Input("steps", "int64", ("batch", context), "the number of each step in its episode, from 0"),
        Input("mask", "float32", ("batch", context), "1 for steps of the episode, 0 before its start"),
    ]


def make_plan(loaded: LoadedPolicy) -> Plan:
    """The plan of a loaded policy. Refuses policies that have no exporter, and parameters that are not finite."""
    policy, critic, selection = model_of(loaded)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((policy, critic))):
        raise UserError("the policy's parameters have NaN or Inf (the seed failed in training): it cannot be exported")
    if isinstance(policy, Transformer):
        return Plan(loaded.units, policy, None)
    chooses = critic is not None and selection.candidates > 1
    planner = PLANNERS.get(type(policy))
    if planner is None:
        known = ", ".join(name.__name__ for name in (*PLANNERS, Transformer))
        raise UserError(f"a policy of class {type(policy).__name__} has no exporter (those of {known} have)")
    planned = planner(policy, selection.control, chooses)
    spread = float(selection.spread or 0)
    if critic is None or not chooses or not (planned.draws or spread):  # one action, or several that are all the same
        return Plan(loaded.units, planned, None)
    members = [
        jax.tree.map(lambda leaf, i=i: leaf[i], critic.members) for i in range(len(critic.members.layers[0].bias))
    ]
    critics = tuple(layers_of(member) for member in members)
    choice = Choice(selection.candidates, critics, selection.energy, float(selection.temperature), spread)
    return Plan(loaded.units, planned, choice)


def model_of(loaded: LoadedPolicy) -> tuple[Any, Any, Selection]:
    """The policy, its critic (or None) and its selection of actions, without the axis of seeds, as NumPy arrays."""
    policies, critics, selection = loaded.actors
    return *jax.tree.map(lambda leaf: np.asarray(leaf[0]), (policies, critics)), selection


def plan_diffusion(policy: Diffusion, control: Control, chooses: bool) -> Chain:
    del chooses
    schedule, table = policy.schedule, policy.sampler.table(policy.schedule)
    alpha, sigma = (level(table.t).astype(np.float32).astype(float) for level in (schedule.alpha, schedule.sigma))
    if policy.predicts_v:  # noise = scale · (alpha · output + sigma · y)
        part, factor = (1 - control.scale * sigma**2) / alpha, -control.scale * sigma
    else:
        part, factor = 1 / alpha, -control.scale * sigma / alpha
    net, shares = split_time(policy.net.body, embed_times(policy.net, schedule.step(table.t)))
    return plan_chain(net, shares, table, (part, factor, alpha, sigma), control, policy.sampler.threshold)


def plan_flow(policy: Flow, control: Control, chooses: bool) -> Chain:
    del chooses
    table, scale = policy.sampler.table(), control.scale
    alpha, sigma = table.t, 1 - table.t
    part = 1 + sigma * (1 - scale) / np.maximum(alpha, SMALLEST_SIGNAL)
    net, shares = split_time(policy.net.body, embed_times(policy.net, TIME_SCALE * table.t))
    return plan_chain(net, shares, table, (part, scale * sigma, alpha, sigma), control, clip=True)


def plan_mean_flow(policy: MeanFlow, control: Control, chooses: bool) -> Chain:
    """One call: noise - u(noise, 0, 1)."""
    del chooses
    net, shares = split_time(policy.net.body, policy.net.embed(jnp.zeros(1), jnp.ones(1)))
    return plan_chain(net, shares, ONE_CALL, (ONE, -ONE, ONE, ONE), control, clip=False)


def plan_distilled(policy: Distilled, control: Control, chooses: bool) -> Chain:
    """One call of the student, which has no time."""
    del chooses
    net = layers_of(policy.student)
    shares = np.zeros((1, net.biases[0].size), np.float32)
    return plan_chain(net, shares, ONE_CALL, (0 * ONE, ONE, ONE, ONE), control, clip=False)


ONE, ONE_CALL = np.ones(1), table_of_rows([Row(1.0, base_coef=0.0, now_coef=1.0)], predicts_data=True)


def embed_times(net: NoiseNet, times: np.ndarray) -> Any:
    return net.time(sinusoidal(jnp.asarray(times, jnp.float32)))


def split_time(body: MLP, embedded: Any) -> tuple[Layers, np.ndarray]:
    """A network without the inputs of its time, and the share of embedded times in its first layer."""
    net = layers_of(body)
    inputs, times = np.split(net.weights[0], [-TIME_WIDTH])
    return net._replace(weights=(inputs, *net.weights[1:])), np.asarray(embedded @ times)


def plan_chain(
    net: Layers, shares: np.ndarray, table: Table, levels: tuple[np.ndarray, ...], control: Control, clip: bool
) -> Chain:
    """``levels`` are part, factor, alpha and sigma of each call."""
    columns = *levels, *table[1:4], control.noise * table.noise_coef
    numbers = np.stack(columns, axis=1).astype(np.float32).tolist()
    rows = zip(shares, numbers, table.keep.tolist(), table.advance.tolist(), strict=True)
    calls = tuple(Call(share, *row, keep=keep, advance=advance) for share, row, keep, advance in rows)
    return Chain(net, calls, table.predicts_data, clip, float(control.noise))


def plan_gaussian(policy: Gaussian, control: Control, chooses: bool) -> Direct:
    """Samples if several of them are chosen from; otherwise the policy acts with its mean."""
    net, factor = layers_of(policy.net), float(control.noise / control.scale**0.5)
    if not chooses or not factor:
        means = slice(net.biases[-1].size // (1 if policy.std or policy.log_std is not None else 2))
        weights = *net.weights[:-1], net.weights[-1][:, means]
        return Direct(net._replace(weights=weights, biases=(*net.biases[:-1], net.biases[-1][means])))
    limits = LOG_STD_LOW, policy.max_log_std
    log_std = None
    if policy.std:
        log_std = np.full(net.biases[-1].size, np.log(policy.std), np.float32)
    elif policy.log_std is not None:
        log_std = np.clip(policy.log_std, *limits).astype(np.float32)
    return Direct(net, factor, log_std, limits, policy.squash)


def plan_deterministic(policy: Deterministic, control: Control, chooses: bool) -> Direct:
    del control, chooses
    return Direct(layers_of(policy.net))


PLANNERS: dict[type[Policy], Callable[..., Chain | Direct]] = {
    Diffusion: plan_diffusion,
    Flow: plan_flow,
    MeanFlow: plan_mean_flow,
    Distilled: plan_distilled,
    Gaussian: plan_gaussian,
    Deterministic: plan_deterministic,
}


def layers_of(net: MLP) -> Layers:
    if net.activation not in ACTIVATIONS:
        raise UserError(f"the activation function {net.activation!r} has no exporter ({', '.join(ACTIVATIONS)} have)")
    if len(net.layers) < 2:
        raise UserError("a network without hidden layers has no exporter")
    weights, biases = zip(*((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in net.layers), strict=True)
    return Layers(weights, biases, net.activation, net.norm)
