"""Downloads from a local server that fails on request."""

import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from edp.data.download import Published, fetch
from edp.errors import UserError
from support.serving import serving

CONTENT = np.random.default_rng(0).bytes(3_000_000)
SUM = hashlib.sha256(CONTENT).hexdigest()
KNOWN = Published(SUM, len(CONTENT))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append(self.headers.get("Range"))  # pyright: ignore
        fault = server.faults.pop(0) if server.faults else None  # pyright: ignore
        if isinstance(fault, int) and fault >= 400:
            self.send_error(fault)
            return
        start = 0
        if self.headers.get("Range") and fault != "no ranges":
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            if start >= len(CONTENT):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        else:
            self.send_response(200)
        body = CONTENT[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: fault if isinstance(fault, int) else None])

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.faults, server.requests = [], []  # pyright: ignore
    with serving(server):
        yield server


def test_a_file_comes_whole_with_progress(url, tmp_path):
    seen = []
    fetch(
        url, tmp_path / "new" / "set.hdf5", KNOWN, on_progress=lambda done, total: seen.append((done, total)), pause=0
    )
    assert (tmp_path / "new" / "set.hdf5").read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["set.hdf5"]


def test_a_broken_connection_is_resumed(url, server, tmp_path):
    server.faults = [399, 100, None]
    fetch(url, tmp_path / "f", KNOWN, pause=0)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.requests == [None, "bytes=399-", "bytes=499-"]


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(url, server, tmp_path):
    server.faults = [200, *[503] * 4]
    with pytest.raises(UserError, match=r"503.*200 bytes are kept; run the command again to continue"):
        fetch(url, tmp_path / "f", KNOWN, pause=0)
    assert not (tmp_path / "f").exists()
    fetch(url, tmp_path / "f", KNOWN, pause=0)
    assert server.requests[-1] == "bytes=200-"
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_server_without_ranges_starts_again(url, server, tmp_path):
    server.faults = [200, "no ranges"]
    fetch(url, tmp_path / "f", KNOWN, pause=0)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_part_of_another_file_is_thrown_away(url, tmp_path):
    (tmp_path / "f.part").write_bytes(bytes(len(CONTENT) + 5))
    fetch(url, tmp_path / "f", KNOWN, pause=0)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_wrong_sum_leaves_nothing(url, tmp_path):
    with pytest.raises(UserError, match="not the expected one"):
        fetch(url, tmp_path / "f", Published("0" * 64), pause=0)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_not_tried_again(url, server, tmp_path):
    server.faults = [404]
    with pytest.raises(UserError, match="404"):
        fetch(url, tmp_path / "f", pause=0)
    assert len(server.requests) == 1


def test_offline_says_so(tmp_path):
    with pytest.raises(UserError, match="is this machine offline"):
        fetch("http://nowhere.invalid/x", tmp_path / "f", pause=0)
    with pytest.raises(UserError, match=r"http://127.0.0.1:9/x: cannot be downloaded \(.*refused"):
        fetch("http://127.0.0.1:9/x", tmp_path / "f", pause=0)
    assert list(tmp_path.iterdir()) == []
