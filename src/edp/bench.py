"""The paper's efficiency figure: how fast its variants train and act, in turns, against the machine's GEMM rate.

Shapes are those of walker2d (17 observations, 6 actions; batches of 256), the data is random, and nothing is read.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp import settings, train
from edp.algorithms.td3bc import TD3BC
from edp.data.d4rl import Dataset
from edp.data.episodes import transitions
from edp.data.make import make_env
from edp.evaluate import Pool, evaluate
from edp.flops import gemm, matmul_flops, seconds
from edp.policies import POLICIES

OBS, ACT, BATCH, ROWS = 17, 6, 256, 100_000
GEMM = "GEMM 256³"
ENV = "edp/walker2d-d4rl-v2"
BLOCK_FLOPS = 1e11  # of training in one measurement: a second, more or less
K100 = {"diffusion_steps": 100}

# Names as in the paper. Where every noise level is a network call, K is 100.
VARIANTS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "dql": ("diffusion", "dql", {**K100, "schedule": "linear"}),
    "edp-without-dpm": ("diffusion", "edp-without-dpm", {}),
    "edp-without-ap": ("diffusion", "edp-without-ap", {}),
    "edp": ("diffusion", "edp", {}),
    "feed-forward": ("deterministic", None, {}),
}


class Case(NamedTuple):
    run: Callable[[], Any]  # one block
    steps: int  # in it
    flops: int  # in each of them


class Row(NamedTuple):
    """What was measured of one case: a value of each round."""

    name: str
    what: str  # training or acting
    compile_seconds: float
    flops: int  # in one step
    rates: list[float]  # steps per second

    @property
    def median(self) -> float:
        return statistics.median(self.rates)


@cache
def random_data(rows: int = ROWS) -> Dataset:
    """Random transitions in episodes of 100 steps."""
    rng = np.random.default_rng(0)
    obs, next_obs = rng.standard_normal((2, rows, OBS), np.float32)
    action, reward = rng.uniform(-1, 1, (rows, ACT)).astype(np.float32), rng.standard_normal(rows, np.float32)
    return Dataset(obs, action, reward, next_obs, np.ones(rows, np.float32), np.arange(rows) // 100, np.zeros(0), [])


def parts(name: str) -> tuple[Any, Any]:
    """The algorithm and the policy of a variant, at the paper's settings for locomotion."""
    policy, preset, options = VARIANTS[name]
    classes = TD3BC, POLICIES[policy]
    preset_values = settings.PRESETS.get(preset or "", {})
    chosen = {key: value for key, value in preset_values.items() if not key.startswith(("eas", "act"))}
    layers = settings.layers("td3bc", policy, "locomotion", {}, None)
    return tuple(settings.resolve(classes, layers, chosen | options).parts)  # pyright: ignore


def training(name: str) -> Case:
    algorithm, policy = parts(name)
    data, keys = jax.tree.map(jnp.asarray, transitions(random_data())), train.seed_keys(range(1))
    states = train.init_states(partial(init, algorithm, policy), keys)
    one = jax.tree.map(lambda leaf: leaf[0], states)
    flops = matmul_flops(algorithm.update, one, data.draw(keys[0], BATCH), keys[0])
    steps = int(np.clip(BLOCK_FLOPS // flops, 2, 100))
    step_keys = train.epoch_keys(keys, 1, steps)

    def run():
        nonlocal states
        states, metrics, _ = train.epoch(algorithm.update, states, data, step_keys, batch_size=BATCH)
        return metrics

    return Case(run, steps, flops)


def init(algorithm: Any, policy: Any, key) -> Any:
    return algorithm.init(policy.build(OBS, ACT, key), OBS, ACT, key)


def acting(name: str, steps: int = 100, episodes: int = 10) -> Case:
    """Environment steps of ten environments side by side, one sampled action each (no EAS)."""
    _, policy = parts(name)
    policies = jax.vmap(lambda key: policy.build(OBS, ACT, key))(train.seed_keys(range(1)))
    endless = partial(make_env, ENV, max_episode_steps=steps, terminate_when_unhealthy=False)
    pool = Pool(endless, episodes)
    one = jax.tree.map(lambda leaf: leaf[0], policies)
    flops = matmul_flops(lambda policy, obs, key: policy.act(obs, key), one, jnp.zeros((1, OBS)), jax.random.key(0))
    run = lambda: evaluate(policies, None, [pool], episodes=episodes, actions=1, seed=0)  # noqa: E731
    return Case(run, steps * episodes, flops)


def measure(names: list[str], rounds: int) -> Iterator[str | list[Row]]:
    """Tells what it is doing; at the end gives the rows, the machine's own GEMM rate first."""
    multiply, flops = gemm()
    cases: dict[tuple[str, str], Case] = {(GEMM, "training"): Case(multiply, 1, flops)}
    for name in names:
        cases |= {(name, "training"): training(name), (name, "acting"): acting(name)}
    compiled = {}
    for (name, what), case in cases.items():
        yield f"compiling {name}, {what}"
        first, again = seconds(case.run), seconds(case.run)
        compiled[name, what] = max(0.0, first - again)
    rates: dict[tuple[str, str], list[float]] = {key: [] for key in cases}
    for number in range(1, rounds + 1):
        for (name, what), case in cases.items():
            yield f"round {number} of {rounds}: {name}, {what}"
            start = time.perf_counter()
            jax.block_until_ready(case.run())
            rates[name, what].append(case.steps / (time.perf_counter() - start))
    yield [Row(name, what, compiled[name, what], case.flops, rates[name, what]) for (name, what), case in cases.items()]
