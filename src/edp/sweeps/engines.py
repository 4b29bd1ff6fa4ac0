"""What runs the trials of a sweep: this process, one after another, or the workers of a Ray cluster."""

import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from edp.errors import UserError, first_line
from edp.runs.sweep import Sweep
from edp.sweeps.trial import Outcome, run_trial

TRIALS_PER_PROCESS = 30  # JAX keeps compiled programs, mapped into memory, and a process has 65,530 mappings at most
RETRIES = 10  # of a trial whose process or machine was lost
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: Ray listens at 127.0.0.1
PATIENCE = 10.0  # seconds in which a cluster must answer
POLL = 1.0  # seconds between looks at running trials


class Engine(Protocol):
    """Runs trials. ``capacity`` trials can run at a time."""

    @property
    def capacity(self) -> int: ...

    def submit(self, folder: Path, number: int) -> None:
        """Begin a trial."""
        ...

    def wait(self, stopping: Callable[[], bool], on_event: Callable[[], None]) -> list[Outcome]:
        """Wait for a while, and return the outcomes of trials that have ended."""
        ...


class Serial:
    """Runs trials in this process, one after another, on ``cpus`` cores (0: all)."""

    def __init__(self, cpus: float = 0.0) -> None:
        self.capacity = 1
        if cpus:
            limit_threads(cpus)
        self.waiting: list[tuple[Path, int]] = []
        self.done = 0

    def submit(self, folder: Path, number: int) -> None:
        self.waiting.append((folder, number))

    def wait(self, stopping: Callable[[], bool], on_event: Callable[[], None]) -> list[Outcome]:
        folder, number = self.waiting.pop(0)
        self.done += 1
        if self.done % TRIALS_PER_PROCESS == 0:
            import jax

            from edp.training.epoch import PROGRAMS

            jax.clear_caches()
            PROGRAMS.clear()
        return [run_trial(folder, number, stopping, lambda event: on_event())]


class RayEngine:
    """Runs trials as tasks of Ray. A task that loses its process or its machine is begun again, and resumes the run."""

    def __init__(self, ray: Any, resources: Mapping[str, Any], parallel: int):
        self.ray, self.resources, self.parallel = ray, {**resources, "cpus": resources["cpus"] or 1.0}, parallel
        self.running: dict[Any, int] = {}
        self.folder = Path()
        cpus, gpus = self.resources["cpus"], self.resources["gpus"]
        self.task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES, max_calls=TRIALS_PER_PROCESS)(
            run_trial_in_worker
        )
        if not self.capacity:
            most = [max((there.get(name, 0) for there in self.machines), default=0) for name in ("CPU", "GPU")]
            has = f"the largest machine of the cluster has {most[0]:g} cores and {most[1]:g} GPUs"
            raise UserError(f"a trial needs {cpus:g} cores and {gpus:g} GPUs, and {has}")

    @property
    def machines(self) -> list[dict[str, float]]:
        """What each machine of the cluster has."""
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    @property
    def capacity(self) -> int:
        """As many trials as the cluster has room for, since it may grow, or ``parallel``."""
        asked = {"CPU": self.resources["cpus"], "GPU": self.resources["gpus"]}
        room = sum(
            min(int(there.get(name, 0) / number + 1e-6) for name, number in asked.items() if number)
            for there in self.machines
        )
        return min(room, self.parallel) if self.parallel else room

    def submit(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.running[self.task.remote(str(folder), number, self.resources)] = number

    def wait(self, stopping: Callable[[], bool], on_event: Callable[[], None]) -> list[Outcome]:
        if stopping():
            self.cancel_waiting()
        done, _ = self.ray.wait(list(self.running), num_returns=1, timeout=POLL)
        on_event()
        outcomes = []
        for reference in done:
            number = self.running.pop(reference)
            try:
                outcomes.append(Outcome(*self.ray.get(reference)))
            except self.ray.exceptions.TaskCancelledError:
                outcomes.append(Outcome(number, "stopped"))
            except self.ray.exceptions.RayError as error:  # lost more often than it is begun again
                outcomes.append(Outcome(number, "failed", first_line(error)))
        return outcomes

    def cancel_waiting(self) -> None:
        """Take back trials that wait for room. Those that train look for the sweep's request to stop themselves."""
        sweep = Sweep(self.folder)
        for reference, number in self.running.items():
            run = sweep.run(sweep.trial(number))
            if run is None or not run.is_claimed:
                self.ray.cancel(reference, force=False)


def run_trial_in_worker(folder: str, number: int, resources: Mapping[str, Any]) -> tuple[Any, ...]:
    """``run_trial`` in a process of Ray. What JAX may use is set before it is imported."""
    limit_threads(resources["cpus"])
    if 0 < resources["gpus"] < 1:
        os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{0.9 * resources['gpus']:.3f}")
    from edp.files import keep_compiled_programs

    keep_compiled_programs()
    where = Path(folder)
    if not Sweep.is_in(where):
        return number, "failed", f"{folder}: not there on every machine of the cluster; use shared storage"
    from edp.sweeps.trial import run_trial

    return tuple(run_trial(where, number, lambda: Sweep(where).is_asked_to_stop))


def limit_threads(cpus: float) -> None:
    """Set the number of XLA's threads on a CPU, if JAX has not begun to use the device yet.

    The last digits of results depend on this number.
    """
    os.environ["NPROC"] = str(max(1, round(cpus)))


def import_ray(address: str) -> Any:
    """Import Ray, so that a cluster that it starts on this machine is reachable from this machine alone."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    imported = "ray" in sys.modules
    if not address and not imported:
        # Ray then takes 127.0.0.1 for the address of this machine, and all of its servers listen there alone.
        os.environ[LOOPBACK] = "0"
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError:
        raise UserError(
            'Ray is not installed: pip install "edp-rl[sweep]", or run one trial after another with `engine=serial`'
        ) from None
    if not address and imported and os.environ.get(LOOPBACK) != "0" and not ray.is_initialized():
        raise UserError(
            "Ray was imported before edp, and would listen to other machines: "
            f"set {LOOPBACK}=0 before the import, or call ray.init() yourself"
        )
    if address and address != "auto":
        check_reachable(address)
    return ray


def check_reachable(address: str) -> None:
    """Refuse an address where nothing answers. Ray itself would try for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"Ray cannot be reached at {address} ({first_line(error)})") from None


@contextmanager
def open_ray(
    resources: Mapping[str, Any], parallel: int = 0, address: str = "", dashboard: bool = False
) -> Iterator[RayEngine]:
    """Connect to a cluster, or start Ray on this machine, for this process and reachable from this machine alone."""
    ray = import_ray(address)
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "ignore_reinit_error": True}
    with tempfile.TemporaryDirectory(prefix="edp-ray-", ignore_cleanup_errors=True) as temporary:
        if address:
            options |= {"address": address}
        else:
            options |= {"address": "local", "num_cpus": os.cpu_count()}  # whatever $RAY_ADDRESS says
            options |= {"include_dashboard": dashboard, "_temp_dir": temporary}
        started = not ray.is_initialized()
        try:
            if started:
                ray.init(**options)
        except Exception as error:  # Ray raises Exception itself if the packages of its dashboard are missing
            if dashboard and "dashboard" in str(error):
                raise UserError('Ray\'s dashboard is not installed: pip install "ray[default]"') from None
            if not isinstance(error, (ConnectionError, RuntimeError, ValueError, OSError)):
                raise
            raise UserError(f"Ray cannot be reached{f' at {address}' * bool(address)} ({first_line(error)})") from None
        try:
            yield RayEngine(ray, resources, parallel)
        finally:
            if started:
                ray.shutdown()
