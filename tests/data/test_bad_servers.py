"""Downloads from a local server that misbehaves: nothing wrong is installed, and the message is one line."""

import hashlib
import io
import re
import socket
import ssl
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import h5py
import numpy as np
import pytest

from edp.cli import main
from edp.data import connection, download, locate, tasks
from edp.data.download import Published, fetch
from edp.errors import UserError
from support.serving import serving


def hdf5_bytes(width=11, rows=200, leave_out=()):
    """A file with the arrays of Hopper's tasks."""
    shapes = {"observations": (rows, width), "actions": (rows, 3), "rewards": (rows,), "terminals": (rows,)}
    file = io.BytesIO()
    with h5py.File(file, "w") as content:
        for name, shape in shapes.items():
            if name not in leave_out:
                content[name] = np.zeros(shape, bool if name == "terminals" else np.float32)
    return file.getvalue()


GOOD = hdf5_bytes()
HALF = len(GOOD) // 2


class Server(ThreadingHTTPServer):
    """Answers each request as ``behave`` does, a function of the request's handler."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave, self.requests = whole, []

    def handle_error(self, request, client_address):
        pass  # clients hang up


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.headers.get("Range"))  # pyright: ignore
        with suppress(OSError):
            self.server.behave(self)  # pyright: ignore

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format, *args):
        pass


def answer(to, body=GOOD, status=200, length=None, **headers):
    """Send an answer; ``length`` is what the server says about the body's length."""
    to.send_response(status)
    to.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in headers.items():
        to.send_header(name.replace("_", "-"), value)
    to.end_headers()
    to.wfile.write(body)


def whole(to):
    answer(to)


def without_length(to):
    to.send_response(200)
    to.end_headers()
    to.wfile.write(GOOD)


def endless(to):
    to.send_response(200)
    to.end_headers()
    while True:
        to.wfile.write(bytes(2**16))


def two_lengths(to):
    answer(to, Content_Length="7")


def slowly(to):
    to.send_response(200)
    to.send_header("Content-Length", str(len(GOOD)))
    to.end_headers()
    for number in range(100):
        to.wfile.write(GOOD[number : number + 1])
        time.sleep(0.1)


def slow_headers(to):
    to.wfile.write(b"HTTP/1.0 200 OK\r\n")
    for number in range(100):
        to.wfile.write(f"X-{number}: y\r\n".encode())
        time.sleep(0.1)


def loop(to):
    to.send_response(302)
    to.send_header("Location", to.path + "x")
    to.end_headers()


def loop_of_one(to):
    to.send_response(302)
    to.send_header("Location", to.path)
    to.end_headers()


def leads_to(address):
    return lambda to: answer(to, b"", 302, Location=address)


def hangs_up(to):
    to.connection.shutdown(socket.SHUT_RDWR)


def colourful(to):
    to.wfile.write(b"HTTP/1.0 404 \x1b[31mred\x1b[0m\r\n\r\n")


@pytest.fixture
def server(monkeypatch, tmp_path):
    with serving(Server()) as server:
        monkeypatch.setenv("EDP_SERVER", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("EDP_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(download, "TIMEOUT", 1.0)
        monkeypatch.setattr(download, "RETRIES", 2)
        yield server


UNKNOWN = replace(tasks.get_task("hopper-medium-v2"), size=None, sha256=None)  # a task without a published sum


NOTHING = Published()


def refused(url, folder, known=NOTHING, task=UNKNOWN, **options):
    """Try to download. Returns the message, after checking that nothing was installed."""
    with pytest.raises(UserError) as error:
        check = lambda part: locate.check_task_file(task, part)  # noqa: E731
        fetch(url, folder / "f", known, check, **({"pause": 0, "deadline": 3.0} | options))
    assert len(str(error.value).splitlines()) == 1
    assert str(error.value).isprintable()
    assert not (folder / "f").exists()
    return str(error.value)


WAYS = {
    "HTML": (lambda to: answer(to, b"<html>Sign in to this network</html>"), "not an HDF5 file"),
    "truncated": (lambda to: answer(to, GOOD[:-100]), "damaged HDF5 file"),
    "only a superblock": (lambda to: answer(to, GOOD[:96]), "damaged HDF5 file"),
    "without actions": (lambda to: answer(to, hdf5_bytes(leave_out=["actions"])), "missing actions"),
    "of another task": (lambda to: answer(to, hdf5_bytes(width=17)), "those of hopper-medium-v2 have 11 numbers"),
    "shorter than said": (lambda to: answer(to, length=len(GOOD) + 50), "the connection ended early|IncompleteRead"),
    "cut off by said length": (lambda to: answer(to, length=len(GOOD) - 50), "damaged HDF5 file"),
    "endless": (endless, "sends more than the 2,000,000 bytes"),
    "too large": (lambda to: answer(to, length=3_000_000), "offers 3,000,000 bytes, and 2,000,000 are the most"),
    "length abc": (lambda to: answer(to, length="abc"), "wrong length .Content-Length: abc"),
    "negative length": (lambda to: answer(to, length=-5), "wrong length .Content-Length: -5"),
    "huge length": (lambda to: answer(to, length="9" * 5000), "wrong length .Content-Length: 999"),
    "two lengths": (two_lengths, "wrong length .Content-Length: .*, 7"),
    "redirect loop": (loop, "leads nowhere"),
    "redirect to itself": (loop_of_one, "leads nowhere"),
    "redirect to a file": (leads_to("file:///etc/passwd"), "file:///etc/passwd.*not"),
    "redirect to FTP": (leads_to("ftp://127.0.0.1/x"), "ftp://127.0.0.1/x, which is not followed"),
    "range not satisfiable": (lambda to: to.send_error(416), "416"),
    "part unasked": (lambda to: answer(to, GOOD[9:], 206, Content_Range="bytes 9-99/100"), "another part"),
    "slow body": (slowly, "it takes too long"),
    "slow headers": (slow_headers, "timed out|takes too long"),
    "hangs up": (hangs_up, "cannot be downloaded"),
    "terminal codes": (colourful, r"404 \\x1b\[31mred"),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_wrong_is_installed(way, server, url, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 2_000_000)
    server.behave, message = WAYS[way]
    start = time.monotonic()
    text = refused(url, tmp_path, deadline=1.0 if "slow" in way else 5.0)
    assert re.search(message, text), text
    assert time.monotonic() - start < 5
    assert list(tmp_path.iterdir()) == []


KNOWN = Published(hashlib.sha256(GOOD).hexdigest(), len(GOOD))
RANGES = {
    "elsewhere": f"bytes {HALF - 10}-{len(GOOD) - 1}/{len(GOOD)}",
    "not to the end": f"bytes {HALF}-{len(GOOD) - 5}/{len(GOOD)}",
    "of a larger file": f"bytes {HALF}-{len(GOOD) + 9}/{len(GOOD) + 10}",
    "of unknown size": f"bytes {HALF}-{len(GOOD) - 1}/*",
    "in other words": "all of it",
}


@pytest.mark.parametrize("which", RANGES)
def test_a_range_that_was_not_asked_for_is_refused(which, server, url, tmp_path):
    (tmp_path / "f.part").write_bytes(GOOD[:HALF])
    server.behave = lambda to: answer(to, GOOD[HALF:], 206, Content_Range=RANGES[which])
    assert "another part than it was asked for" in refused(url, tmp_path, KNOWN)


def test_a_range_without_its_header_is_refused(server, url, tmp_path):
    (tmp_path / "f.part").write_bytes(GOOD[:HALF])
    server.behave = lambda to: answer(to, GOOD[HALF:], 206)
    assert "another part" in refused(url, tmp_path, KNOWN)


def test_a_file_of_another_size_is_refused_before_it_is_read(server, url, tmp_path):
    server.behave = lambda to: answer(to, GOOD + b"more")
    text = refused(url, tmp_path, KNOWN)
    assert f"a file of {len(GOOD) + 4:,} bytes there, and the published one has {len(GOOD):,}" in text


def with_ranges(to):
    start = int((to.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
    content_range = f"bytes {start}-{len(GOOD) - 1}/{len(GOOD)}"
    answer(to, GOOD[start:], 206 if start else 200, **({"Content_Range": content_range} if start else {}))


@pytest.mark.parametrize("size", [HALF, len(GOOD)])
def test_a_part_of_another_file_is_downloaded_again(size, server, url, tmp_path):
    (tmp_path / "f.part").write_bytes(bytes(size))
    server.behave = with_ranges
    done = fetch(url, tmp_path / "f", KNOWN, pause=0)
    assert (tmp_path / "f").read_bytes() == GOOD
    assert server.requests[-1] is None
    assert done == (url, len(GOOD), KNOWN.sha256, True, False)


def test_without_a_published_sum_nothing_is_resumed(server, url, tmp_path):
    (tmp_path / "f.part").write_bytes(bytes(HALF))
    server.behave = with_ranges
    fetch(url, tmp_path / "f", pause=0)
    assert (tmp_path / "f").read_bytes() == GOOD
    assert server.requests == [None]


def test_a_file_of_unsaid_length_is_complete_if_it_is_whole(server, url, tmp_path):
    server.behave = without_length
    fetch(url, tmp_path / "f", Published(), lambda part: locate.check_task_file(UNKNOWN, part), pause=0)
    assert (tmp_path / "f").read_bytes() == GOOD


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "/etc/passwd", "http://", "http://x:port/y"])
def test_addresses_are_http(url, tmp_path):
    assert "not the address of a file" in refused(url, tmp_path)


def test_get_shows_and_records_what_it_downloaded(server, tmp_path, monkeypatch, capsys, fails):
    task = replace(UNKNOWN, name="hopper-medium-v2")
    monkeypatch.setitem(tasks.TASKS, task.name, task)
    server.behave = lambda to: answer(to, hdf5_bytes(width=17))
    assert "those of hopper-medium-v2 have 11 numbers" in fails("data", "get", task.name)
    folder = tmp_path / "cache" / "d4rl"
    assert list(folder.iterdir()) == []
    server.behave = whole
    assert main(["data", "get", task.name]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == str(folder / task.file)
    assert f"{len(GOOD):,} bytes from http://127.0.0.1" in shown.err
    assert f"SHA-256 {KNOWN.sha256} (not compared: none is published)" in shown.err
    assert "the connection was not authenticated (HTTP)" in shown.err
    assert main(["data", "get", task.name]) == 0  # it is here
    assert KNOWN.sha256 in capsys.readouterr().err
    (folder / f"{task.file}.json").write_text('{"url": 3}')
    assert main(["data", "get", task.name]) == 0
    assert capsys.readouterr().err == ""


def test_https_is_tried_first(monkeypatch):
    asked = []
    monkeypatch.setattr(connection, "answers", lambda url, timeout: asked.append(url) or len(asked) < 2)
    assert connection.preferred_url("http://data.example/x", 1.0) == "https://data.example/x"
    assert connection.preferred_url("http://data.example/x", 1.0) == "http://data.example/x"
    assert connection.preferred_url("http://data.example:80/x", 1.0) == "http://data.example:80/x"
    assert asked == ["https://data.example/x"] * 2


@pytest.fixture
def with_tls(server, tmp_path):
    """Make the server speak HTTPS, with a certificate that nobody has signed."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(["openssl", *words, *more], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return f"https://127.0.0.1:{server.server_port}/set.hdf5", certificate


def test_a_wrong_certificate_is_refused(with_tls):
    with pytest.raises(UserError, match="the server's certificate is not valid"):
        connection.answers(with_tls[0], 2.0)


def test_https_does_not_lead_back_to_http(with_tls, server, tmp_path, monkeypatch):
    address, certificate = with_tls
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert connection.answers(address, 2.0)
    assert fetch(address, tmp_path / "f", KNOWN, pause=0).authenticated
    (tmp_path / "f").unlink()
    server.behave = leads_to("http://127.0.0.1:9/x")
    assert "leads from https to http://127.0.0.1:9/x, which is not followed" in refused(address, tmp_path, KNOWN)


def test_a_server_without_https_is_noticed():
    assert not connection.answers("https://127.0.0.1:9/x", 1.0)


def in_chunks(then):
    """Send a good file as one chunk, and then a line or more, a byte at a time and without an end."""

    def behave(to):
        to.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(GOOD), GOOD))
        for start in range(200):
            to.wfile.write(then[start % len(then) :][:1])
            time.sleep(0.02)

    return behave


@pytest.mark.parametrize("then", [b"a", b"0\r\nX: y\r\n" + b"X: y\r\n" * 40], ids=["length", "trailer"])
def test_lines_between_chunks_do_not_outlast_the_deadline(then, server, url, tmp_path):
    server.behave = in_chunks(then)
    start = time.monotonic()
    assert "it takes too long" in refused(url, tmp_path, deadline=0.5)
    assert time.monotonic() - start < 3


@pytest.mark.parametrize("address", ["http://[bad/x", "http://a..b/x"])
def test_redirects_to_no_address_are_refused(address, server, url, tmp_path):
    server.behave = leads_to(address)
    assert "an address that cannot be opened" in refused(url, tmp_path)
