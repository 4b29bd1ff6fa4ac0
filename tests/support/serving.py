"""Local servers."""

import threading
from contextlib import contextmanager


@contextmanager
def serving(server):
    """Answer requests in a thread."""
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
