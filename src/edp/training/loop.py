"""A training run from its options to its end, as a stream of events that the caller shows as it likes."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from edp.acting.evaluator import Evaluation, Evaluator, without_nan
from edp.acting.rollout import StoppedError
from edp.acting.validation import Validation, Validator
from edp.batches import Packed
from edp.config.spec import Spec
from edp.data import episodes, stream
from edp.data.log import Dataset
from edp.errors import UserError, first_line
from edp.runs.checkpoints import Checkpoints
from edp.runs.directory import Run
from edp.runs.load import best_of, from_leader, latest
from edp.runs.scores import known_mean
from edp.training import epoch, processes
from edp.training.state import Init, learnable


class Compiled(NamedTuple):
    seconds: float


class Epoch(NamedTuple):
    step: int
    steps_per_second: float
    metrics: dict[str, list[float]]  # one value a seed; NaN of a seed that has failed


class SeedFailed(NamedTuple):
    seed: int
    why: str


class Resumed(NamedTuple):
    step: int
    damaged: tuple[str, ...]  # checkpoints that could not be used, and why


class Experiment:
    """A spec with its data, ready to run: whatever is wrong with them is found here, before anything is written."""

    def __init__(self, spec: Spec, dataset: Dataset):
        """``dataset`` is in the spec's units (see ``Units.apply``)."""
        self.spec, options = spec, spec.training
        self.evaluator = Evaluator(spec) if spec.task.env else None
        self.dims = dataset.obs.shape[1], dataset.action.shape[1]
        self.keys = epoch.seed_keys(range(options.seed, options.seed + options.seeds))
        parts = episodes.prepare(dataset, spec.data.rewards, spec.data.best, spec.data.validation)
        self.data = self.place(parts.learned)
        self.validator = Validator(spec, parts.held) if parts.held else None
        self.states = epoch.init_states(Init(spec.algorithm, spec.policy, *self.dims), epoch.initial_keys(self.keys))
        self.step = 0
        self.failed: dict[int, str] = {}  # seeds that have become NaN, and how
        self.last_good: set[int] = set()  # the steps of the last checkpoints before that
        self.programs: dict[int, Any] = {}
        processes.exchange()  # other processes have found nothing wrong either

    def place(self, dataset: Dataset) -> Callable[[int], Any]:
        """The data on the devices: a function of the epoch's number, the same in each unless it is streamed."""
        put = partial(epoch.on_devices, like=epoch.seed_sharding(self.spec.training.seeds))
        block = self.spec.data.block
        if 0 < block < len(dataset.obs):
            data = learnable(self.spec.algorithm, self.spec.policy, dataset, self.spec.data.n_step, on_disk=True)
            assert isinstance(data, Packed)  # the spec was checked
            return stream.Blocks(data, block, self.spec.training.seed, put)
        whole = put(learnable(self.spec.algorithm, self.spec.policy, dataset, self.spec.data.n_step))
        return lambda number: whole

    def resume(self, folder: Run) -> Resumed:
        """Go back to the last good checkpoint, and to the logs as they were then."""
        checkpoints = self.checkpoints(folder)
        try:
            found = latest(folder, checkpoints, self.states, remove_damaged=True)
        finally:
            checkpoints.close()
        found = from_leader(found, self.states)
        if found:
            self.states = epoch.place(found.tree, epoch.seed_sharding(self.spec.training.seeds))
            self.step, self.failed, self.last_good = found.step, found.failed, set(found.about.get("last_good", ()))
        if self.step > self.spec.training.steps:
            raise UserError(f"{folder.folder}: has {self.step:,} steps already")
        folder.rewind(self.step)
        return Resumed(self.step, found.damaged if found else ())

    def run(
        self, folder: Run, stopping: Callable[[], bool] = lambda: False
    ) -> Iterator[Compiled | Epoch | Evaluation | Validation | SeedFailed]:
        """Train and evaluate until the end, or until ``stopping()``: then StoppedError, with everything saved."""
        options = self.spec.training
        checkpoints = self.checkpoints(folder)
        scores, saved, validated, known_failed = dict[int, float](), set[int](), set[int](), set(self.failed)
        try:
            folder.set_status("running", self.step, failed_seeds=self.failed)
            done = list(folder.scores().items()), checkpoints.steps(), [row["step"] for row in folder.validations()]
            evaluated, steps, before = processes.exchange(done)[0]
            scores.update(evaluated)
            saved.update(steps)
            validated.update(before)
            while True:
                before = (self.step - 1) // options.epoch_steps * options.epoch_steps
                due = self.step == options.steps or passed(options.eval_every, before, self.step)
                if self.evaluator and due and self.step not in scores and self.step > 0:
                    event = self.evaluator(self.states, self.step, folder, failed=self.failed, stopping=stopping)
                    scores[self.step] = float(known_mean(event.scores))
                    yield event
                if self.validator and due and self.step not in validated and self.step > 0:
                    yield self.validator(self.states, self.step, folder, self.failed)
                    validated.add(self.step)
                due = due or passed(options.checkpoint_every, before, self.step)
                if due and self.step not in saved and self.step > 0:
                    self.save(checkpoints, scores)
                    saved.add(self.step)
                if self.step == options.steps:
                    break
                if any(processes.exchange(stopping())):
                    raise StoppedError
                yield from self.advance(folder)
                if not self.failed.keys() <= known_failed:
                    known_failed = set(self.failed)
                    self.last_good |= set(sorted(saved)[-1:])
            checkpoints.finish()
            folder.set_status("finished", self.step, failed_seeds=self.failed)
        except StoppedError:
            if self.step not in saved and self.step > 0:
                self.save(checkpoints, scores)
            checkpoints.finish()
            folder.set_status("stopped", self.step, failed_seeds=self.failed)
            raise
        except Exception as error:
            with suppress(UserError, OSError):  # a full disk may have been the reason
                folder.set_status("failed", self.step, first_line(error), self.failed)
            raise
        finally:
            with suppress(UserError):
                checkpoints.finish()
            checkpoints.close()

    def advance(self, folder: Run) -> Iterator[Compiled | Epoch | SeedFailed]:
        """One epoch, or what is left of it."""
        options = self.spec.training
        number, first = divmod(self.step, options.epoch_steps)
        length = min(options.epoch_steps - first, options.steps - self.step)
        keys = epoch.epoch_keys(self.keys, number + 1, options.epoch_steps, first, length)
        arguments = self.states, self.data(number), keys
        if length not in self.programs:
            start = time.perf_counter()
            lowered = epoch.epoch.lower(self.spec.algorithm.update, *arguments, batch_size=options.batch_size)
            self.programs[length] = lowered.compile()
            yield Compiled(time.perf_counter() - start)
        start = time.perf_counter()
        self.states, metrics, faults = self.programs[length](*arguments)
        metrics, faults = processes.to_host((metrics, faults))
        metrics = {name: value.tolist() for name, value in metrics.items()}
        speed = length / (time.perf_counter() - start)
        yield from self.find_failures(faults, length)
        self.step += length
        for row, seed in enumerate(self.seeds):
            if seed in self.failed:
                for values in metrics.values():
                    values[row] = float("nan")
        folder.log_metrics({"step": self.step, "metrics": {k: without_nan(v) for k, v in metrics.items()}})
        folder.log_time({"step": self.step, "steps_per_second": round(speed, 2)})
        yield Epoch(self.step, speed, metrics)
        if len(self.failed) == options.seeds:
            seed, why = next(iter(self.failed.items()))
            raise TrainingError(f"seed {seed}: {why}" + " (and all others)" * (options.seeds > 1))

    @property
    def seeds(self) -> range:
        return range(self.spec.training.seed, self.spec.training.seed + self.spec.training.seeds)

    def find_failures(self, at: dict[str, np.ndarray], length: int) -> Iterator[SeedFailed]:
        """Seeds in which something is no longer a number. Losses are seen at once, parameters at the epoch's end."""
        for row, seed in enumerate(self.seeds):
            name = min(at, key=lambda name: at[name][row])
            if at[name][row] < length and seed not in self.failed:
                self.failed[seed] = f"{name} became NaN or Inf at step {self.step + int(at[name][row]) + 1:,}"
                yield SeedFailed(seed, self.failed[seed])

    def checkpoints(self, folder: Run) -> Checkpoints:
        """Where this run's are; one process writes them."""
        return Checkpoints(folder.checkpoints, self.spec.training.steps if processes.leads() else 0)

    def save(self, checkpoints: Checkpoints, scores: dict[int, float]) -> None:
        """Write a checkpoint; the best one and the last good ones of failed seeds are not to be removed for it."""
        states = processes.to_host(self.states)
        if not processes.leads():
            return
        checkpoints.held.clear()
        checkpoints.held.update(self.last_good)
        best = best_of(scores, [*checkpoints.steps(), self.step])
        checkpoints.held.update([] if best is None else [best])
        about = {"failed": {str(k): why for k, why in self.failed.items()}, "last_good": sorted(self.last_good)}
        checkpoints.save(self.step, states, about)


class TrainingError(Exception):
    """Every seed has become NaN."""


def passed(every: int, before: int, now: int) -> bool:
    """Whether a multiple of ``every`` was reached between two steps."""
    return now // every > before // every
