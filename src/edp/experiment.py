"""A training run from its options to its end, as a stream of events that the caller shows as it likes."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp import checkpoint, train
from edp.algorithms import ALGORITHMS, Algorithm
from edp.algorithms.actor_critic import ActorCritic
from edp.data import d4rl, episodes, tasks
from edp.data.make import make_env
from edp.diffusion import Sampler
from edp.errors import UserError, unknown
from edp.evaluate import Episodes, Pool, Way, evaluate
from edp.options import check, option
from edp.policies import POLICIES, DiffusionConfig, PolicyConfig, TransformerConfig
from edp.policies.base import PLAIN, Control
from edp.run import Run
from edp.types import Sequences, Transitions

ACTING = ("online", "average")


@dataclass(frozen=True)
class TrainOptions:
    steps: int = option(100_000, "training steps", low=1)
    batch_size: int = option(256, "transitions in a batch", low=1)
    seeds: int = option(1, "how many seeds to train, all in one program", low=1, high=10_000)
    seed: int = option(0, "the first of the seeds", low=0, high=2**31 - 10_001)
    epoch_steps: int = option(1000, "steps in one compiled epoch; metrics are means over it", low=1)
    eval_every: int = option(10_000, "steps between evaluations", low=1)


@dataclass(frozen=True)
class DataOptions:
    rewards: str = option("raw", f"how rewards are transformed: {', '.join(episodes.REWARDS)}")
    best: float = option(1.0, "train on this share of the episodes, those with the highest returns", low=1e-9, high=1.0)

    def __post_init__(self):
        if self.rewards not in episodes.REWARDS:
            raise unknown("choice of --rewards", self.rewards, episodes.REWARDS)


@dataclass(frozen=True)
class EvalOptions:
    episodes: int = option(10, "episodes of each seed in an evaluation", low=1, high=10_000)
    eas: int = option(10, "energy-based action selection: actions to choose from (1: off)", low=1)
    eas_temperature: float = option(1.0, "of that choice: exp(Q / temperature); 0 takes the best", low=0.0)
    eas_spread: float = option(0.0, "std of noise around the actions to choose from", low=0.0)
    policy_scale: float = option(1.0, "factor of the network's output: sharper samples above 1", low=1e-6)
    initial_noise: float = option(1.0, "factor of the noise that samples start from: 0 leaves no chance", low=0.0)
    env_seed: int = option(0, "the seed of the first episode's start", low=0, high=2**31 - 10_001)
    act_with: str = option("average", "which parameters act: online, or their slow average (targets)")
    act_sampler: str = option("", "sampler of a diffusion policy when it acts (default: as in training)")
    act_calls: int = option(0, "network calls when it acts (0: as in training, or 15 of another sampler)", low=0)
    parallel: int = option(0, "environments of each seed at a time (0: one for each episode)", low=0)

    @property
    def way(self) -> Way:
        return Way(Control(self.policy_scale, self.initial_noise), self.eas_temperature, self.eas_spread)


@dataclass(frozen=True)
class Spec:
    """Everything that decides what a run computes."""

    task: tasks.Task
    algorithm: Algorithm
    policy: PolicyConfig
    data: DataOptions
    training: TrainOptions
    evaluation: EvalOptions

    def check(self) -> "Spec":
        """Refuse parts that do not go together; gives the spec back."""
        self.algorithm.check(self.policy)
        jax.eval_shape(lambda key: self.policy.build(1, 1, key), jax.random.key(0))
        check_acting(self, self.evaluation)
        if self.policy.reads_histories and self.data.rewards != "raw":
            raise UserError("dt counts down the environment's own rewards as it acts: use --rewards raw")
        return self

    def to_json(self) -> dict[str, Any]:
        names = {type(self.algorithm): ALGORITHMS, type(self.policy): POLICIES}
        named = {cls: name for table in names.values() for name, cls in table.items()}
        return {
            "task": self.task.name,
            "algorithm": {"name": named[type(self.algorithm)], **asdict(self.algorithm)},  # pyright: ignore
            "policy": {"name": named[type(self.policy)], **asdict(self.policy)},  # pyright: ignore
            "data": asdict(self.data),
            "training": asdict(self.training),
            "evaluation": asdict(self.evaluation),
        }

    @classmethod
    def from_json(cls, config: dict[str, Any], where: Path) -> "Spec":
        try:
            return cls(
                tasks.get(config["task"]),
                from_named(ALGORITHMS, "algorithm", config["algorithm"]),
                from_named(POLICIES, "policy", config["policy"]),
                check(DataOptions(**config["data"])),
                check(TrainOptions(**config["training"])),
                check(EvalOptions(**config["evaluation"])),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{where}: not a config of this version ({error})") from None


def from_named(table: dict[str, Any], kind: str, options: dict[str, Any]) -> Any:
    """The dataclass that ``options["name"]`` names, with the other entries as its fields."""
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    name = options.pop("name")
    if name not in table:
        raise unknown(kind, name, table)
    return check(table[name](**options))


class Compiled(NamedTuple):
    seconds: float


class Epoch(NamedTuple):
    step: int
    steps_per_second: float
    metrics: dict[str, list[float]]  # one value a seed


class Evaluation(NamedTuple):
    step: int
    scores: np.ndarray  # (seeds, episodes), normalised; NaN where an episode failed
    seconds: float
    failures: list[str]  # and why


def init(spec: Spec, obs_dim: int, act_dim: int, key) -> Any:
    """One seed's training state."""
    policy_key, algorithm_key = jax.random.split(key)
    policy = spec.policy.build(obs_dim, act_dim, policy_key)
    return spec.algorithm.init(policy, obs_dim, act_dim, algorithm_key)


def device_data(spec: Spec, dataset: d4rl.Dataset) -> Transitions | Sequences:
    """The data in the form that the algorithm learns from."""
    dataset = episodes.prepare(dataset, spec.data.rewards, spec.data.best)
    algorithm, policy = spec.algorithm, spec.policy
    if isinstance(policy, TransformerConfig):
        data = episodes.sequences(dataset, policy.context, policy.return_scale)
    elif isinstance(algorithm, ActorCritic) and algorithm.learns_from == "tails":
        data = episodes.transitions(dataset, episodes.tails(dataset, algorithm.discount))
    else:
        data = episodes.transitions(dataset)
    return jax.tree.map(jnp.asarray, data)


class Experiment:
    """A spec with its data, ready to run: whatever is wrong with them is found here, before anything is written."""

    def __init__(self, spec: Spec, dataset: d4rl.Dataset):
        self.spec, options = spec, spec.training
        self.evaluator = Evaluator(spec)
        self.dims = dataset.obs.shape[1], dataset.action.shape[1]
        if self.dims != self.evaluator.dims:
            raise UserError(
                f"the data has {self.dims[0]} observations and {self.dims[1]} actions, "
                f"but {spec.task.name} has {self.evaluator.dims[0]} and {self.evaluator.dims[1]}"
            )
        self.keys = train.seed_keys(range(options.seed, options.seed + options.seeds))
        self.data = train.on_devices(device_data(spec, dataset), train.seed_sharding(options.seeds))
        self.states = train.init_states(partial(init, spec, *self.dims), train.epoch_keys(self.keys, 0))

    def run(self, folder: Run) -> Iterator[Compiled | Epoch | Evaluation]:
        """Train and evaluate; a checkpoint is written at the end."""
        options, step, compiled = self.spec.training, 0, None
        for number in range(1, -(-options.steps // options.epoch_steps) + 1):
            length = min(options.epoch_steps, options.steps - step)
            arguments = (self.spec.algorithm.update, self.states, self.data, train.epoch_keys(self.keys, number))
            if compiled is None or length != options.epoch_steps:
                start = time.perf_counter()
                compiled = train.epoch.lower(*arguments, steps=length, batch_size=options.batch_size).compile()
                yield Compiled(time.perf_counter() - start)
            start = time.perf_counter()
            self.states, metrics = compiled(*arguments[1:])
            metrics = {name: np.asarray(value).tolist() for name, value in metrics.items()}
            step += length
            event = Epoch(step, length / (time.perf_counter() - start), metrics)
            check_finite(event)
            folder.log_metrics(event._asdict())
            yield event
            if step == options.steps or step // options.eval_every > (step - length) // options.eval_every:
                yield self.evaluator(self.states, step, folder)
        checkpoint.save(folder.checkpoint, self.states)


def check_finite(epoch: Epoch) -> None:
    for name, values in epoch.metrics.items():
        for seed, value in enumerate(values):
            if not np.isfinite(value):
                raise UserError(
                    f"{name} became {value} before step {epoch.step} (seed number {seed}): try a smaller --lr"
                )


def check_acting(spec: Spec, options: EvalOptions) -> Sampler | None:
    """Refuse a way of acting that policy or algorithm do not allow; gives the sampler, if another one is to act."""
    if options.act_with not in ACTING:
        raise unknown("choice of --act-with", options.act_with, ACTING)
    if options.eas > 1 and not spec.algorithm.values_actions:
        raise UserError("--eas chooses among actions by their values, and this algorithm has none: use --eas 1")
    if options.eas > 1 and spec.policy.deterministic and not options.eas_spread:
        raise UserError("--eas chooses among several actions, and this policy has one: use --eas 1, or --eas-spread")
    if spec.policy.deterministic and options.way.control != PLAIN:
        raise UserError("--policy-scale and --initial-noise are for policies that sample, and this one does not")
    if options.eas_spread and options.eas == 1:
        raise UserError("--eas-spread spreads the actions that --eas chooses from: use --eas 2 or more")
    if not options.act_sampler and not options.act_calls:
        return None
    if not isinstance(spec.policy, DiffusionConfig):
        raise UserError("--act-sampler and --act-calls are for diffusion policies only")
    return spec.policy.sampled(options.act_sampler, options.act_calls)


class Evaluator:
    """Evaluates training states on the task; environments are made once."""

    def __init__(self, spec: Spec, evaluation: EvalOptions | None = None):
        self.spec, self.options = spec, evaluation or spec.evaluation
        self.sampler = check_acting(spec, self.options)
        size = min(self.options.parallel or self.options.episodes, self.options.episodes)
        self.pools = [Pool(partial(make_env, spec.task.env), size) for _ in range(spec.training.seeds)]

    @property
    def dims(self) -> tuple[int, int]:
        """The sizes of the environment's observations and actions."""
        env = self.pools[0].free[0]
        return env.observation_space.shape[0], env.action_space.shape[0]  # pyright: ignore

    def actors(self, states: Any) -> tuple[Any, Any]:
        """The policies and critics that act, stacked over seeds."""
        average = self.options.act_with == "average"
        learners = states.policy, states.critic
        policies, critics = (part and (part.target if average else part.model) for part in learners)
        return policies.with_sampler(self.sampler) if self.sampler else policies, critics

    def roll_out(self, states: Any) -> Episodes:
        options = self.options
        return evaluate(
            *self.actors(states),
            self.pools,
            episodes=options.episodes,
            actions=options.eas,
            seed=options.env_seed,
            way=options.way,
        )

    def __call__(self, states: Any, step: int, folder: Run, kind: str = "training") -> Evaluation:
        start = time.perf_counter()
        rolled = self.roll_out(states)
        seconds, training, first = time.perf_counter() - start, self.spec.training, self.options.env_seed
        scores = self.spec.task.score(rolled.returns)
        failures = {f"seed {training.seed + i}, episode {j}": why for (i, j), why in rolled.failures.items()}
        folder.log_evaluation(
            {
                "kind": kind,
                "step": step,
                "seeds": list(range(training.seed, training.seed + training.seeds)),
                "env_seeds": list(range(first, first + self.options.episodes)),
                "scores": without_nan(scores),
                "returns": without_nan(rolled.returns),
                "lengths": rolled.lengths.tolist(),
                "failures": failures,
                "seconds": seconds,
                "options": asdict(self.options),
            }
        )
        return Evaluation(step, scores, seconds, [f"{place}: {why}" for place, why in failures.items()])


def without_nan(rows: np.ndarray) -> list[list[float | None]]:
    """For JSON, which has no NaN."""
    return [[None if np.isnan(value) else value for value in row] for row in rows.tolist()]


def load(folder: Run) -> tuple[Spec, Any]:
    """A run's spec and its final training states."""
    spec = Spec.from_json(folder.config, folder.folder / "config.json")
    if not folder.checkpoint.exists():
        raise UserError(f"{folder.folder}: no checkpoint in it yet")
    dims = Evaluator(spec).dims
    keys = train.seed_keys(range(spec.training.seeds))
    like = jax.eval_shape(jax.vmap(partial(init, spec, *dims)), keys)
    return spec, checkpoint.restore(folder.checkpoint, like)
