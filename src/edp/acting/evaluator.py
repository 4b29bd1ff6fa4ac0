"""Evaluations of training states on their task, written down in the run."""

import time
from collections.abc import Callable, Container, Iterable, Set
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from edp.acting.rollout import Episodes, Pool, StoppedError, evaluate
from edp.config.spec import EvalOptions, Spec, check_acting
from edp.diffusion import Sampler
from edp.envs.make import MOST_STEPS, is_endless
from edp.errors import UserError
from edp.runs.directory import Run
from edp.training import epoch, processes


class Evaluation(NamedTuple):
    step: int
    scores: np.ndarray  # (seeds, episodes), normalised; NaN where an episode failed
    seconds: float
    failures: list[str]  # and why
    cut: int = 0  # episodes that were cut off at MOST_STEPS, because the environment has no limit of its own


def actors(states: Any, act_with: str, sampler: Sampler | None) -> tuple[Any, Any]:
    """The policies and critics that act, stacked over seeds."""
    learners = states.policy, states.critic
    policies, critics = (part and (part.target if act_with == "average" else part.model) for part in learners)
    return policies.with_sampler(sampler) if sampler else policies, critics


class Evaluator:
    """Evaluates training states on the task; environments are made once."""

    def __init__(self, spec: Spec, evaluation: EvalOptions | None = None):
        self.spec, self.options = spec, evaluation or spec.evaluation
        self.sampler = check_acting(spec, self.options)
        size = min(self.options.parallel or self.options.episodes, self.options.episodes)
        self.rows = epoch.own_rows(spec.training.seeds)
        self.pools = [Pool(spec.task.make_env, size) for _ in self.rows]
        self.endless = is_endless(self.pools[0].free[0])
        env, known = self.pools[0].free[0], spec.units and spec.units.dims
        self.dims = env.observation_space.shape[0], env.action_space.shape[0]  # pyright: ignore
        if known and known != self.dims:
            raise UserError(
                f"the data has {known[0]} observations and {known[1]} actions, "
                f"but {spec.task.env} has {self.dims[0]} and {self.dims[1]}"
            )

    def roll_out(
        self, states: Any, without: Set[int] = frozenset(), stopping: Callable[[], bool] = lambda: False
    ) -> Episodes:
        """All seeds' episodes; each process plays those of its own seeds."""
        options, first = self.options, self.rows.start
        policies, critics = processes.own(actors(states, options.act_with, self.sampler))
        try:
            played = evaluate(
                policies,
                critics,
                self.pools,
                episodes=options.episodes,
                actions=options.eas,
                seed=options.env_seed,
                way=options.way,
                units=self.spec.units,
                first_row=first,
                without={row - first for row in without if row in self.rows},
                stopping=stopping,
            )
            failures = [(first + row, column, why) for (row, column), why in played.failures.items()]
            heard = processes.exchange((played.returns.tolist(), played.lengths.tolist(), failures))
        except StoppedError:
            heard = processes.exchange()
        if None in heard:
            raise StoppedError
        returns, lengths, failures = zip(*heard, strict=True)
        failures = {(row, column): why for part in failures for row, column, why in part}
        return Episodes(np.concatenate(returns), np.concatenate(lengths), failures)

    def __call__(
        self,
        states: Any,
        step: int,
        folder: Run,
        kind: str = "training",
        failed: Container[int] = (),
        stopping: Callable[[], bool] = lambda: False,
    ) -> Evaluation:
        """Evaluate all seeds but the failed ones, and write it down."""
        start = time.perf_counter()
        without = {row for row in range(self.spec.training.seeds) if self.spec.training.seed + row in failed}
        rolled = self.roll_out(states, without, stopping)
        seconds, training, first = time.perf_counter() - start, self.spec.training, self.options.env_seed
        scores = self.spec.task.score(rolled.returns)
        failures = {f"seed {training.seed + i}, episode {j}": why for (i, j), why in rolled.failures.items()}
        folder.log_evaluation(
            {
                "kind": kind,
                "step": step,
                "seeds": list(range(training.seed, training.seed + training.seeds)),
                "env_seeds": list(range(first, first + self.options.episodes)),
                "scores": [without_nan(row) for row in scores.tolist()],
                "returns": [without_nan(row) for row in rolled.returns.tolist()],
                "lengths": rolled.lengths.tolist(),
                "failures": failures,
                "options": asdict(self.options),
            }
        )
        folder.log_time({"step": step, "kind": kind, "evaluation_seconds": round(seconds, 2)})
        cut = int((rolled.lengths >= MOST_STEPS).sum()) if self.endless else 0
        return Evaluation(step, scores, seconds, [f"{place}: {why}" for place, why in failures.items()], cut)


def without_nan(values: Iterable[float]) -> list[float | None]:
    """For JSON, which has no NaN and no Inf."""
    return [value if np.isfinite(value) else None for value in values]
