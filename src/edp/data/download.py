"""Downloading a data file over HTTP: resumed after a break, checked, and visible only when it is complete."""

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
BROKEN = (OSError, http.client.HTTPException)  # errors of a network; URLError and time-outs are OSErrors


def fetch(
    url: str,
    path: Path,
    sha256: str | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    pause: float = 2.0,
) -> None:
    """Download ``url`` to ``path``. An incomplete download stays in ``path.part``, and the next one continues it."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path.parent}: cannot write here ({error.strerror})") from None
    problem = ""
    for attempt in range(RETRIES):
        before = file_size(part)
        try:
            if append_rest(url, part, on_progress):
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
        if file_size(part) == before:  # after progress, try again at once
            time.sleep(pause * attempt)
    else:
        kept = f"; {file_size(part):,} bytes are kept; run the command again to continue" if file_size(part) else ""
        raise UserError(f"{url}: cannot be downloaded ({problem}){kept}")
    if sha256 is not None and file_digest(part) != sha256:
        part.unlink()
        raise UserError(f"{url}: the downloaded file is not the expected one (its SHA-256 differs); it was deleted")
    os.replace(part, path)


def file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def append_rest(url: str, part: Path, on_progress: Callable[[int, int], None]) -> bool:
    """Download the missing end of ``part``, and return whether the file is complete."""
    done = file_size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        part.unlink()  # it is longer than the file, so it belongs to another one
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


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
