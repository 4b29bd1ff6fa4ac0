"""A sweep from its first trial to the winner."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from edp.errors import UserError, unknown
from edp.runs.provenance import provenance
from edp.runs.sweep import Sweep
from edp.runs.trial_results import Result
from edp.sweeps.engines import POLL, Engine, Serial, open_ray
from edp.sweeps.plan import Plan, check_trials, read_plan
from edp.sweeps.search import Search, example_points, read_results

ENGINES = ("ray", "serial")
Show = Callable[[list[Result]], None]


def start_sweep(plan: Plan, out: Path, where: str = "the plan", command: tuple[str, ...] = ()) -> Sweep:
    """Check every trial, and make the directory of a new sweep."""
    Sweep.check_free(out.absolute())
    for text in check_trials(plan, example_points(plan), where):
        raise UserError(f"{where}: {text}")
    return Sweep.create(out.absolute(), plan.to_json() | {"command": list(command), **provenance()})


def resume_sweep(folder: Path) -> tuple[Plan, Sweep]:
    sweep = Sweep.open(folder.absolute())
    return read_plan(sweep.plan["content"], str(folder / "sweep.json")), sweep


def open_engine(
    name: str, plan: Plan, *, parallel: int = 0, address: str = "", dashboard: bool = False
) -> AbstractContextManager[Engine]:
    check_engine(name, parallel, address, dashboard)
    if name == "ray":
        return open_ray(plan.resources.__dict__, parallel, address, dashboard)
    return nullcontext(Serial(plan.resources.cpus))


def check_engine(name: str, parallel: int = 0, address: str = "", dashboard: bool = False) -> None:
    """Refuse options of engines that make no sense."""
    if name not in ENGINES:
        raise unknown("choice of `engine`", name, ENGINES)
    if parallel < 0:
        raise UserError(f"`parallel` must be at least 0 (as many trials as fit), not {parallel}")
    if name != "ray" and address:
        raise UserError("`address` is that of a Ray cluster: leave it out, or use `engine=ray`")
    if dashboard and (name != "ray" or address):
        raise UserError("`dashboard` is that of Ray on this machine: leave it out")


def run_sweep(
    plan: Plan,
    sweep: Sweep,
    engine: Engine,
    show: Show = lambda results: None,
    tell: Callable[[str], None] = lambda text: None,
    stopping: Callable[[], bool] = lambda: False,
) -> list[Result]:
    """Run all trials that are not done, and train the best again with fresh seeds. Returns what came of all trials.

    ``show`` is called with all results now and then, and ``tell`` with what went wrong. After ``stopping()``, running
    trials write a checkpoint, and no others are begun.
    """
    with sweep.claimed():
        search, known = Search(plan, sweep), dict[int, Result]()
        running: set[int] = set()
        tried: set[int] = set()

        def look() -> list[Result]:
            results = read_results(sweep, known)
            show(results)
            return results

        while True:
            results = look()
            waiting = [each for each in results if not each.is_done and each.trial.number not in running | tried]
            while not stopping() and len(running) < engine.capacity:
                if waiting:
                    trial = waiting.pop(0).trial
                elif (found := search.next(results, tried)) is not None:
                    trial = found
                    results = read_results(sweep, known)
                else:
                    break
                engine.submit(sweep.folder, trial.number)
                running.add(trial.number)
            if not running:
                if engine.capacity or stopping() or search.is_over(results):
                    break
                time.sleep(POLL)  # all machines of the cluster are gone, and may come back
                continue
            if stopping():
                sweep.ask_to_stop()
            for outcome in engine.wait(stopping, lambda: show(read_results(sweep, known))):
                running.discard(outcome.number)
                if outcome.state in ("failed", "stopped"):
                    tried.add(outcome.number)  # once in a call
                if outcome.reason:
                    tell(f"trial {outcome.number}: {outcome.reason}")
        sweep.ask_to_stop(False)
        return look()
