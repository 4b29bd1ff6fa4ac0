"""Evaluations of training states on the run's task, recorded in the run directory."""

import time
from collections.abc import Callable, Container, Set
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from edp.acting.actors import Actors
from edp.acting.rollout import Episodes, Pool, StoppedError, roll_out_policies
from edp.config.spec import LAST_SEED, EvalOptions, Spec
from edp.devices import processes
from edp.devices.seeds import local_rows
from edp.envs.make import MOST_STEPS, is_endless
from edp.errors import UserError, counted
from edp.runs.directory import Run
from edp.runs.rows import finite_or_none


class Evaluation(NamedTuple):
    step: int
    scores: np.ndarray  # (seeds, episodes), normalised; NaN where an episode failed
    seconds: float
    failures: list[str]
    cut: int = 0  # episodes that were cut off after MOST_STEPS, because the environment has no limit


class Evaluator:
    """Evaluates training states on the task. Environments are made once."""

    def __init__(self, spec: Spec, evaluation: EvalOptions | None = None):
        self.spec, self.options = spec, evaluation or spec.evaluation
        size = min(self.options.parallel or self.options.episodes, self.options.episodes)
        self.rows = local_rows(spec.training.seeds)
        self.pools = [Pool(spec.task.make_env, size) for _ in self.rows]
        self.endless = is_endless(self.pools[0].free[0])
        env, dims = self.pools[0].free[0], spec.units.dims
        env_dims = env.observation_space.shape[0], env.action_space.shape[0]  # pyright: ignore
        if dims != env_dims:
            raise UserError(
                f"the data has {counted(dims[0], 'observation')} and {counted(dims[1], 'action')}, "
                f"but {spec.task.env} has {env_dims[0]} and {env_dims[1]}"
            )

    def roll_out(
        self,
        states: Any,
        without: Set[int] = frozenset(),
        stopping: Callable[[], bool] = lambda: False,
        first_start: int | None = None,
    ) -> Episodes:
        """Play the episodes of all seeds. Each process plays those of its seeds, and returns the episodes of all."""
        options, first = self.options, self.rows.start
        actors = Actors.from_states(self.spec, options, states)
        policies, critics = processes.local_part((actors.policies, actors.critics))
        try:
            played = roll_out_policies(
                Actors(policies, critics, actors.selection),
                self.pools,
                episodes=options.episodes,
                seed=options.env_seed if first_start is None else first_start,
                units=self.spec.units,
                first_row=first,
                without={row - first for row in without if row in self.rows},
                stopping=stopping,
            )
            failures = [(first + row, column, reason) for (row, column), reason in played.failures.items()]
            heard = processes.exchange((played.returns.tolist(), played.lengths.tolist(), failures))
        except StoppedError:
            heard = processes.exchange()
        if None in heard:
            raise StoppedError
        returns, lengths, failures = zip(*heard, strict=True)
        failures = {(row, column): reason for part in failures for row, column, reason in part}
        return Episodes(np.concatenate(returns), np.concatenate(lengths), failures)

    def first_start(self, step: int) -> int:
        """The seed of the first episode's start, in an evaluation at this step."""
        return (self.options.env_seed + step) % LAST_SEED if self.options.fresh_starts else self.options.env_seed

    def __call__(
        self,
        states: Any,
        step: int,
        run: Run,
        kind: str = "training",
        failed: Container[int] = (),
        stopping: Callable[[], bool] = lambda: False,
    ) -> Evaluation:
        """Evaluate all seeds except the failed ones, and record the result in the run."""
        start = time.perf_counter()
        without = {row for row, seed in enumerate(self.spec.seeds) if seed in failed}
        first = self.first_start(step)
        played = self.roll_out(states, without, stopping, first)
        seconds = time.perf_counter() - start
        scores = self.spec.task.score(played.returns)
        failures = {f"seed {self.spec.seeds[i]}, episode {j}": reason for (i, j), reason in played.failures.items()}
        run.log_evaluation(
            {
                "kind": kind,
                "step": step,
                "seeds": list(self.spec.seeds),
                "env_seeds": list(range(first, first + self.options.episodes)),
                "scores": [finite_or_none(row) for row in scores.tolist()],
                "returns": [finite_or_none(row) for row in played.returns.tolist()],
                "lengths": played.lengths.tolist(),
                "failures": failures,
                "options": asdict(self.options.at(step)),
            }
        )
        run.log_time({"step": step, "kind": kind, "evaluation_seconds": round(seconds, 2)})
        cut = int((played.lengths >= MOST_STEPS).sum()) if self.endless else 0
        return Evaluation(step, scores, seconds, [f"{place}: {reason}" for place, reason in failures.items()], cut)
