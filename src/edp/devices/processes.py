"""One run trained by several processes on one or more machines, connected by JAX.

The first process leads: it alone reads the options, writes the run and prints. Each process trains some of the seeds.
Processes communicate through ``exchange``, which all of them call in the same order. A process that ends tells the
others there, and they end, too.
"""

import atexit
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from edp.errors import UserError, first_line

WAIT = 300  # seconds within which all processes must start
ADDRESS = "JAX_COORDINATOR_ADDRESS"
LAUNCHERS = (  # environment variables: the number of processes, and the number of this one
    ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),  # of srun; SLURM_NTASKS is set without srun, too
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
)


class PeerError(UserError):
    """Another process has ended, or the connection to it is lost."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.code = code


def launch_settings(env: Mapping[str, str]) -> dict[str, Any] | None:
    """The arguments of ``jax.distributed.initialize``; None if this is the only process."""
    count, number = next((names for names in LAUNCHERS if any(name in env for name in names)), LAUNCHERS[0])
    given = [name for name in (ADDRESS, count, number) if name in env]
    if not given or env.get(count) == "1":
        return None
    for name in (count, number):
        if not env.get(name, "").isdecimal():
            raise UserError(f"{name} must be a number, not {env.get(name)!r} ({given[0]} is set)")
    if int(env[number]) >= int(env[count]):
        raise UserError(f"{number} must be less than {count}, {env[count]}, not {env[number]}")
    address = env.get(ADDRESS)
    by_hand = address is not None or count in LAUNCHERS[0]
    if by_hand and not re.fullmatch(r"\S+:\d{1,5}", address or ""):
        raise UserError(f"{ADDRESS} must be the first process's HOST:PORT, not {address!r}")
    return {"coordinator_address": address, "num_processes": int(env[count]), "process_id": int(env[number])}


def connect() -> None:
    """Connect to the other processes that environment variables name, if any. Call this before JAX is used."""
    found = launch_settings(os.environ)
    if found is None or jax.distributed.is_initialized():
        return
    jax.config.update("jax_enable_preemption_service", False)  # it would handle SIGTERM
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if found["process_id"] == 0 and found["coordinator_address"]:
        check_port(found["coordinator_address"])
    who = f"process {found['process_id']} of {found['num_processes']}"
    late = threading.Timer(
        WAIT, exit_at_once, [f"{who}: not all processes have started within {WAIT} s"]
    )  # before JAX aborts
    late.daemon = True
    late.start()
    try:
        jax.distributed.initialize(**found, initialization_timeout=WAIT + 60)
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{who} cannot join the others ({first_line(error)}); is {ADDRESS}=HOST:PORT right?") from None
    finally:
        late.cancel()
    devices = [len(jax.local_devices(number)) for number in range(found["num_processes"])]
    if len(set(devices)) > 1:
        raise UserError(f"{who}: all processes must have the same number of devices, not {devices}")
    with silence_stdout():
        exchange()


def check_port(address: str) -> None:
    """Refuse an address at which this process cannot listen: JAX would crash."""
    try:
        socket.create_server(("", int(address.rpartition(":")[2]))).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"{ADDRESS}={address}: cannot listen there ({error})") from None


def process_count() -> int:
    return jax.process_count() if jax.distributed.is_initialized() else 1


def is_leader() -> bool:
    return process_count() == 1 or jax.process_index() == 0


def exchange(value: Any = None) -> list[Any]:
    """Send a JSON value to all processes. Returns the values of all processes, in their order."""
    if process_count() == 1:
        return [value]
    heard = gather_messages({"value": value})
    for number, message in enumerate(heard):
        if "value" not in message:
            raise PeerError(f"process {number} of {len(heard)}: {message['why']}", message["code"])
    return [message["value"] for message in heard]


def to_host(tree: Any) -> Any:
    """Arrays that are sharded over all processes, as complete NumPy arrays."""
    if process_count() == 1:
        return jax.tree.map(np.asarray, tree)
    exchange()  # raises if a process has ended; the next call would wait for it
    with connection_errors():
        return multihost_utils.process_allgather(local_part(tree), tiled=True)


def from_leader(tree: Any) -> Any:
    """The arrays of the leading process, bit for bit, in all processes. ``tree`` gives the shapes."""
    if process_count() == 1:
        return tree
    exchange()
    with connection_errors():  # as bytes, because JAX adds up the arrays, and -0.0 + 0.0 is 0.0
        given = multihost_utils.broadcast_one_to_all(
            jax.tree.map(lambda leaf: np.ascontiguousarray(leaf).view(np.uint8), tree)
        )
    return jax.tree.map(lambda leaf, like: np.asarray(leaf).view(like.dtype), given, tree)


def local_part(tree: Any) -> Any:
    """This process's part of arrays that are sharded over all processes."""
    if process_count() == 1:
        return tree
    part = multihost_utils.global_array_to_host_local_array
    return jax.tree.map(lambda leaf: part(leaf, leaf.sharding.mesh, leaf.sharding.spec), tree)


@contextmanager
def ending_together() -> Iterator[None]:
    """End all processes together: an error in one ends the others, and the leading process prints it."""
    if process_count() == 1:
        yield
        return
    try:
        yield
        gather_messages({"code": 0, "why": "has finished"})
    except PeerError as error:
        if is_leader():
            raise
        raise SystemExit(error.code) from None
    except KeyboardInterrupt:
        atexit.register(exit_at_once, code=130)
        raise
    except SystemExit as error:  # after the help text
        gather_messages({"code": error.code, "why": "has ended"})
        raise
    except Exception as error:
        expected = isinstance(error, UserError | OSError)
        gather_messages({"code": 2, "why": str(error) if expected else f"{type(error).__name__}: {first_line(error)}"})
        if expected and not is_leader():
            raise SystemExit(2) from None
        raise


def gather_messages(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Send a message to all processes. Returns the messages of all processes."""
    text = np.frombuffer(json.dumps(message).encode(), np.uint8)
    with connection_errors():
        sizes = multihost_utils.process_allgather(np.int32(len(text)))
        width = 1 << int(sizes.max()).bit_length()  # a power of two, because each width is compiled
        rows = multihost_utils.process_allgather(np.pad(text, (0, width - len(text))))
    return [json.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]


@contextmanager
def connection_errors() -> Iterator[None]:
    """Turn errors of the connection into one line, and exit without waiting for the lost process."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        atexit.register(exit_at_once, code=2)
        raise PeerError(f"another process is lost ({first_line(error)})", 2) from None


def exit_at_once(text: str = "", code: int = 2) -> None:
    """Exit at once, without waiting for other processes."""
    if text:
        print(f"edp: {text}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def silence_stdout() -> Iterator[None]:
    """Discard what C++ code prints: Gloo reports that it is connected."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
