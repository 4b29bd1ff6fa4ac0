"""What a run computes: its options, put together and checked, and how they are written down."""

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from edp.acting.rollout import Way
from edp.algorithms import ALGORITHMS, Algorithm
from edp.data import episodes, tasks
from edp.data.units import NORMALISATIONS, Units, plain
from edp.diffusion import Sampler
from edp.errors import UserError, unknown
from edp.options import check, option
from edp.policies import POLICIES, DiffusionConfig, PolicyConfig
from edp.policies.base import PLAIN, Control

ACTING = ("online", "average")


@dataclass(frozen=True)
class TrainOptions:
    steps: int = option(100_000, "training steps", low=1)
    batch_size: int = option(256, "transitions in a batch", low=1)
    seeds: int = option(1, "how many seeds to train, all in one program", low=1, high=10_000)
    seed: int = option(0, "the first of the seeds", low=0, high=2**31 - 10_001)
    epoch_steps: int = option(1000, "steps in one compiled epoch; metrics are means over it", low=1)
    eval_every: int = option(10_000, "steps between evaluations (at ends of epochs)", low=1)
    checkpoint_every: int = option(10_000, "steps between checkpoints (there is one at each evaluation, too)", low=1)


@dataclass(frozen=True)
class DataOptions:
    rewards: str = option("raw", f"how rewards are transformed: {', '.join(episodes.REWARDS)}")
    best: float = option(1.0, "train on this share of the episodes, those with the highest returns", low=1e-9, high=1.0)
    block: int = option(0, "transitions on the device at a time, other ones in each epoch (0: all of them)", low=0)
    validation: float = option(0.0, "share of the episodes that is kept from training, to be validated on", 0.0, 0.9)
    n_step: int = option(1, "rewards that are added up before a value is asked for", low=1, high=10_000)
    episode_limit: int = option(0, "steps after which an episode was cut off, even if it is marked as terminal", low=0)
    normalise: str = option("none", f"how observations are scaled: {', '.join(NORMALISATIONS)}")
    action_low: tuple[float, ...] = option((), "lowest actions (default: the environment's, or the data's)")
    action_high: tuple[float, ...] = option((), "highest actions (default: the environment's, or the data's)")

    def __post_init__(self):
        if self.rewards not in episodes.REWARDS:
            raise unknown("choice of --rewards", self.rewards, episodes.REWARDS)
        if self.normalise not in NORMALISATIONS:
            raise unknown("choice of --normalise", self.normalise, NORMALISATIONS)


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
        return Way(Control(self.policy_scale, self.initial_noise), self.eas_temperature, self.eas_spread or None)


@cache
def check_networks(policy: PolicyConfig) -> None:
    """Refuse options that no network can be built with."""
    jax.eval_shape(lambda: policy.build(1, 1, jax.random.key(0)))


@dataclass(frozen=True)
class Spec:
    """Everything that decides what a run computes."""

    task: tasks.Task
    algorithm: Algorithm
    policy: PolicyConfig
    data: DataOptions
    training: TrainOptions
    evaluation: EvalOptions
    units: Units | None = None  # of the data; where nobody says, the task's own, with actions in [-1, 1]

    @property
    def scale(self) -> Units:
        return self.units or plain(*dims_of(self.task))

    def check(self) -> "Spec":
        """Refuse parts that do not go together; gives the spec back."""
        self.algorithm.check(self.policy)
        check_networks(self.policy)
        check_acting(self, self.evaluation)
        if self.policy.reads_histories and self.data.block:
            raise UserError("--block streams single transitions, and a transformer reads whole histories: leave it out")
        if self.policy.reads_histories and self.data.rewards != "raw":
            raise UserError("dt counts down the environment's own rewards as it acts: use --rewards raw")
        if self.data.n_step > 1 and not self.algorithm.values_actions:
            raise UserError("--n-step would change nothing: this algorithm asks for no value of the next state")
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
            "units": self.units and self.units.to_json(),
            "own_task": asdict(self.task) if self.task.own else None,
        }

    @classmethod
    def from_json(cls, config: dict[str, Any], where: Path) -> "Spec":
        try:
            return cls(
                tasks.own_from_json(config["own_task"]) if config.get("own_task") else tasks.get(config["task"]),
                from_named(ALGORITHMS, "algorithm", config["algorithm"]),
                from_named(POLICIES, "policy", config["policy"]),
                check(DataOptions(**tuples(config["data"]))),
                check(TrainOptions(**config["training"])),
                check(EvalOptions(**config["evaluation"])),
                Units.from_json(config["units"]) if config.get("units") else None,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UserError(f"{where}: not a config of this version ({error})") from None


def from_named(table: dict[str, Any], kind: str, options: dict[str, Any]) -> Any:
    """The dataclass that ``options["name"]`` names, with the other entries as its fields."""
    options = tuples(options)
    name = options.pop("name")
    if name not in table:
        raise unknown(kind, name, table)
    return check(table[name](**options))


def tuples(options: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where options have tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


def dims_of(task: tasks.Task) -> tuple[int, int]:
    """The sizes of the environment's observations and actions."""
    env = task.make_env()
    try:
        return env.observation_space.shape[0], env.action_space.shape[0]
    finally:
        env.close()


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
    return spec.policy.sampler_for(options.act_sampler, options.act_calls)
