"""HTTP connections to servers that are not trusted: where they may lead, how long they may take, what they may say."""

import http.client
import re
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from edp.errors import UserError, first_line, printable

SCHEMES = ("http", "https")
REDIRECTS = 5


class AnswerError(Exception):
    """The answer of a server does not fit the request, and would not if it were asked again."""


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects to HTTP and HTTPS. From HTTPS it does not go back to HTTP, which anyone could answer."""

    max_redirections, max_repeats = REDIRECTS, 2

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in SCHEMES or (before == "https" and after == "http"):
            raise AnswerError(f"the server leads from {before} to {printable(newurl)}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except urllib.error.HTTPError as error:
            raise AnswerError(f"the server leads nowhere ({printable(str(error.reason).splitlines()[0])})") from None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def make_opener() -> urllib.request.OpenerDirector:
    """Return an opener without urllib's handlers of ``file:``, ``ftp:`` and ``data:``."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def open_url(url: str, headers: dict[str, str], timeout: float, method: str = "GET") -> http.client.HTTPResponse:
    """Send a request and return the answer. ``timeout`` is for each silence and for all headers together.

    A socket's time-out starts again with each byte, so a server that sends a header slowly would never reach it. The
    headers are therefore read in a thread, which is left behind if they do not come in time.
    """
    request, answer = urllib.request.Request(url, headers=headers, method=method), {}

    def ask() -> None:
        try:
            answer["response"] = make_opener().open(request, timeout=timeout)
        except ValueError as error:  # of an address, which may be that of a redirect
            answer["error"] = AnswerError(f"an address that cannot be opened ({printable(first_line(error))})")
        except Exception as error:
            answer["error"] = error

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout + 1)
    if "error" in answer:
        raise answer["error"]
    if "response" not in answer:
        raise TimeoutError("timed out")
    return answer["response"]


@contextmanager
def hanging_up_after(seconds: float, response: http.client.HTTPResponse) -> Iterator[None]:
    """End the connection after some time, whatever is being read.

    A single read can take for ever: the lines between the chunks of a body may come slowly, or without an end.
    """

    def hang_up() -> None:
        with (
            suppress(OSError, ValueError),  # it has ended
            socket.fromfd(response.fileno(), socket.AF_INET, socket.SOCK_STREAM) as connection,
        ):
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, seconds), hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def preferred_url(url: str, timeout: float) -> str:
    """Return the address to download from: HTTPS in place of HTTP, if the server speaks it.

    An address with a port is used as it is. A certificate that is not valid is an error: the server speaks HTTPS, or
    someone else pretends to be the server.
    """
    try:
        parts = urlsplit(url)
        explicit = parts.port is not None
    except ValueError as error:
        raise UserError(f"{printable(url)}: not the address of a file ({error})") from None
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise UserError(f"{printable(url)}: not the address of a file: it starts with http:// or https://")
    if parts.scheme == "https" or explicit:
        return url
    secure = parts._replace(scheme="https").geturl()
    return secure if answers(secure, timeout) else url


def answers(url: str, timeout: float) -> bool:
    """Return whether a server speaks HTTPS, whatever it says about this address."""
    try:
        open_url(url, {}, timeout, "HEAD").close()
        return True
    except (urllib.error.HTTPError, AnswerError):
        return True
    except (OSError, http.client.HTTPException) as error:
        if isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError):
            raise UserError(f"{url}: the server's certificate is not valid") from None
        return False


def body_length(response: http.client.HTTPResponse, start: int) -> int | None:
    """Return the length of an answer's body, or None if the server does not say it.

    If the body is a part of a file, its range has to begin at ``start`` and to reach the file's end.
    """
    said = response.headers.get_all("Content-Length") or []
    if len(set(said)) > 1 or not all(re.fullmatch(r"\d{1,18}", text.strip(), re.ASCII) for text in said):
        raise AnswerError(f"the server gives a wrong length (Content-Length: {printable(', '.join(said))[:60]})")
    length = int(said[0]) if said else None
    if response.status != http.client.PARTIAL_CONTENT:
        return length
    given = response.headers.get("Content-Range", "")
    found = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", given.strip(), re.ASCII)
    first, last, total = map(int, found.groups()) if found else (-1, -1, -1)
    if first != start or last + 1 != total or length not in (None, total - start):
        raise AnswerError(
            f"the server sends another part than it was asked for (Content-Range: {printable(given)[:60]})"
        )
    return total - start
