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
from edp.evaluate import Episodes, evaluate
from edp.options import check, option
from edp.policies import POLICIES, DiffusionConfig, PolicyConfig, TransformerConfig
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
    env_seed: int = option(0, "the seed of the first episode's start", low=0, high=2**31 - 10_001)
    act_with: str = option("average", "which parameters act: online, or their slow average (targets)")
    act_sampler: str = option("", "sampler of a diffusion policy when it acts (default: as in training)")
    act_calls: int = option(0, "network calls when it acts (0: as in training, or 15 of another sampler)", low=0)


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
    scores: np.ndarray  # (seeds, episodes), normalised
    seconds: float


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
    if options.eas > 1 and (spec.policy.deterministic or not spec.algorithm.values_actions):
        why = "this policy has one" if spec.policy.deterministic else "this algorithm does not value actions"
        raise UserError(f"--eas chooses among several actions by their values, and {why}: use --eas 1")
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
        columns, rows = range(self.options.episodes), range(spec.training.seeds)
        self.envs = [[make_env(spec.task.env) for _ in columns] for _ in rows]

    @property
    def dims(self) -> tuple[int, int]:
        """The sizes of the environment's observations and actions."""
        env = self.envs[0][0]
        return env.observation_space.shape[0], env.action_space.shape[0]  # pyright: ignore

    def roll_out(self, states: Any) -> Episodes:
        average = self.options.act_with == "average"
        learners = states.policy, states.critic
        policies, critics = (part and (part.target if average else part.model) for part in learners)
        if self.sampler:
            policies = policies.with_sampler(self.sampler)
        return evaluate(policies, critics, self.envs, actions=self.options.eas, seed=self.options.env_seed)

    def __call__(self, states: Any, step: int, folder: Run) -> Evaluation:
        start = time.perf_counter()
        rolled = self.roll_out(states)
        event = Evaluation(step, self.spec.task.score(rolled.returns), time.perf_counter() - start)
        training = self.spec.training
        folder.log_evaluation(
            {
                "step": step,
                "seeds": list(range(training.seed, training.seed + training.seeds)),
                "scores": event.scores.tolist(),
                "returns": rolled.returns.tolist(),
                "lengths": rolled.lengths.tolist(),
                "options": asdict(self.options),
            }
        )
        return event


def load(folder: Run) -> tuple[Spec, Any]:
    """A run's spec and its final training states."""
    spec = Spec.from_json(folder.config, folder.folder / "config.json")
    if not folder.checkpoint.exists():
        raise UserError(f"{folder.folder}: no checkpoint in it yet")
    dims = Evaluator(spec).dims
    keys = train.seed_keys(range(spec.training.seeds))
    like = jax.eval_shape(jax.vmap(partial(init, spec, *dims)), keys)
    return spec, checkpoint.restore(folder.checkpoint, like)
