"""Downloading a data file over HTTP: resumed after a break, checked, and visible only when it is complete.

Nothing that a server says is believed. The length, the range and the checksum of what arrives are compared with what
was asked for. Redirects lead to HTTP and HTTPS only, and never from HTTPS to HTTP. A download has a deadline.
"""

import hashlib
import http.client
import os
import socket
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from edp.data.connection import AnswerError, body_length, hanging_up_after, open_url, preferred_url
from edp.errors import UserError, first_line, printable

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte, and for the headers of an answer
DEADLINE = 6 * 3600.0  # seconds for a whole download
RETRIES = 5
LARGEST = 2 << 30  # bytes of a file of unknown size: four times the largest that D4RL publishes for our tasks
BROKEN = (OSError, http.client.HTTPException)  # errors of a network; URLError and time-outs are OSErrors


class Published(NamedTuple):
    """What is known about a file before it is downloaded."""

    sha256: str | None = None
    size: int | None = None  # in bytes

    @property
    def most(self) -> int:
        """The number of bytes after which a download is stopped."""
        return self.size or LARGEST


class Download(NamedTuple):
    """A file that was downloaded and checked."""

    url: str
    size: int
    sha256: str
    published: bool  # whether the SHA-256 is the published one
    authenticated: bool  # whether the connection was HTTPS


def fetch(
    url: str,
    path: Path,
    known: Published = Published(),  # noqa: B008  (it is a tuple)
    check: Callable[[Path], None] = lambda part: None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    pause: float = 2.0,
    deadline: float = DEADLINE,
) -> Download:
    """Download ``url`` to ``path``, over HTTPS if the server speaks it.

    ``check`` raises a UserError if the file is not what it should be; then nothing is installed. An incomplete download
    stays in ``path.part``, and the next one continues it. This needs a known SHA-256, because the rest could belong to
    another file; without one, every attempt starts again.
    """
    ends = time.monotonic() + deadline
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path.parent}: cannot write here ({error.strerror})") from None
    url = preferred_url(url, TIMEOUT)
    older = file_size(part) > 0
    download_part(url, part, known, on_progress, pause, ends)
    if older and known.sha256 not in (None, file_digest(part)):
        part.unlink()  # what was there belongs to another file
        download_part(url, part, known, on_progress, pause, ends)
    try:
        digest = checked_digest(url, part, known, check)
    except UserError:
        part.unlink(missing_ok=True)
        raise
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    os.replace(part, path)
    return Download(url, file_size(path), digest, known.sha256 is not None, url.startswith("https:"))


def checked_digest(url: str, part: Path, known: Published, check: Callable[[Path], None]) -> str:
    """Return the SHA-256 of a complete download, or say why it is refused."""
    digest = file_digest(part)
    if known.sha256 not in (None, digest):
        raise UserError(f"{url}: the downloaded file is not the expected one (its SHA-256 differs); it was deleted")
    try:
        check(part)
    except UserError as error:
        why = str(error).removeprefix(f"{part}: ")
        raise UserError(f"{url}: the downloaded file is not the expected one ({why}); it was deleted") from None
    return digest


def download_part(
    url: str, part: Path, known: Published, on_progress: Callable[[int, int], None], pause: float, ends: float
) -> None:
    """Download all of a file to ``part``, in several attempts if the connection breaks."""
    problem = ""
    for attempt in range(RETRIES):
        if known.sha256 is None:
            part.unlink(missing_ok=True)
        before = file_size(part)
        try:
            if append_rest(url, part, known, on_progress, ends):
                return
            problem = "the connection ended early"
        except urllib.error.HTTPError as error:
            said = f"the server says {error.code} {printable(first_line(Exception(error.reason)))}"
            if error.code < 500:
                raise UserError(f"{url}: {said}") from None
            problem = said
        except AnswerError as error:
            part.unlink(missing_ok=True)
            raise UserError(f"{url}: {error}") from None
        except BROKEN as error:
            if isinstance(getattr(error, "reason", None), socket.gaierror):
                raise UserError(f"{url}: its server cannot be found; is this machine offline?") from None
            problem = printable(first_line(error))
        if time.monotonic() >= ends:
            problem = "it takes too long"
            break
        if file_size(part) == before:  # after progress, try again at once
            time.sleep(max(0.0, min(pause * attempt, ends - time.monotonic())))
    there = file_size(part) if known.sha256 else 0
    kept = f"; {there:,} bytes are kept; run the command again to continue" if there else ""
    if not kept:
        part.unlink(missing_ok=True)
    raise UserError(f"{url}: cannot be downloaded ({problem}){kept}")


def file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def append_rest(url: str, part: Path, known: Published, on_progress: Callable[[int, int], None], ends: float) -> bool:
    """Download the missing end of ``part``, and return whether the file is complete."""
    done = file_size(part)
    if done and done == known.size:
        return True
    try:
        response = open_url(url, {"Range": f"bytes={done}-"} if done else {}, min(TIMEOUT, ends - time.monotonic()))
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not done:
            raise
        part.unlink()  # it is longer than the file, so it belongs to another one
        return False
    with response, hanging_up_after(ends - time.monotonic(), response):
        if response.status != http.client.PARTIAL_CONTENT:
            done = 0  # the server sends all of it
        length = body_length(response, done)
        total = None if length is None else done + length
        if total is not None and known.size not in (None, total):
            raise AnswerError(
                f"the server has a file of {total:,} bytes there, and the published one has {known.size:,}"
            )
        if (total or 0) > known.most:
            raise AnswerError(f"the server offers {total:,} bytes, and {known.most:,} are the most for this file")
        with open(part, "ab" if done else "wb") as file:
            while time.monotonic() < ends and (chunk := response.read1(CHUNK)):
                done += len(chunk)
                if done > known.most:
                    raise AnswerError(f"the server sends more than the {known.most:,} bytes of this file")
                try:
                    file.write(chunk)
                except OSError as error:
                    raise UserError(f"{part}: cannot write ({error.strerror})") from None
                on_progress(done, total or 0)
    complete = time.monotonic() < ends if total is None else done == total
    return complete and known.size in (None, done)


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
