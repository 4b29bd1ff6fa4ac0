"""One run trained by several processes, on one machine or many, which JAX connects.

The first process leads: it alone reads the options, writes the run and prints. The others have seeds of their own.
They tell each other what they must in ``exchange``, which all of them call in the same order; one that has to leave
says so there, and the others follow it.
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

WAIT = 300  # seconds for all processes to come
ADDRESS = "JAX_COORDINATOR_ADDRESS"
LAUNCHERS = (  # who says how many processes there are, and which of them this one is
    ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),  # of srun; the job's own number is there without it, too
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
)


class PeerError(UserError):
    """Another process has left, or is lost."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.code = code


def settings(env: Mapping[str, str]) -> dict[str, Any] | None:
    """What ``jax.distributed.initialize`` is to be given; nothing, if this process is on its own."""
    count, number = next((names for names in LAUNCHERS if any(name in env for name in names)), LAUNCHERS[0])
    given = [name for name in (ADDRESS, count, number) if name in env]
    if not given or env.get(count) == "1":
        return None
    for name in (count, number):
        if not env.get(name, "").isdecimal():
            raise UserError(f"{given[0]} is set: {name} must be a number beside it, not {env.get(name)!r}")
    if int(env[number]) >= int(env[count]):
        raise UserError(f"{number} must be less than {count}, {env[count]}, not {env[number]}")
    address = env.get(ADDRESS)
    by_hand = address is not None or count in LAUNCHERS[0]
    if by_hand and not re.fullmatch(r"\S+:\d{1,5}", address or ""):
        raise UserError(f"{ADDRESS} must be the first process's HOST:PORT, not {address!r}")
    return {"coordinator_address": address, "num_processes": int(env[count]), "process_id": int(env[number])}


def start() -> None:
    """Join the other processes, if the environment tells of any. To be called before JAX is used."""
    found = settings(os.environ)
    if found is None or jax.distributed.is_initialized():
        return
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if found["process_id"] == 0 and found["coordinator_address"]:
        check_port(found["coordinator_address"])
    who = f"process {found['process_id']} of {found['num_processes']}"
    late = threading.Timer(WAIT, end, [f"{who}: not all of them have come within {WAIT} s"])  # JAX would abort
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
        raise UserError(f"{who}: they must have the same number of devices, not {devices}")
    with hushed():
        exchange()


def check_port(address: str) -> None:
    """JAX crashes if it cannot listen there."""
    try:
        socket.create_server(("", int(address.rpartition(":")[2]))).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"{ADDRESS}={address}: cannot listen there ({error})") from None


def processes() -> int:
    return jax.process_count() if jax.distributed.is_initialized() else 1


def leads() -> bool:
    return processes() == 1 or jax.process_index() == 0


def exchange(value: Any = None) -> list[Any]:
    """What every process has to say, in JSON, by its number."""
    if processes() == 1:
        return [value]
    heard = meet({"value": value})
    for number, message in enumerate(heard):
        if "value" not in message:
            raise PeerError(f"process {number} of {len(heard)}: {message['why']}", message["code"])
    return [message["value"] for message in heard]


def to_host(tree: Any) -> Any:
    """Arrays that are split over all processes, whole."""
    if processes() == 1:
        return jax.tree.map(np.asarray, tree)
    exchange()  # one that has left is not waited for
    with connected():
        return multihost_utils.process_allgather(own(tree), tiled=True)


def from_leader(tree: Any) -> Any:
    """The arrays of the first process, bit for bit; those of the others tell their shapes."""
    if processes() == 1:
        return tree
    exchange()
    with connected():  # as bytes, because they are added up on the way, and -0.0 + 0.0 is 0.0
        given = multihost_utils.broadcast_one_to_all(
            jax.tree.map(lambda leaf: np.ascontiguousarray(leaf).view(np.uint8), tree)
        )
    return jax.tree.map(lambda leaf, like: np.asarray(leaf).view(like.dtype), given, tree)


def own(tree: Any) -> Any:
    """This process's part of arrays that are split over all."""
    if processes() == 1:
        return tree
    part = multihost_utils.global_array_to_host_local_array
    return jax.tree.map(lambda leaf: part(leaf, leaf.sharding.mesh, leaf.sharding.spec), tree)


@contextmanager
def together() -> Iterator[None]:
    """All processes end together: an error of one ends the others, and the first one tells it."""
    if processes() == 1:
        yield
        return
    try:
        yield
        meet({"code": 0, "why": "has finished"})
    except PeerError as error:
        if leads():
            raise
        raise SystemExit(error.code) from None
    except KeyboardInterrupt:
        atexit.register(end, code=130)
        raise
    except SystemExit as error:  # after --help
        meet({"code": error.code, "why": "has ended"})
        raise
    except Exception as error:
        expected = isinstance(error, UserError | OSError)
        meet({"code": 2, "why": str(error) if expected else f"{type(error).__name__}: {first_line(error)}"})
        if expected and not leads():
            raise SystemExit(2) from None
        raise


def meet(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A round in which every process hears what all of them say."""
    text = np.frombuffer(json.dumps(message).encode(), np.uint8)
    with connected():
        sizes = multihost_utils.process_allgather(np.int32(len(text)))
        width = 1 << int(sizes.max()).bit_length()  # few widths, because each is compiled
        rows = multihost_utils.process_allgather(np.pad(text, (0, width - len(text))))
    return [json.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]


@contextmanager
def connected() -> Iterator[None]:
    """Errors of the connection as one line. JAX would wait at the exit for the process that is lost."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        atexit.register(end, code=2)
        raise PeerError(f"another process is lost ({first_line(error)})", 2) from None


def end(text: str = "", code: int = 2) -> None:
    """Leave without waiting for anybody."""
    if text:
        print(f"edp: {text}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def hushed() -> Iterator[None]:
    """Gloo prints that it is connected; whatever this process prints itself is not meant to go with it."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
