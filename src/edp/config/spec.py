"""A run's specification: everything that decides what it computes, checked, and as JSON."""

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax

from edp.algorithms import ALGORITHMS, Algorithm
from edp.algorithms.energies import ENERGIES
from edp.config.sizes import check_acting_sizes, check_sizes
from edp.data import episodes, tasks
from edp.data.signals import Signals
from edp.data.tasks import Task
from edp.data.units import NORMALISATIONS, Units
from edp.diffusion import FlowSampler, Sampler
from edp.errors import UserError, unknown
from edp.options import check_options, option
from edp.policies import POLICIES, PolicyConfig
from edp.policies.base import PLAIN, Control

PARAMETERS = ("online", "average")  # choices of `act_with`
LAST_SEED = 2**31 - 10_001  # episodes and seeds of training count on from a seed, in int32


@dataclass(frozen=True)
class TrainOptions:
    steps: int = option(100_000, "training steps", low=1)
    batch_size: int = option(256, "transitions in a batch", low=1)
    seeds: int = option(1, "how many seeds to train, all in one program", low=1, high=10_000)
    seed: int = option(0, "the first of the seeds", low=0, high=LAST_SEED)
    epoch_steps: int = option(1000, "steps in one compiled epoch; metrics are means over it", low=1)
    eval_every: int = option(10_000, "steps between evaluations (at ends of epochs)", low=1)
    checkpoint_every: int = option(10_000, "steps between checkpoints (there is one at each evaluation, too)", low=1)


@dataclass(frozen=True)
class DataOptions:
    rewards: str = option("raw", f"how rewards are transformed: {', '.join(episodes.REWARDS)}")
    best: float = option(1.0, "train on this share of the episodes, those with the highest returns", low=1e-9, high=1.0)
    best_of: str = option("episodes", f"what `best` is a share of: {', '.join(episodes.BEST_OF)}")
    block: int = option(0, "transitions on the device at a time, replaced every epoch (0: all of them)", low=0)
    validation: float = option(0.0, "share of the episodes that is held out for validation", 0.0, 0.9)
    n_step: int = option(1, "steps of rewards in a TD target", low=1, high=10_000)
    episode_limit: int = option(0, "steps after which an episode was cut off, even if it is marked as terminal", low=0)
    normalise: str = option("none", f"how observations are scaled: {', '.join(NORMALISATIONS)}")
    action_low: tuple[float, ...] = option((), "lowest actions (default: the environment's, or the data's)")
    action_high: tuple[float, ...] = option((), "highest actions (default: the environment's, or the data's)")

    def __post_init__(self):
        if self.rewards not in episodes.REWARDS:
            raise unknown("choice of `rewards`", self.rewards, episodes.REWARDS)
        if self.best_of not in episodes.BEST_OF:
            raise unknown("choice of `best_of`", self.best_of, episodes.BEST_OF)
        if self.normalise not in NORMALISATIONS:
            raise unknown("choice of `normalise`", self.normalise, NORMALISATIONS)


@dataclass(frozen=True)
class EvalOptions:
    episodes: int = option(10, "episodes of each seed in an evaluation", low=1, high=10_000)
    eas: int = option(10, "energy-based action selection: actions to choose from (1: off)", low=1)
    eas_energy: str = option("raw", f"what EAS prefers: {', '.join(ENERGIES)}")
    eas_temperature: float = option(
        1.0, "temperature of EAS: probabilities ∝ exp(energy / temperature); 0 takes the best", low=0.0
    )
    eas_after: int = option(0, "training steps before EAS is used; one action is sampled until then", low=0)
    eas_spread: float = option(0.0, "std of noise around the actions to choose from", low=0.0)
    policy_scale: float = option(1.0, "factor of the network's output (above 1: sharper samples)", low=1e-6)
    initial_noise: float = option(1.0, "factor of all random numbers in sampling (0: deterministic)", low=0.0)
    env_seed: int = option(0, "the seed of the first episode's start", low=0, high=LAST_SEED)
    fresh_starts: bool = option(False, "use different start states at each evaluation: the step is added to `env_seed`")
    act_with: str = option("average", "which parameters act: online, or their slow average (targets)")
    act_sampler: str = option("", "sampler of a diffusion or flow policy when it acts (default: as in training)")
    act_calls: int = option(0, "network calls when it acts (0: as in training, or 15 of another sampler)", low=0)
    parallel: int = option(0, "environments that run at a time for each seed (0: one for each episode)", low=0)

    @property
    def control(self) -> Control:
        return Control(self.policy_scale, self.initial_noise)

    def with_values(self, **given: Any) -> "EvalOptions":
        """These options with other values, checked. If ``eas`` is given, it holds for every step."""
        always = {"eas_after": 0} if "eas" in given else {}
        return check_options(replace(self, **(always | given)))

    def at(self, step: int) -> "EvalOptions":
        """These options for a checkpoint of this step: without EAS before ``eas_after``."""
        return self if step >= self.eas_after or self.eas == 1 else replace(self, eas=1, eas_spread=0.0)


@dataclass(frozen=True)
class Spec:
    """Everything that decides what a run computes."""

    task: Task
    algorithm: Algorithm
    policy: PolicyConfig
    data: DataOptions
    training: TrainOptions
    evaluation: EvalOptions
    units: Units  # of observations and actions
    signals: Signals | None = None  # their names; None in runs of older versions

    @property
    def seeds(self) -> range:
        return range(self.training.seed, self.training.seed + self.training.seeds)

    @property
    def names(self) -> tuple[str, str]:
        """The registered names of the algorithm and the policy."""
        return registered_name(ALGORITHMS, self.algorithm), registered_name(POLICIES, self.policy)

    def check(self) -> "Spec":
        """Refuse options that contradict each other. Returns the spec."""
        check_sizes(self.algorithm, self.policy, self.training, self.evaluation)
        check_together(self.algorithm, self.policy, self.data, self.evaluation)
        return self

    def to_json(self) -> dict[str, Any]:
        algorithm, policy = self.names
        return {
            "task": self.task.name,
            "algorithm": {"name": algorithm, **asdict(self.algorithm)},  # pyright: ignore
            "policy": {"name": policy, **asdict(self.policy)},  # pyright: ignore
            "data": asdict(self.data),
            "training": asdict(self.training),
            "evaluation": asdict(self.evaluation),
            "units": self.units.to_json(),
            "own_task": asdict(self.task) if self.task.own else None,
            "signals": self.signals and self.signals.to_json(),
        }

    @classmethod
    def from_json(cls, config: dict[str, Any], where: Path) -> "Spec":
        """The spec in the config of a run; ``where`` is the file that errors name."""
        try:
            units, signals = Units.from_json(config["units"]), config.get("signals")
            return cls(
                tasks.own_task_from_json(config["own_task"])
                if config.get("own_task")
                else tasks.get_task(config["task"]),
                from_named(ALGORITHMS, "algorithm", config["algorithm"]),
                from_named(POLICIES, "policy", config["policy"]),
                check_options(DataOptions(**lists_to_tuples(config["data"]))),
                check_options(TrainOptions(**config["training"])),
                check_options(EvalOptions(**config["evaluation"])),
                units,
                signals and Signals.from_json(signals, units.dims),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UserError(f"{where}: not a config of this version ({error})") from None


def registered_name(registry: dict[str, type], part: Any) -> str:
    return next(name for name, cls in registry.items() if cls is type(part))


def from_named(registry: dict[str, Any], kind: str, options: dict[str, Any]) -> Any:
    """The dataclass that is registered under ``options["name"]``, with the other entries as its fields."""
    options = lists_to_tuples(options)
    name = options.pop("name")
    if name not in registry:
        raise unknown(kind, name, registry)
    return check_options(registry[name](**options))


def lists_to_tuples(options: dict[str, Any]) -> dict[str, Any]:
    """Options as read from JSON, with tuples in place of JSON's lists."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


def check_together(algorithm: Algorithm, policy: PolicyConfig, data: DataOptions, evaluation: EvalOptions) -> None:
    """Refuse options that contradict each other."""
    algorithm.check(policy)
    check_networks(policy)
    acting_sampler(algorithm, policy, evaluation)
    if policy.reads_histories and data.block:
        raise UserError("`block` streams single transitions, and a transformer reads whole histories: leave it out")
    if policy.reads_histories and data.rewards != "raw":
        raise UserError("dt subtracts the environment's rewards from its target return: use `rewards=raw`")
    if data.n_step > 1 and not algorithm.values_actions:
        raise UserError("`n_step` has no effect: this algorithm does not use the value of the next state")


@cache
def check_networks(policy: PolicyConfig) -> None:
    """Refuse options with which no network can be built."""
    jax.eval_shape(lambda: policy.build(1, 1, jax.random.key(0)))


def acting_sampler(algorithm: Algorithm, policy: PolicyConfig, options: EvalOptions) -> Sampler | FlowSampler | None:
    """The sampler to act with, or None for the training sampler. Refuses what policy or algorithm do not allow."""
    check_acting_sizes(policy, options)
    if options.act_with not in PARAMETERS:
        raise unknown("choice of `act_with`", options.act_with, PARAMETERS)
    if options.eas_energy not in ENERGIES:
        raise unknown("choice of `eas_energy`", options.eas_energy, ENERGIES)
    if options.eas > 1 and not algorithm.values_actions:
        raise UserError("`eas` chooses among actions by their values, and this algorithm has none: use `eas=1`")
    if options.eas > 1 and policy.deterministic and not options.eas_spread:
        raise UserError("`eas` chooses among several actions, and this policy has one: use `eas=1`, or `eas_spread`")
    if policy.deterministic and options.control != PLAIN:
        raise UserError("`policy_scale` and `initial_noise` are for policies that sample, and this one does not")
    if options.policy_scale != 1 and not policy.can_scale:
        raise UserError("`policy_scale` is for chains of network calls, and this policy makes one: use `initial_noise`")
    if options.eas_spread and options.eas == 1:
        raise UserError("`eas_spread` spreads the actions that `eas` chooses from: use `eas=2` or more")
    if not options.act_sampler and not options.act_calls:
        return None
    return policy.sampler_for(options.act_sampler, options.act_calls)
