"""Training from the first step to the last, as a stream of events that the caller shows."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.evaluator import Evaluation, Evaluator
from edp.acting.rollout import StoppedError
from edp.acting.validation import Validation, Validator, limit_rows
from edp.algorithms import InitialState, Update
from edp.batches import Packed
from edp.config.spec import Spec
from edp.data import episodes, stream
from edp.data.dataset import Dataset
from edp.devices import processes
from edp.devices.seeds import place, replicate, seed_keys, seed_sharding
from edp.errors import UserError, counted, first_line
from edp.runs.agreement import recorded_config
from edp.runs.checkpoints import Checkpoint, Checkpoints
from edp.runs.directory import Run
from edp.runs.load import best_step, load_latest
from edp.runs.logs import find_lost_rows
from edp.runs.rows import finite_or_none
from edp.runs.scores import nan_mean
from edp.training.batch_source import make_batch_source
from edp.training.epoch import compile_epoch, epoch_keys, init_states, initial_keys


class Compiled(NamedTuple):
    seconds: float


class Epoch(NamedTuple):
    step: int
    steps_per_second: float
    metrics: dict[str, list[float]]  # one value per seed; NaN for a failed seed


class SeedFailed(NamedTuple):
    seed: int
    why: str


Event = Compiled | Epoch | Evaluation | Validation | SeedFailed


class Resumed(NamedTuple):
    step: int
    notes: tuple[str, ...]  # what was damaged, and what is done about it


class TrainingError(Exception):
    """All seeds have failed."""


@dataclass
class Progress:
    """What the run directory already holds."""

    scores: dict[int, float]  # of evaluations, by step
    saved: set[int]  # steps with a checkpoint
    validated: set[int]


class Experiment:
    """A spec with its data, ready to train. Errors in either are raised here, before anything is written."""

    def __init__(self, spec: Spec, dataset: Dataset):
        """``dataset`` is in the spec's units (see ``Units.convert_dataset``)."""
        self.spec = spec
        self.evaluator = Evaluator(spec) if spec.task.env else None
        self.keys, self.update = seed_keys(spec.seeds), Update(spec.algorithm)
        options = spec.data
        parts = episodes.prepare_episodes(dataset, options.rewards, options.best, options.validation, options.best_of)
        self.data = self.place_data(parts.learned)
        self.validator = self.make_validator(parts.held) if parts.held else None
        dims = dataset.obs.shape[1], dataset.action.shape[1]
        self.states = init_states(InitialState(spec.algorithm, spec.policy, *dims), initial_keys(self.keys))
        self.step = 0
        self.failed: dict[int, str] = {}  # seeds that became NaN, with the reason
        self.last_good: set[int] = set()  # steps of the last checkpoints before a seed failed
        self.programs: dict[int, Any] = {}  # compiled epochs, by their number of steps
        processes.exchange()  # raises if another process has found an error

    def batch_source(self, dataset: Dataset, on_disk: bool = False) -> Any:
        return make_batch_source(self.spec.algorithm, self.spec.policy, dataset, self.spec.data.n_step, on_disk)

    def place_data(self, dataset: Dataset) -> Callable[[int], Any]:
        """A function from the epoch's number to its data on the devices: all rows, or a block of them."""
        put = partial(replicate, like=seed_sharding(self.spec.training.seeds))
        block = self.spec.data.block
        if 0 < block < len(dataset.obs):
            data = self.batch_source(dataset, on_disk=True)
            assert isinstance(data, Packed)  # the spec was checked
            return stream.Blocks(data, block, self.spec.training.seed, put)
        whole = put(self.batch_source(dataset))
        return lambda number: whole

    def make_validator(self, held_out: Dataset) -> Validator:
        held_out = limit_rows(held_out)
        return Validator(self.spec, held_out, jax.tree.map(jnp.asarray, self.batch_source(held_out)))

    def resume(self, run: Run) -> Resumed:
        """Go back to the last good checkpoint that all rows of the logs have been kept for, and remove later rows."""
        checkpoints, lost, notes = self.open_checkpoints(run), find_lost_rows(run), run.odd_rows()
        try:
            found = load_latest(run, checkpoints, self.states, last=lost.step, remove_damaged=True)
        finally:
            checkpoints.close()
        found = checkpoint_of_leader(found, self.states)
        if found:
            self.states = place(found.tree, seed_sharding(self.spec.training.seeds))
            self.step, self.failed, self.last_good = found.step, found.failed, set(found.about.get("last_good", ()))
        if self.step > self.spec.training.steps:
            raise UserError(f"{run.folder}: has already trained for {counted(self.step, 'step')}")
        run.rewind(self.step)
        notes += [f"{damaged}; the one before it is used" for damaged in (found.damaged if found else ())]
        again = "and cannot be made again" if lost.step is None else f"so training goes on from step {self.step:,}"
        return Resumed(self.step, (*notes, *(f"{text}, {again}" for text in lost.notes)))

    def run(self, run: Run, stopping: Callable[[], bool] = lambda: False) -> Generator[Event, None, None]:
        """Train and evaluate until the last step. Raises StoppedError, with everything saved, after ``stopping()``."""
        checkpoints = self.open_checkpoints(run)
        try:
            with self.recording_failure(run):
                yield from self.train(run, checkpoints, stopping)
        finally:
            for end in (checkpoints.finish, checkpoints.close):
                with suppress(UserError):  # the directory may have been removed
                    end()
            run.claim.remove_remains()

    @contextmanager
    def recording_failure(self, run: Run) -> Iterator[None]:
        """Write an error into the status of the run. If the run's directory is gone, that is the error."""
        try:
            yield
        except StoppedError:
            raise
        except Exception as error:
            run.claim.check()
            with suppress(UserError, OSError):  # the reason may be a full disk
                run.set_status("failed", self.step, first_line(error), self.failed)
            raise

    def train(self, run: Run, checkpoints: Checkpoints, stopping: Callable[[], bool]) -> Iterator[Event]:
        """The loop of ``run``."""
        run.set_status("running", self.step, failed_seeds=self.failed)
        progress = read_progress(run, checkpoints, self.step)
        try:
            while True:
                yield from self.assess(run, checkpoints, progress, stopping)
                if self.step == self.spec.training.steps:
                    break
                if any(processes.exchange(stopping())):
                    raise StoppedError
                before = set(self.failed)
                yield from self.advance(run)
                if self.failed.keys() > before:
                    self.last_good |= set(sorted(progress.saved)[-1:])
        except StoppedError:
            if self.step not in progress.saved and self.step > 0:
                self.save(run, checkpoints, progress.scores)
            checkpoints.finish()
            run.set_status("stopped", self.step, failed_seeds=self.failed)
            raise
        checkpoints.finish()
        run.set_status("finished", self.step, failed_seeds=self.failed)

    def assess(
        self, run: Run, checkpoints: Checkpoints, progress: Progress, stopping: Callable[[], bool]
    ) -> Iterator[Event]:
        """Evaluate, validate and save, each if it is due. Events follow the checkpoint, so that none is lost."""
        options, step, events = self.spec.training, self.step, []
        start = (step - 1) // options.epoch_steps * options.epoch_steps  # of the epoch that ended here
        evaluates = step == options.steps or reached_multiple(options.eval_every, start, step)
        saves = evaluates or reached_multiple(options.checkpoint_every, start, step)
        if step == 0:
            return
        if self.evaluator and evaluates and step not in progress.scores:
            event = self.evaluator(self.states, step, run, failed=self.failed, stopping=stopping)
            progress.scores[step] = float(nan_mean(event.scores))
            events.append(event)
        if self.validator and evaluates and step not in progress.validated:
            events.append(self.validator(self.states, step, run, self.failed))
            progress.validated.add(step)
        if saves and step not in progress.saved:
            self.save(run, checkpoints, progress.scores)
            progress.saved.add(step)
        yield from events

    def advance(self, run: Run) -> Iterator[Event]:
        """Train for an epoch, or for what is left of it."""
        options = self.spec.training
        number, first = divmod(self.step, options.epoch_steps)
        length = min(options.epoch_steps - first, options.steps - self.step)
        keys = epoch_keys(self.keys, number + 1, options.epoch_steps, first, length)
        arguments = self.update, self.states, self.data(number), keys
        if length not in self.programs:
            start = time.perf_counter()
            self.programs[length] = compile_epoch(*arguments, batch_size=options.batch_size)
            yield Compiled(time.perf_counter() - start)
        start = time.perf_counter()
        self.states, metrics, faults = self.programs[length](*arguments)
        metrics, faults = processes.to_host((metrics, faults))
        metrics = {name: value.tolist() for name, value in metrics.items()}
        speed = length / (time.perf_counter() - start)
        yield from self.find_failures(faults, length)
        self.step += length
        for row, seed in enumerate(self.spec.seeds):
            if seed in self.failed:
                for values in metrics.values():
                    values[row] = float("nan")
        run.log_metrics({"step": self.step, "metrics": {k: finite_or_none(v) for k, v in metrics.items()}})
        run.log_time({"step": self.step, "steps_per_second": round(speed, 2)})
        yield Epoch(self.step, speed, metrics)
        if len(self.failed) == options.seeds:
            seed, why = next(iter(self.failed.items()))
            raise TrainingError(f"seed {seed}: {why}" + " (and all others)" * (options.seeds > 1))

    def find_failures(self, faults: dict[str, np.ndarray], length: int) -> Iterator[SeedFailed]:
        """Record the seeds in which a loss or a parameter became NaN or Inf in this epoch."""
        for row, seed in enumerate(self.spec.seeds):
            name = min(faults, key=lambda name: faults[name][row])
            if faults[name][row] < length and seed not in self.failed:
                self.failed[seed] = f"{name} became NaN or Inf at step {self.step + int(faults[name][row]) + 1:,}"
                yield SeedFailed(seed, self.failed[seed])

    def open_checkpoints(self, run: Run) -> Checkpoints:
        """The checkpoints of the run, which the leading process writes and the others read."""
        total = self.spec.training.steps if processes.is_leader() else 0
        return Checkpoints(run.checkpoints, total, recorded_config(self.spec, run.config))

    def save(self, run: Run, checkpoints: Checkpoints, scores: dict[int, float]) -> None:
        """Write a checkpoint, after all rows that it counts on. The best one, and the last good ones of failed seeds,
        are kept."""
        states = processes.to_host(self.states)
        if not processes.is_leader():
            return
        checkpoints.held.clear()
        checkpoints.held.update(self.last_good)
        best = best_step(scores, [*checkpoints.steps(), self.step])
        checkpoints.held.update([] if best is None else [best])
        about = {"failed": {str(k): why for k, why in self.failed.items()}, "last_good": sorted(self.last_good)}
        run.claim.check()
        about |= {"logs": run.tallies()}
        checkpoints.save(self.step, states, about)


def read_progress(run: Run, checkpoints: Checkpoints, step: int) -> Progress:
    """What the run directory holds up to a step, as the leading process sees it. Later checkpoints are made again."""
    done = list(run.scores().items()), checkpoints.steps(), [row["step"] for row in run.validations()]
    scores, saved, validated = processes.exchange(done)[0]
    return Progress(dict(scores), {each for each in saved if each <= step}, set(validated))


def checkpoint_of_leader(found: Checkpoint | None, like: Any) -> Checkpoint | None:
    """The checkpoint that the leading process has loaded, in all processes."""
    said = processes.exchange(found and (found.step, found.about, found.damaged))[0]
    if said is None:
        return None
    step, about, damaged = said
    empty = lambda: jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like)  # noqa: E731
    return Checkpoint(step, processes.from_leader(found.tree if found else empty()), about, tuple(damaged))


def reached_multiple(every: int, before: int, now: int) -> bool:
    """Whether a multiple of ``every`` lies in (before, now]."""
    return now // every > before // every
