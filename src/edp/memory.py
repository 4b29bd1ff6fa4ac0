"""How much memory there is, and refusing what would not fit before it is tried."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edp.errors import UserError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")  # the limit of a container
CHOSEN: int | None = None  # the limit that the user gives


def limit_memory(size: int | None) -> None:
    """Set how many bytes of memory data may use in this process, or None for all that are free."""
    global CHOSEN
    CHOSEN = size


@contextmanager
def limited_memory(size: int | None) -> Iterator[None]:
    """Set the limit for a while. None keeps the one that there is."""
    before = CHOSEN
    limit_memory(before if size is None else size)
    try:
        yield
    finally:
        limit_memory(before)


def parse_size(text: str) -> int:
    """Read a size such as ``500MB`` or ``4G``."""
    found = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)\s*([kmgt]?)i?b?", text.strip().lower(), re.ASCII)
    size = int(float(found[1]) * UNITS[found[2]]) if found else 0
    if not size:
        raise UserError(f"`max_memory` must be a size such as 500MB or 4GB, not {text!r}")
    return size


def show_size(size: int) -> str:
    """Write a number of bytes with three digits."""
    for unit, name in ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size // unit:,} {name}"
    return f"{size:,} bytes"


def total_memory() -> int:
    """The memory of the machine or of the container, in bytes. It is unlimited if the system does not tell."""
    sizes = [1 << 62]
    with suppress(OSError, ValueError, AttributeError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        sizes.append(int(CONTROL_GROUP.read_text(encoding="utf-8")))
    return min(sizes)


def free_memory() -> int:
    """The memory that data may use: what is free, or less if the user chose a limit."""
    sizes = [total_memory(), *([CHOSEN] if CHOSEN is not None else [])]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        sizes.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")))
    return min(sizes)


def check_fits(needed: int, what: str, free: int | None = None) -> None:
    """Refuse data that needs more memory than is free."""
    free = free_memory() if free is None else free
    if needed > free:
        raise UserError(f"{what} {show_size(needed)} of memory, and there are {show_size(free)} (see `max_memory`)")
