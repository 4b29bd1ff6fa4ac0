"""Fetching a data file over HTTP: resumed where it broke off, checked, and there whole or not at all."""

import hashlib
import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from edp.errors import UserError, first_line

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
RETRIES = 5
BROKEN = (OSError, http.client.HTTPException)  # what a network does; URLError and time-outs are OSErrors


def fetch(
    url: str,
    path: Path,
    sha256: str | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    pause: float = 2.0,
) -> None:
    """Download ``url`` to ``path``. What was fetched so far stays in ``path.part`` and is added to the next time."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path.parent}: cannot write here ({error.strerror})") from None
    problem = ""
    for attempt in range(RETRIES):
        before = size(part)
        try:
            if append(url, part, on_progress):
                break
            problem = "the connection ended early"
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise UserError(f"{url}: the server says {error.code} {error.reason}") from None
            problem = f"the server says {error.code} {error.reason}"
        except BROKEN as error:
            if isinstance(getattr(error, "reason", None), socket.gaierror):
                raise UserError(f"{url}: its server cannot be found; is this machine offline?") from None
            problem = first_line(error)
        if size(part) == before:  # progress earns another try at once
            time.sleep(pause * attempt)
    else:
        kept = f"; {size(part):,} bytes are kept, try again to go on" if size(part) else ""
        raise UserError(f"{url}: cannot be downloaded ({problem}){kept}")
    if sha256 is not None and digest(part) != sha256:
        part.unlink()
        raise UserError(f"{url}: what came is not the known file (its SHA-256 differs); it was deleted")
    os.replace(part, path)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def append(url: str, part: Path, on_progress: Callable[[int, int], None]) -> bool:
    """Add what is missing to ``part``; whether it is whole then."""
    done = size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        part.unlink()  # longer than the file: it was another one
        return False
    with response:
        if response.status != http.client.PARTIAL_CONTENT:
            done = 0  # the server sends all of it
        total = done + int(response.headers.get("Content-Length") or 0)
        with open(part, "ab" if done else "wb") as file:
            while chunk := response.read(CHUNK):
                try:
                    file.write(chunk)
                except OSError as error:
                    raise UserError(f"{part}: cannot write ({error.strerror})") from None
                done += len(chunk)
                on_progress(done, total)
    return done >= total


def digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
