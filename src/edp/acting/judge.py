"""Judges policies by a log: prepares replays and fitted Q evaluation once, and gives a verdict on each policy."""

import time
from collections.abc import Container
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.actors import Actors
from edp.acting.driven import driven_columns
from edp.acting.fitted_q import FittedQ
from edp.acting.model import ModelFit, with_memory
from edp.acting.replay import Replay, choose_stretches, find_support, read_stretches, replay, stretch_bounds
from edp.acting.selection import Selection, select_action
from edp.acting.verdict import Gains, Verdict, bootstrap_interval, gain_over, give_verdict, sums_by_episode
from edp.config.spec import EvalOptions
from edp.data.dataset import Dataset
from edp.data.episodes import episode_spans, take_rows
from edp.options import option
from edp.runs.rows import finite_or_none

LONGEST = 150  # steps of a stretch, if none are given
MEMORY = 1 / 6  # the memory of the model's state is this share of a stretch
LOOKS_AHEAD = 1 / 3  # the discount of fitted Q looks this share of a stretch ahead
MOST_ROWS = 200_000  # rows of the log that are used, in whole episodes
BLOCK = 500  # states in which actions are computed at a time


@dataclass(frozen=True)
class JudgeOptions:
    horizon: int = option(0, f"steps of the stretches of the log that are replayed (0: at most {LONGEST})", low=0)
    replays: int = option(60, "stretches of the log that are replayed with the policy", low=2)
    model_steps: int = option(3000, "steps of the fit of the model of the process", low=1)
    q_rows: int = option(10_000, "rows of the log that fitted Q evaluation uses", low=100)


class Judgement(NamedTuple):
    """The verdict on the policies of all seeds together, and the value of each."""

    verdict: Verdict
    values: list[float]  # NaN for a seed that failed
    gains: Gains


def judgement_row(
    step: int, judgement: Judgement, last: Judgement, acting: EvalOptions, options: JudgeOptions
) -> dict[str, Any]:
    """A judgement as a row of ``offline.jsonl``, with the gain over the ``last`` checkpoint of the run."""
    return {
        "step": step,
        "values": finite_or_none(judgement.values),
        "verdict": judgement.verdict.to_json(),
        "gains": judgement.gains.to_json(),
        "over_last": list(gain_over(judgement.gains, last.gains)),
        "options": asdict(acting) | asdict(options),
    }


class Judge:
    """Judges policies by one data set, which has the rewards of the log. ``reward_name`` is for texts."""

    def __init__(self, dataset: Dataset, options: JudgeOptions, reward_name: str = "reward"):
        dataset = limit_rows(dataset)
        self.unit = f"{reward_name} per step"
        longest = max(int(rows.stop - rows.start) for rows in episode_spans(dataset))
        self.horizon = min(options.horizon or LONGEST, longest)
        self.discount = 1 - 1 / max(2.0, LOOKS_AHEAD * self.horizon)
        self.mean, self.worst = float(dataset.reward.mean(dtype=np.float64)), float(dataset.reward.min())
        steps = steps_of_rows(dataset, self.horizon)
        self.log, self.operators = mean_reward(dataset, steps), operator_rewards(dataset, steps)
        rate = min(1.0, 1 / (MEMORY * self.horizon))
        remembered = with_memory(dataset, rate)
        chosen = choose_stretches(dataset, self.horizon, options.replays)
        self.stretches, self.support = read_stretches(remembered, chosen), find_support(remembered, chosen)
        self.fit = ModelFit(remembered, driven_columns(dataset), rate, options.model_steps)
        self.rows = take_rows(dataset, mark_some(len(dataset.obs), options.q_rows))
        self.fitted_q = FittedQ(self.rows, self.discount)

    def seconds(self, actors: Actors, policies: int) -> float:
        """How long it will take to fit the model and to judge so many policies, from a timed piece of each part."""
        models, key = one_of(actors, 0), jax.random.key(0)
        act = lambda: act_in_blocks(*models, actors.selection, self.rows.obs[:BLOCK], key)  # noqa: E731
        act()
        steps = self.fit.size * self.stretches.reward.size + 2 * len(self.rows.obs)
        each = seconds_of(act) * steps / BLOCK + self.fitted_q.seconds
        return self.fit.seconds + policies * each

    def __call__(self, actors: Actors, failed: Container[int] = ()) -> Judgement:
        """Judge the policies of all seeds together, without those in the rows ``failed``."""
        count = len(jax.tree.leaves(actors.policies)[0])
        found = [None if row in failed else self.try_policy(actors, row) for row in range(count)]
        good = [each for each in found if each is not None]
        gains = self.mean_gains([part for part, _ in good])
        sums, counts = sums_by_episode(self.rows.episode, np.mean([part for _, part in good], axis=0))
        fitted_q = bootstrap_interval(sums, sums, counts, np.arange(len(counts)))
        counted = np.asarray(self.stretches.counted)
        outside = float(np.mean([(part.outside * counted).mean() for part, _ in good]) / counted.mean())
        verdict = give_verdict(gains.interval, fitted_q, outside, self.log, self.unit, self.operators)
        values = [
            float("nan") if each is None else self.log + self.mean_gains([each[0]]).interval.mean for each in found
        ]
        return Judgement(verdict, values, gains)

    def try_policy(self, actors: Actors, row: int) -> tuple[Replay, np.ndarray]:
        """Replay the log with one policy, and compute its advantages over the log."""
        models, keys = one_of(actors, row), jax.random.split(jax.random.key(row), 3)
        action, next_action = (
            act_in_blocks(*models, actors.selection, obs, key)
            for obs, key in zip((self.rows.obs, self.rows.next_obs), keys[:2], strict=True)
        )
        advantages = self.fitted_q.advantages(action, next_action)
        return replay(self.fit.model, self.support, self.stretches, *models, actors.selection, keys[2]), advantages

    def mean_gains(self, replays: list[Replay]) -> Gains:
        lower, upper = np.mean([self.gains(each) for each in replays], axis=0)
        steps = np.asarray(self.stretches.counted.sum(axis=1))
        return Gains(lower, upper, steps, np.asarray(self.stretches.episode))

    def gains(self, found: Replay) -> np.ndarray:
        """The rewards of the policy less those of the log in each stretch, as a pessimist and an optimist count them.

        For the pessimist, the reward of a step falls with its distance from the log, down to the worst of the log. For
        the optimist, a step outside of the log has at least the mean reward of the log.
        """
        reward, far = np.asarray(found.reward), np.maximum(np.asarray(found.distance) - 1, 0)
        lower = np.maximum(reward - (self.mean - self.worst) * far, np.minimum(reward, self.worst))
        both = np.stack([lower, np.where(found.outside, np.maximum(lower, self.mean), reward)])
        recorded = np.asarray(self.stretches.reward * self.stretches.known).sum(axis=1)
        return (both * np.asarray(self.stretches.counted)).sum(axis=3) - recorded


def one_of(actors: Actors, row: int) -> tuple[Any, Any]:
    """The policy and the critic of one seed."""
    return jax.tree.map(lambda leaf: leaf[row], (actors.policies, actors.critics))


@jax.jit
def act_in_block(policy: Any, critic: Any, selection: Selection, obs: np.ndarray, key: Any) -> jax.Array:
    return select_action(policy, critic, jnp.asarray(obs), key, selection)


def act_in_blocks(policy: Any, critic: Any, selection: Selection, obs: np.ndarray, key: Any) -> np.ndarray:
    """The policy's actions in any number of states, computed in blocks of one size."""
    padded = obs[np.arange(-(-len(obs) // BLOCK) * BLOCK) % len(obs)].reshape(-1, BLOCK, obs.shape[1])
    keys = jax.random.split(key, len(padded))
    parts = [act_in_block(policy, critic, selection, *pair) for pair in zip(padded, keys, strict=True)]
    return np.concatenate([np.asarray(part) for part in parts])[: len(obs)]


def seconds_of(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def limit_rows(dataset: Dataset) -> Dataset:
    """Random whole episodes with about ``MOST_ROWS`` rows, or all of them."""
    if len(dataset.obs) <= MOST_ROWS:
        return dataset
    spans, marks, used = episode_spans(dataset), np.zeros(len(dataset.obs), bool), 0
    for number in np.random.default_rng(0).permutation(len(spans)):
        rows = slice(spans[number].start, min(spans[number].stop, spans[number].start + MOST_ROWS - used))
        marks[rows] = True
        used += rows.stop - rows.start
        if used >= MOST_ROWS:
            break
    return take_rows(dataset, marks)


def mark_some(rows: int, most: int) -> np.ndarray:
    marks = np.zeros(rows, bool)
    marks[np.random.default_rng(0).choice(rows, min(rows, most), replace=False)] = True
    return marks


def steps_of_rows(dataset: Dataset, horizon: int) -> np.ndarray:
    """How many steps each row stands for: 1, and at an end of the process also the rest of its stretch, without reward.

    Rows that are in no stretch have 0.
    """
    steps = np.zeros(len(dataset.obs))
    for rows in stretch_bounds(dataset, horizon):
        steps[rows] = 1
        if not dataset.not_done[rows.stop - 1]:
            steps[rows.stop - 1] = 1 + horizon - (rows.stop - rows.start)
    return steps


def operator_rewards(dataset: Dataset, steps: np.ndarray) -> dict[str, float]:
    """The mean reward of a step of each operator."""
    if dataset.operator is None:
        return {}
    owned = {name: steps * (dataset.operator == number) for number, name in enumerate(dataset.operator_names)}
    return {name: mean_reward(dataset, own) for name, own in owned.items() if own.any()}


def mean_reward(dataset: Dataset, steps: np.ndarray) -> float:
    return float(dataset.reward[steps > 0].sum(dtype=np.float64) / steps.sum())
